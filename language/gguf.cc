#include "language/gguf.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/file.h"
#include "base/memory.h"

namespace weft {
namespace {

constexpr size_t kMaxKeyBytes = 65535;  // the format's own limits
constexpr size_t kMaxTensorNameBytes = 64;
constexpr uint32_t kMaxDimensions = 4;
constexpr int kMaxArrayDepth = 4;
constexpr uint32_t kMaxAlignment = 1 << 20;

// Tensor types of ggml that weft does not read, to name them in messages.
struct OtherType {
  uint32_t number;
  std::string_view name;
};
constexpr OtherType kOtherTypes[] = {
    {9, "Q8_1"},   {15, "Q8_K"},   {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"},
    {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"},   {22, "IQ2_S"},  {23, "IQ4_XS"},
    {24, "I8"},    {25, "I16"},    {26, "I32"},     {27, "I64"},    {28, "F64"},
    {29, "IQ1_M"}, {34, "TQ1_0"},  {35, "TQ2_0"},   {39, "MXFP4"},
};

template <class T>
T Load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// For messages: what is no printable ASCII becomes '?'.
std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, 100)) out += c >= 0x20 && c < 0x7F ? c : '?';
  return out + "\"";
}

[[noreturn]] void FailAt(std::string_view file, uint64_t position, const std::string& reason) {
  throw Error(ErrorCode::kCorrupt,
              std::string(file) + ": byte " + std::to_string(position) + ": " + reason);
}

// Takes plain values from bytes that are not trusted.
class GgufCursor {
 public:
  GgufCursor(std::span<const uint8_t> bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return bytes_.size() - position_; }

  [[noreturn]] void Fail(uint64_t position, const std::string& reason) const {
    FailAt(name_, position, reason);
  }

  std::span<const uint8_t> Take(uint64_t count, const char* what) {
    if (count > remaining()) {
      Fail(position_, std::string("the file ends inside ") + what + ": " + std::to_string(count) +
                          " bytes are claimed, " + std::to_string(remaining()) + " are left");
    }
    const auto taken = bytes_.subspan(position_, count);
    position_ += count;
    return taken;
  }

  template <class T>
  T Read(const char* what) {
    return Load<T>(Take(sizeof(T), what).data());
  }

  std::string_view String(const char* what) {
    const auto length = Read<uint64_t>(what);
    const auto text = Take(length, what);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

  // Each of count items takes at least item_bytes.
  void CheckCount(uint64_t position, uint64_t count, uint64_t item_bytes, const char* what) const {
    if (count > remaining() / item_bytes) {
      Fail(position, std::to_string(count) + " " + what + " are claimed, the " +
                         std::to_string(remaining()) + " bytes that are left hold fewer");
    }
  }

  GgufType Type() {
    const uint64_t at = position_;
    const auto type = Read<uint32_t>("the type of a value");
    if (type > static_cast<uint32_t>(GgufType::kF64)) {
      Fail(at, "unknown value type " + std::to_string(type));
    }
    return static_cast<GgufType>(type);
  }

  void CheckBools(uint64_t begin) const {
    for (uint64_t i = begin; i < position_; ++i) {
      if (bytes_[i] > 1) Fail(i, "a bool is " + std::to_string(bytes_[i]) + ", not 0 or 1");
    }
  }

  // Skips `count` values of a type.
  void Skip(GgufType type, uint64_t count, int depth) {
    const uint64_t begin = position_;
    if (type == GgufType::kString) {
      CheckCount(begin, count, sizeof(uint64_t), "strings");
      for (uint64_t i = 0; i < count; ++i) String("a string");
    } else if (type == GgufType::kArray) {
      if (depth == kMaxArrayDepth) Fail(begin, "arrays are nested too deeply");
      CheckCount(begin, count, sizeof(uint32_t) + sizeof(uint64_t), "arrays");
      for (uint64_t i = 0; i < count; ++i) {
        const GgufType inner = Type();
        const auto inner_count = Read<uint64_t>("the length of an array");
        Skip(inner, inner_count, depth + 1);
      }
    } else {
      const size_t bytes = GgufScalarBytes(type);
      CheckCount(begin, count, bytes, "array elements");
      Take(count * bytes, "a value");
      if (type == GgufType::kBool) CheckBools(begin);
    }
  }

  GgufValue Value() {
    GgufValue value;
    value.type = Type();
    if (value.type == GgufType::kArray) {
      value.array = true;
      value.type = Type();
      value.count = Read<uint64_t>("the length of an array");
    }
    const uint64_t begin = position_;
    Skip(value.type, value.count, 0);
    value.bytes = bytes_.subspan(begin, position_ - begin);
    return value;
  }

 private:
  std::span<const uint8_t> bytes_;
  std::string_view name_;
  uint64_t position_ = 0;
};

// Indices of items in the order of their names; Error when a name stands twice.
template <class Items, class NameOf>
std::vector<uint32_t> SortedByName(const Items& items, NameOf name_of, const std::string& file,
                                   const char* what) {
  std::vector<uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](uint32_t i) -> std::string_view { return name_of(items[i]); });
  for (size_t i = 1; i < order.size(); ++i) {
    const std::string_view name = name_of(items[order[i]]);
    if (name == name_of(items[order[i - 1]])) {
      throw Error(ErrorCode::kCorrupt, file + ": " + what + " " + Quoted(name) + " stands twice");
    }
  }
  return order;
}

