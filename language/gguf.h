// GGUF, versions 2 and 3, little-endian (ggml's docs/gguf.md): metadata by key, then descriptions
// of tensors, then their bytes at aligned offsets. A file is mapped and checked whole when it is
// opened: counts, lengths, offsets and shapes against the bytes that are there, before anything is
// allocated; keys and tensor names are unique, tensors do not overlap, nothing stands behind the
// last. Faults are Error(kCorrupt) with file, byte and reason; a tensor type that weft does not
// read is Error(kInvalidArgument) naming it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "language/weight_type.h"

namespace weft {

class MappedFile;

enum class GgufType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

size_t GgufScalarBytes(GgufType type);  // 0 for strings and arrays

// A value as it stands in the file: views into the mapping, valid as long as the GgufFile. Each Get
// returns false, leaving the result alone, when the value is of another kind or does not fit.
struct GgufValue {
  GgufType type = GgufType::kU8;  // of the elements when array
  bool array = false;
  uint64_t count = 1;              // elements
  std::span<const uint8_t> bytes;  // of the elements; a string is its u64 length and its bytes

  bool GetInteger(int64_t& value) const;  // any integer type
  bool GetDouble(double& value) const;    // any number
  bool GetBool(bool& value) const;
  bool GetString(std::string_view& value) const;
  bool GetStrings(std::vector<std::string>& values) const;
  bool GetIntegers(std::vector<int64_t>& values) const;
  bool GetFloats(std::vector<float>& values) const;
  std::string KindName() const;  // "u32", "an array of string"
};

struct GgufTensor {
  std::string name;            // at most 64 bytes
  std::vector<int64_t> shape;  // as torch has it: [out, in], rows of the last dimension; <= 4
  WeightType type = WeightType::kF32;
  std::span<const uint8_t> bytes;  // rows in order, blocks along a row
  uint64_t offset = 0;             // of bytes in the file
};

class GgufFile {
 public:
  // Maps the file; Error(kIo) when it cannot be read.
  explicit GgufFile(const std::string& path);
  // Bytes that outlive this; name stands for the file in messages.
  GgufFile(std::span<const uint8_t> bytes, std::string name);
  ~GgufFile();
  GgufFile(const GgufFile&) = delete;
  GgufFile& operator=(const GgufFile&) = delete;

  const std::string& name() const { return name_; }
  uint32_t version() const { return version_; }
  uint32_t alignment() const { return alignment_; }
  std::span<const std::pair<std::string, GgufValue>> metadata() const { return metadata_; }
  const GgufValue* Find(std::string_view key) const;  // null when absent
  std::span<const GgufTensor> tensors() const { return tensors_; }
  const GgufTensor* FindTensor(std::string_view name) const;
  // Takes what was read of a mapped file out of the resident set.
  void ReleasePages() const;

 private:
  void Parse(std::span<const uint8_t> bytes);
  void ReadAlignment();
  // Checks where the tensors lie; the descriptions end at byte `described`.
  void PlaceTensors(std::span<const uint8_t> bytes, uint64_t described);

  std::unique_ptr<MappedFile> mapping_;
  std::string name_;
  uint32_t version_ = 0, alignment_ = 32;
  std::vector<std::pair<std::string, GgufValue>> metadata_;  // in the file's order
  std::vector<GgufTensor> tensors_;
  std::vector<uint32_t> keys_by_name_, tensors_by_name_;
};

}  // namespace weft
