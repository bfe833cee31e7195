#include "base/protobuf.h"

namespace weft {
namespace {

// Wire types.
constexpr int kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5;

size_t VarintSize(uint64_t value) {
  return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7;
}

}  // namespace

void ProtobufWriter::AppendVarint(uint64_t value) {
  while (value >= 0x80) {
    bytes_ += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  bytes_ += static_cast<char>(value);
}

void ProtobufWriter::Tag(int field, int wire_type) {
  AppendVarint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire_type));
}

void ProtobufWriter::Varint(int field, int64_t value) {
  Tag(field, kVarint);
  AppendVarint(static_cast<uint64_t>(value));
}

void ProtobufWriter::Double(int field, double value) {
  Tag(field, kFixed64);
  AppendLittleEndian(value, bytes_);
}

void ProtobufWriter::Float(int field, float value) {
  Tag(field, kFixed32);
  AppendLittleEndian(value, bytes_);
}

void ProtobufWriter::Bytes(int field, std::string_view bytes) {
  Tag(field, kLengthDelimited);
  AppendVarint(bytes.size());
  bytes_ += bytes;
}

void ProtobufWriter::PackedVarints(int field, std::span<const int64_t> values) {
  size_t size = 0;
  for (const int64_t value : values) size += VarintSize(static_cast<uint64_t>(value));
  Tag(field, kLengthDelimited);
  AppendVarint(size);
  for (const int64_t value : values) AppendVarint(static_cast<uint64_t>(value));
}

void ProtobufWriter::PackedFloats(int field, std::span<const float> values) {
  Tag(field, kLengthDelimited);
  AppendVarint(values.size_bytes());
  for (const float value : values) AppendLittleEndian(value, bytes_);
}

}  // namespace weft
