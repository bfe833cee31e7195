// Writes the wire format of Protocol Buffers (protobuf.dev, "Encoding"): enough for TensorBoard's
// events and ONNX models, without generated code. Field numbers and types come from the .proto of
// the format.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weft {

// One message, field by field, in any order. Not thread-safe.
class ProtobufWriter {
 public:
  // int32, int64, uint64, bool and enum fields; negative numbers take ten bytes, as the format
  // says.
  void Varint(int field, int64_t value);
  void Double(int field, double value);
  void Float(int field, float value);
  // string and bytes fields, and a message that was written elsewhere.
  void Bytes(int field, std::string_view bytes);
  void Message(int field, const ProtobufWriter& message) { Bytes(field, message.bytes()); }
  // repeated int64 and float fields, packed.
  void PackedVarints(int field, std::span<const int64_t> values);
  void PackedFloats(int field, std::span<const float> values);

  const std::string& bytes() const { return bytes_; }
  void Clear() { bytes_.clear(); }  // keeps the memory

 private:
  void Tag(int field, int wire_type);
  void AppendVarint(uint64_t value);

  std::string bytes_;
};

// value as little-endian bytes, the order of every fixed-width number in these formats.
template <class T>
void AppendLittleEndian(T value, std::string& bytes) {
  static_assert(std::endian::native == std::endian::little);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace weft