template <class Items, class NameOf>
auto FindByName(const Items& items, const std::vector<uint32_t>& order, NameOf name_of,
                std::string_view name) -> decltype(&items[0]) {
  const auto found = std::ranges::lower_bound(
      order, name, {}, [&](uint32_t i) -> std::string_view { return name_of(items[i]); });
  if (found == order.end() || name_of(items[*found]) != name) return nullptr;
  return &items[*found];
}

constexpr auto kKeyOf = [](const auto& entry) -> std::string_view { return entry.first; };
constexpr auto kNameOf = [](const GgufTensor& tensor) -> std::string_view { return tensor.name; };

// A tensor's description; offset is still relative to the data.
GgufTensor ReadDescription(GgufCursor& cursor, const std::string& file) {
  GgufTensor tensor;
  const uint64_t begin = cursor.position();
  const std::string_view name = cursor.String("the name of a tensor");
  if (name.size() > kMaxTensorNameBytes) {
    cursor.Fail(begin, "a tensor's name has " + std::to_string(name.size()) + " bytes, more than " +
                           std::to_string(kMaxTensorNameBytes));
  }
  tensor.name = name;
  const auto rank = cursor.Read<uint32_t>("the shape of a tensor");
  if (rank > kMaxDimensions) {
    cursor.Fail(begin, "tensor " + Quoted(name) + " has " + std::to_string(rank) +
                           " dimensions, more than " + std::to_string(kMaxDimensions));
  }
  int64_t elements = 1;
  for (uint32_t i = 0; i < rank; ++i) {
    const auto dimension = cursor.Read<uint64_t>("the shape of a tensor");
    if (dimension > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) ||
        __builtin_mul_overflow(elements, static_cast<int64_t>(std::max<uint64_t>(dimension, 1)),
                               &elements)) {
      cursor.Fail(begin, "the shape of tensor " + Quoted(name) + " overflows 64 bits");
    }
    tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(dimension));
  }
  const auto number = cursor.Read<uint32_t>("the type of a tensor");
  tensor.offset = cursor.Read<uint64_t>("the offset of a tensor");
  const WeightTypeInfo* info = FindGgmlType(number);
  if (!info) {
    const auto other = std::ranges::find(kOtherTypes, number, &OtherType::number);
    if (other == std::end(kOtherTypes)) {
      cursor.Fail(begin,
                  "tensor " + Quoted(name) + " has the unknown type " + std::to_string(number));
    }
    throw Error(ErrorCode::kInvalidArgument,
                file + ": tensor " + Quoted(name) + " has type " + std::string(other->name) +
                    "; weft reads F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 and Q2_K to Q6_K");
  }
  tensor.type = info->type;
  const int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (row % info->block != 0) {
    cursor.Fail(begin, "tensor " + Quoted(name) + " has rows of " + std::to_string(row) +
                           " elements, no multiple of " + std::string(info->name) + "'s block of " +
                           std::to_string(info->block));
  }
  return tensor;
}

// Bytes of all elements; false on overflow.
bool TensorBytes(const GgufTensor& tensor, uint64_t& bytes) {
  uint64_t blocks = 1;
  for (const int64_t dimension : tensor.shape) blocks *= static_cast<uint64_t>(dimension);
  const WeightTypeInfo& info = Info(tensor.type);
  return !__builtin_mul_overflow(blocks / static_cast<uint64_t>(info.block),
                                 static_cast<uint64_t>(info.block_bytes), &bytes);
}

}  // namespace

GgufFile::GgufFile(const std::string& path)
    : mapping_(std::make_unique<MappedFile>(path)), name_(path) {
  Parse(mapping_->bytes());
}

GgufFile::GgufFile(std::span<const uint8_t> bytes, std::string name) : name_(std::move(name)) {
  Parse(bytes);
}

GgufFile::~GgufFile() = default;

