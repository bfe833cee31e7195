#include "language/gguf_writer.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/file.h"

namespace weft {
namespace {

constexpr uint32_t kVersion3 = 3;
constexpr uint64_t kAlignment = 32;  // the format's default, which needs no key
constexpr size_t kMaxTensorNameBytes = 64;

template <class T>
void Append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void AppendText(std::string& out, std::string_view text) {
  Append<uint64_t>(out, text.size());
  out += text;
}

uint64_t Aligned(uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

void AppendOrThrow(AppendFile& file, std::string_view bytes) {
  if (const std::string reason = file.Append(bytes); !reason.empty()) {
    throw Error(ErrorCode::kIo, "cannot write " + file.path() + ": " + reason);
  }
}

std::string& GgufWriter::Begin(std::string_view key, GgufType type) {
  WEFT_CHECK(std::ranges::find(keys_, key) == keys_.end()) << key << " is set twice";
  keys_.emplace_back(key);
  AppendText(metadata_, key);
  Append(metadata_, static_cast<uint32_t>(type));
  return metadata_;
}

std::string& GgufWriter::BeginArray(std::string_view key, GgufType type, uint64_t count) {
  std::string& out = Begin(key, GgufType::kArray);
  Append(out, static_cast<uint32_t>(type));
  Append(out, count);
  return out;
}

void GgufWriter::SetU32(std::string_view key, int64_t value) {
  WEFT_CHECK(value >= 0 && value <= std::numeric_limits<uint32_t>::max()) << key << " is " << value;
  Append(Begin(key, GgufType::kU32), static_cast<uint32_t>(value));
}

void GgufWriter::SetF32(std::string_view key, double value) {
  Append(Begin(key, GgufType::kF32), static_cast<float>(value));
}

void GgufWriter::SetBool(std::string_view key, bool value) {
  Append<uint8_t>(Begin(key, GgufType::kBool), value ? 1 : 0);
}

void GgufWriter::SetString(std::string_view key, std::string_view value) {
  AppendText(Begin(key, GgufType::kString), value);
}

void GgufWriter::SetStrings(std::string_view key, std::span<const std::string> values) {
  std::string& out = BeginArray(key, GgufType::kString, values.size());
  for (const std::string& value : values) AppendText(out, value);
}

void GgufWriter::SetI32s(std::string_view key, std::span<const int32_t> values) {
  std::string& out = BeginArray(key, GgufType::kI32, values.size());
  for (const int32_t value : values) Append(out, value);
}

void GgufWriter::SetF32s(std::string_view key, std::span<const float> values) {
  std::string& out = BeginArray(key, GgufType::kF32, values.size());
  for (const float value : values) Append(out, value);
}

void GgufWriter::Copy(std::string_view key, const GgufValue& value) {
  std::string& out =
      value.array ? BeginArray(key, value.type, value.count) : Begin(key, value.type);
  out.append(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
}

void GgufWriter::AddTensor(std::string name, std::vector<int64_t> shape, WeightType type,
                           FillFunction fill) {
  WEFT_CHECK(!name.empty() && name.size() <= kMaxTensorNameBytes) << "the tensor name " << name;
  WEFT_CHECK(!shape.empty() && shape.back() % Info(type).block == 0)
      << name << " does not fit the blocks of " << Info(type).name;
  uint64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= static_cast<uint64_t>(shape[i]);
  const uint64_t bytes = rows * static_cast<uint64_t>(RowBytes(type, shape.back()));
  tensors_.push_back({std::move(name), std::move(shape), type, std::move(fill), bytes});
}

void GgufWriter::Write(const std::string& path,
                       const std::function<void(uint64_t, uint64_t)>& progress) const {
  std::string head = "GGUF";
  Append(head, kVersion3);
  Append<uint64_t>(head, tensors_.size());
  Append<uint64_t>(head, keys_.size());
  head += metadata_;
  uint64_t total = 0;
  for (const Tensor& tensor : tensors_) {
    AppendText(head, tensor.name);
    Append(head, static_cast<uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size) {
      Append<uint64_t>(head, static_cast<uint64_t>(*size));
    }
    Append(head, Info(tensor.type).ggml);
    Append(head, total);
    total += Aligned(tensor.bytes);
  }
  head.resize(Aligned(head.size()), '\0');

  const std::function<void(const std::string&)> write = [&](const std::string& temporary) {
    AppendFile file(temporary);
    AppendOrThrow(file, head);
    uint64_t done = 0;
    std::string buffer;
    for (const Tensor& tensor : tensors_) {
      buffer.assign(Aligned(tensor.bytes), '\0');
      tensor.fill({reinterpret_cast<uint8_t*>(buffer.data()), tensor.bytes});
      AppendOrThrow(file, buffer);
      done += buffer.size();
      if (progress) progress(done, total);
    }
  };
  WriteFileAtomic(path, write);
}

}  // namespace weft
