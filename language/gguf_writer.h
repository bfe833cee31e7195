// Writes GGUF version 3: metadata in the order it is set, then tensors in the order they are added.
// Equal calls give equal bytes. Tensors are made one at a time while the file is written, so
// memory holds one tensor, not the model.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "language/gguf.h"
#include "language/weight_type.h"

namespace weft {

class AppendFile;

// Error(kIo) where AppendFile::Append gives a reason.
void AppendOrThrow(AppendFile& file, std::string_view bytes);

class GgufWriter {
 public:
  // Each key is set once; throws kInvalidArgument the second time.
  void SetU32(std::string_view key, int64_t value);
  void SetF32(std::string_view key, double value);
  void SetBool(std::string_view key, bool value);
  void SetString(std::string_view key, std::string_view value);
  void SetStrings(std::string_view key, std::span<const std::string> values);
  void SetI32s(std::string_view key, std::span<const int32_t> values);
  void SetF32s(std::string_view key, std::span<const float> values);
  void Copy(std::string_view key, const GgufValue& value);

  // shape as torch has it, [out, in]; fill writes all rows into the bytes it is given.
  using FillFunction = std::function<void(std::span<uint8_t>)>;
  void AddTensor(std::string name, std::vector<int64_t> shape, WeightType type, FillFunction fill);

  // Whole or not at all. progress(bytes done, bytes in all) is called after each tensor.
  void Write(const std::string& path,
             const std::function<void(uint64_t, uint64_t)>& progress = {}) const;

 private:
  struct Tensor {
    std::string name;
    std::vector<int64_t> shape;
    WeightType type;
    FillFunction fill;
    uint64_t bytes;
  };
  std::string& Begin(std::string_view key, GgufType type);
  std::string& BeginArray(std::string_view key, GgufType type, uint64_t count);

  std::vector<std::string> keys_;
  std::string metadata_;  // encoded
  std::vector<Tensor> tensors_;
};

}  // namespace weft