void GgufFile::Parse(std::span<const uint8_t> bytes) {
  GgufCursor cursor(bytes, name_);
  if (std::memcmp(cursor.Take(4, "the magic \"GGUF\"").data(), "GGUF", 4) != 0) {
    cursor.Fail(0, "no GGUF file: it does not begin with \"GGUF\"");
  }
  version_ = cursor.Read<uint32_t>("the version");
  if (version_ != 2 && version_ != 3) {
    const bool big_endian = version_ != 0 && (version_ & 0xFFFF) == 0;
    cursor.Fail(4, big_endian ? "a big-endian file: weft reads little-endian ones"
                              : "version " + std::to_string(version_) + ": weft reads 2 and 3");
  }
  const auto tensor_count = cursor.Read<uint64_t>("the number of tensors");
  const auto value_count = cursor.Read<uint64_t>("the number of metadata values");
  cursor.CheckCount(8, tensor_count, 24, "tensors");          // name length, rank, type, offset
  cursor.CheckCount(16, value_count, 13, "metadata values");  // key length, type, one byte

  for (uint64_t i = 0; i < value_count; ++i) {
    const uint64_t begin = cursor.position();
    const std::string_view key = cursor.String("a metadata key");
    if (key.size() > kMaxKeyBytes) cursor.Fail(begin, "a metadata key is longer than 65535 bytes");
    std::string owned(key);
    metadata_.emplace_back(std::move(owned), cursor.Value());
  }
  keys_by_name_ = SortedByName(metadata_, kKeyOf, name_, "the metadata key");
  ReadAlignment();

  for (uint64_t i = 0; i < tensor_count; ++i) tensors_.push_back(ReadDescription(cursor, name_));
  tensors_by_name_ = SortedByName(tensors_, kNameOf, name_, "the tensor");

  PlaceTensors(bytes, cursor.position());
}

void GgufFile::ReadAlignment() {
  const GgufValue* value = Find("general.alignment");
  if (!value) return;
  int64_t alignment = 0;
  value->GetInteger(alignment);
  if (value->array || value->type != GgufType::kU32 || alignment <= 0 || alignment % 8 != 0 ||
      alignment > kMaxAlignment) {
    throw Error(ErrorCode::kCorrupt, name_ +
                                         ": general.alignment must be a u32 and a multiple of "
                                         "8, not " +
                                         value->KindName() + " " + std::to_string(alignment));
  }
  alignment_ = static_cast<uint32_t>(alignment);
}

void GgufFile::PlaceTensors(std::span<const uint8_t> bytes, uint64_t described) {
  const auto align = [&](uint64_t offset) {
    return (offset + alignment_ - 1) / alignment_ * alignment_;
  };
  const uint64_t data_begin = std::min<uint64_t>(align(described), bytes.size());
  const uint64_t data_bytes = bytes.size() - data_begin;
  std::vector<GgufTensor*> order;
  order.reserve(tensors_.size());
  for (GgufTensor& tensor : tensors_) order.push_back(&tensor);
  std::ranges::stable_sort(order, {}, &GgufTensor::offset);
  uint64_t end = 0;
  for (GgufTensor* tensor : order) {
    uint64_t size = 0;
    const auto fail = [&](const std::string& reason) {
      FailAt(name_, data_begin,
             "tensor " + Quoted(tensor->name) + " at offset " + std::to_string(tensor->offset) +
                 " of the data " + reason);
    };
    if (tensor->offset % alignment_ != 0) {
      fail("is not aligned to " + std::to_string(alignment_) + " bytes");
    }
    if (!TensorBytes(*tensor, size) || tensor->offset > data_bytes ||
        size > data_bytes - tensor->offset) {
      fail("does not lie in the " + std::to_string(data_bytes) + " bytes of data");
    }
    if (tensor->offset < end) fail("lies inside another tensor");
    end = tensor->offset + size;
    tensor->bytes = bytes.subspan(data_begin + tensor->offset, size);
    tensor->offset += data_begin;
  }
  if (data_bytes > align(end)) {
    FailAt(name_, data_begin + end,
           std::to_string(data_bytes - end) + " bytes after the last tensor");
  }
}

void GgufFile::ReleasePages() const {
  if (mapping_) weft::ReleasePages(mapping_->bytes());
}

const GgufValue* GgufFile::Find(std::string_view key) const {
  const auto* entry = FindByName(metadata_, keys_by_name_, kKeyOf, key);
  return entry ? &entry->second : nullptr;
}

const GgufTensor* GgufFile::FindTensor(std::string_view name) const {
  return FindByName(tensors_, tensors_by_name_, kNameOf, name);
}

}  // namespace weft
