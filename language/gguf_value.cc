// Values of GGUF metadata (gguf.h).
#include <cstring>
#include <limits>

#include "language/gguf.h"

namespace weft {
namespace {

constexpr std::string_view kTypeNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                           "bool", "string", "array", "u64", "i64", "f64"};

constexpr size_t kScalarBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

template <class T>
T Load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// The n-th element as an integer; false for floats and what int64 does not hold.
bool IntegerAt(const GgufValue& value, uint64_t index, int64_t& out) {
  const uint8_t* at = value.bytes.data() + index * GgufScalarBytes(value.type);
  switch (value.type) {
    case GgufType::kU8:
      out = Load<uint8_t>(at);
      return true;
    case GgufType::kI8:
      out = Load<int8_t>(at);
      return true;
    case GgufType::kU16:
      out = Load<uint16_t>(at);
      return true;
    case GgufType::kI16:
      out = Load<int16_t>(at);
      return true;
    case GgufType::kU32:
      out = Load<uint32_t>(at);
      return true;
    case GgufType::kI32:
      out = Load<int32_t>(at);
      return true;
    case GgufType::kI64:
      out = Load<int64_t>(at);
      return true;
    case GgufType::kU64: {
      const auto wide = Load<uint64_t>(at);
      if (wide > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return false;
      out = static_cast<int64_t>(wide);
      return true;
    }
    default:
      return false;
  }
}

bool DoubleAt(const GgufValue& value, uint64_t index, double& out) {
  const uint8_t* at = value.bytes.data() + index * GgufScalarBytes(value.type);
  if (value.type == GgufType::kF32) {
    out = Load<float>(at);
  } else if (value.type == GgufType::kF64) {
    out = Load<double>(at);
  } else {
    int64_t integer = 0;
    if (!IntegerAt(value, index, integer)) return false;
    out = static_cast<double>(integer);
  }
  return true;
}

}  // namespace

size_t GgufScalarBytes(GgufType type) {
  return kScalarBytes[static_cast<size_t>(type)];
}

bool GgufValue::GetInteger(int64_t& value) const {
  return !array && IntegerAt(*this, 0, value);
}
bool GgufValue::GetDouble(double& value) const {
  return !array && DoubleAt(*this, 0, value);
}

bool GgufValue::GetBool(bool& value) const {
  if (array || type != GgufType::kBool) return false;
  value = bytes[0] != 0;
  return true;
}

bool GgufValue::GetString(std::string_view& value) const {
  if (array || type != GgufType::kString) return false;
  value = {reinterpret_cast<const char*>(bytes.data()) + sizeof(uint64_t),
           bytes.size() - sizeof(uint64_t)};
  return true;
}

bool GgufValue::GetStrings(std::vector<std::string>& values) const {
  if (!array || type != GgufType::kString) return false;
  values.clear();
  values.reserve(count);
  for (const uint8_t* at = bytes.data(); values.size() < count;) {
    const auto length = Load<uint64_t>(at);
    at += sizeof(length);
    values.emplace_back(reinterpret_cast<const char*>(at), length);
    at += length;
  }
  return true;
}

bool GgufValue::GetIntegers(std::vector<int64_t>& values) const {
  if (!array) return false;
  std::vector<int64_t> read;
  read.reserve(type == GgufType::kString || type == GgufType::kArray ? 0 : count);
  for (uint64_t i = 0; i < count; ++i) {
    if (!IntegerAt(*this, i, read.emplace_back())) return false;
  }
  values = std::move(read);
  return true;
}

bool GgufValue::GetFloats(std::vector<float>& values) const {
  if (!array || type != GgufType::kF32) return false;
  values.resize(count);
  if (count > 0) std::memcpy(values.data(), bytes.data(), count * sizeof(float));
  return true;
}

std::string GgufValue::KindName() const {
  const std::string name(kTypeNames[static_cast<size_t>(type)]);
  return array ? "an array of " + name : name;
}

}  // namespace weft
