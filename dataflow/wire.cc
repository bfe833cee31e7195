#include "dataflow/wire.h"

#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/file.h"

namespace weft {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian");

constexpr size_t kChecksumAt = 36;
constexpr size_t kMaxNameBytes = 1024;
constexpr uint32_t kMaxTensors = 1 << 20;

[[noreturn]] void Corrupt(const std::string& what) {
  throw Error(ErrorCode::kCorrupt, "a message from another process " + what);
}

template <class T>
void Put(std::span<uint8_t> frame, size_t at, T value) {
  std::memcpy(frame.data() + at, &value, sizeof(T));
}
template <class T>
T Get(std::span<const uint8_t> frame, size_t at) {
  T value;
  std::memcpy(&value, frame.data() + at, sizeof(T));
  return value;
}

uint32_t Checksum(std::span<const uint8_t> frame) {
  std::array<uint8_t, kFrameHeaderBytes> header;
  std::memcpy(header.data(), frame.data(), kFrameHeaderBytes);
  std::memset(header.data() + kChecksumAt, 0, sizeof(uint32_t));
  return Crc32c(frame.subspan(kFrameHeaderBytes), Crc32c(header));
}

// Name, then length in two bytes: names are short.
void WriteName(Writer& out, std::string_view name) {
  WEFT_CHECK_LE(name.size(), kMaxNameBytes) << "the name of a tensor that leaves the process";
  out.Write(static_cast<uint16_t>(name.size()));
  out.Append({reinterpret_cast<const uint8_t*>(name.data()), name.size()});
}

std::string ReadName(Reader& in) {
  const auto size = in.Read<uint16_t>();
  if (size > kMaxNameBytes) Corrupt("names a tensor with too many letters");
  const auto bytes = in.Take(size);
  return {bytes.begin(), bytes.end()};
}

uint32_t ReadCount(Reader& in) {
  const auto count = in.Read<uint32_t>();
  if (count > kMaxTensors || count > in.remaining()) Corrupt("counts more tensors than it has");
  return count;
}

// Elements of a shape times their size, nothing when it does not fit the limit.
std::optional<uint64_t> BytesOf(std::span<const int64_t> dims, DType dtype) {
  uint64_t bytes = SizeOf(dtype);
  bool empty = false;
  for (const int64_t dim : dims) {
    if (dim < 0 || static_cast<uint64_t>(dim) > kMaxMessageBytes) return {};
    empty |= dim == 0;
    // Zeros do not hide an absurd dimension beside them.
    if (dim != 0 && __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes)) return {};
    if (bytes > kMaxMessageBytes) return {};
  }
  return empty ? 0 : bytes;
}

}  // namespace

uint64_t MaxMessageBytes(MessageType type) {
  switch (type) {
    case MessageType::kWelcome:
    case MessageType::kEdge:
    case MessageType::kSnapshot:
    case MessageType::kContribution:
    case MessageType::kSum:
      return kMaxMessageBytes;
    default:
      return kMaxControlBytes;
  }
}

void SealFrame(const FrameHeader& header, std::span<uint8_t> frame) {
  Put<uint32_t>(frame, 0, kFrameMagic);
  Put<uint8_t>(frame, 4, kWireVersion);
  Put<uint8_t>(frame, 5, static_cast<uint8_t>(header.kind));
  Put<uint8_t>(frame, 6, header.last ? 1 : 0);
  Put<uint8_t>(frame, 7, 0);
  Put<uint64_t>(frame, 8, header.session);
  Put<uint64_t>(frame, 16, header.sequence);
  Put<uint64_t>(frame, 24, header.ack);
  Put<uint32_t>(frame, 32, static_cast<uint32_t>(frame.size() - kFrameHeaderBytes));
  Put<uint32_t>(frame, kChecksumAt, Checksum(frame));
}

std::optional<FrameHeader> OpenFrame(std::span<const uint8_t> frame) {
  if (frame.size() < kFrameHeaderBytes || frame.size() > kFrameHeaderBytes + kMaxPayloadBytes)
    return {};
  if (Get<uint32_t>(frame, 0) != kFrameMagic || Get<uint8_t>(frame, 4) != kWireVersion) return {};
  if (Get<uint32_t>(frame, 32) != frame.size() - kFrameHeaderBytes) return {};
  const auto kind = Get<uint8_t>(frame, 5);
  if (kind < 1 || kind > 3 || Get<uint8_t>(frame, 6) > 1 || Get<uint8_t>(frame, 7) != 0) return {};
  if (Get<uint32_t>(frame, kChecksumAt) != Checksum(frame)) return {};
  return FrameHeader{.kind = static_cast<FrameKind>(kind),
                     .last = Get<uint8_t>(frame, 6) == 1,
                     .session = Get<uint64_t>(frame, 8),
                     .sequence = Get<uint64_t>(frame, 16),
                     .ack = Get<uint64_t>(frame, 24)};
}

