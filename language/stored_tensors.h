// Joins what a model's files hold with what its config asks for.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "language/model_config.h"
#include "language/stored_weight.h"

namespace weft {

// A tensor that a file holds, whatever the container.
struct FoundTensor {
  std::string name;
  std::vector<int64_t> shape;
  WeightType type = WeightType::kF32;
  std::span<const uint8_t> bytes;
};

// Appends the tensors of a safetensors file in F32, F16 or BF16, views of `bytes`; needless buffers
// are left out, another dtype is Error(kInvalidArgument).
void AddSafetensors(std::span<const uint8_t> bytes, const std::string& file,
                    std::vector<FoundTensor>& found);

// The weights of a layout, each tensor's parts one after the other, in its order. `prefix` may be
// missing before names of the file, all or some. `beyond` says of a tensor that the layout does not
// have what the error calls it, or "" for one that is needless. Throws Error(kCorrupt) that lists
// all tensors that are missing, unexpected or of the wrong shape.
std::vector<StoredWeight> JoinLayout(const std::vector<StoredTensor>& layout,
                                     std::string_view prefix, std::vector<FoundTensor> found,
                                     const std::function<std::string(const FoundTensor&)>& beyond,
                                     const std::string& file);

// The weights of the config in the order of ModelWeights. `file` names the model in messages.
// `used` are names that were read otherwise (rope_freqs). Throws as JoinLayout.
std::vector<StoredWeight> JoinWeights(const ModelConfig& config, FileFormat format,
                                      std::vector<FoundTensor> found,
                                      std::span<const std::string> used, const std::string& file);

}  // namespace weft