Writer BeginMessage(MessageType type) {
  Writer out;
  for (size_t i = 0; i < kFrameHeaderBytes / sizeof(uint64_t); ++i) out.Write(uint64_t{0});
  out.Write(static_cast<uint8_t>(type));
  return out;
}

std::vector<uint8_t> ShortMessage(MessageType type, uint64_t number) {
  Writer out = BeginMessage(type);
  out.Write(number);
  return out.Take();
}

void WriteTensor(Writer& out, const Tensor& tensor) {
  out.Write(static_cast<uint8_t>(tensor.dtype()));
  out.Write(static_cast<uint8_t>(tensor.layout()));
  out.Write(static_cast<uint8_t>(tensor.shape().rank()));
  for (const int64_t dim : tensor.shape().dims()) out.Write(dim);
  out.Write(static_cast<uint64_t>(tensor.bytes()));
  out.Append({reinterpret_cast<const uint8_t*>(tensor.raw()), tensor.bytes()});
}

Tensor ReadTensor(Reader& in) {
  const auto dtype = in.Read<uint8_t>();
  const auto layout = in.Read<uint8_t>();
  const auto rank = in.Read<uint8_t>();
  if (dtype > static_cast<uint8_t>(DType::kUInt8)) Corrupt("has a tensor of unknown type");
  if (rank > Shape::kMaxRank) Corrupt("has a tensor of too many dimensions");
  const bool panels = layout == static_cast<uint8_t>(Layout::kPanels);
  if (layout > static_cast<uint8_t>(Layout::kPanels) || (panels && (rank != 2 || dtype != 0))) {
    Corrupt("has a tensor of unknown layout");
  }
  std::array<int64_t, Shape::kMaxRank> dims{};
  for (int d = 0; d < rank; ++d) dims[d] = in.Read<int64_t>();
  const std::span<const int64_t> known(dims.data(), rank);
  const auto type = static_cast<DType>(dtype);
  std::optional<uint64_t> wanted = BytesOf(known, type);
  if (wanted && panels)
    wanted = PanelElements(dims[0], dims[1]) * static_cast<int64_t>(SizeOf(type));
  const auto bytes = in.Read<uint64_t>();
  if (!wanted || *wanted != bytes || bytes > in.remaining())
    Corrupt("has a tensor whose length is not that of its shape");
  Tensor tensor = Tensor::Empty(Shape(known), type, static_cast<Layout>(layout));
  const auto data = in.Take(bytes);
  if (!data.empty()) std::memcpy(tensor.raw(), data.data(), data.size());
  return tensor;
}

void WriteTensors(Writer& out, std::span<const Tensor> tensors) {
  out.Write(static_cast<uint32_t>(tensors.size()));
  for (const Tensor& tensor : tensors) WriteTensor(out, tensor);
}

std::vector<Tensor> ReadTensors(Reader& in) {
  std::vector<Tensor> tensors(ReadCount(in));
  for (Tensor& tensor : tensors) tensor = ReadTensor(in);
  return tensors;
}

void WriteMap(Writer& out, const TensorMap& map) {
  out.Write(static_cast<uint32_t>(map.size()));
  for (const auto& [name, tensor] : map) {
    WriteName(out, name.text());
    WriteTensor(out, tensor);
  }
}

TensorMap ReadMap(Reader& in) {
  TensorMap map;
  const uint32_t count = ReadCount(in);
  for (uint32_t i = 0; i < count; ++i) {
    const std::string name = ReadName(in);
    map.Set(name, ReadTensor(in));
  }
  if (map.size() != count) Corrupt("has two tensors of one name");
  return map;
}

void WriteMessage(Writer& out, const Message& message) {
  out.Write(message.version);
  WriteMap(out, message.body);
}

Message ReadMessage(Reader& in) {
  Message message;
  message.version = in.Read<int64_t>();
  message.body = ReadMap(in);
  return message;
}

void WriteCut(Writer& out, const Cut& cut) {
  out.Write(static_cast<uint32_t>(cut.size()));
  for (const auto& [key, map] : cut) {
    WriteName(out, key);
    WriteMap(out, map);
  }
}

Cut ReadCut(Reader& in) {
  Cut cut;
  const uint32_t count = ReadCount(in);
  for (uint32_t i = 0; i < count; ++i) {
    std::string key = ReadName(in);
    cut[std::move(key)] = ReadMap(in);
  }
  return cut;
}

}  // namespace weft
