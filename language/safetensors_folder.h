// The weights of a Hugging Face folder: model.safetensors, or the shards that its index names.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "language/stored_tensors.h"

namespace weft {

struct SafetensorsFolder {
  std::string file;  // what stands for the weights in messages: the file, or the index
  std::vector<std::unique_ptr<MappedFile>> shards;
  std::vector<FoundTensor> tensors;  // views of the shards
};

// Throws Error(kIo) for a folder without such files, Error(kCorrupt) where shards and index
// disagree, and as AddSafetensors.
SafetensorsFolder OpenSafetensorsFolder(const std::string& folder);

// The shards that an index (model.safetensors.index.json) names, each once, in the order of their
// names. Each must be a plain file name that ends in .safetensors.
struct ShardIndex {
  std::vector<std::string> files;
  std::vector<std::pair<std::string, size_t>> tensors;  // name, index into files
};
ShardIndex ReadShardIndex(const std::string& path);

}  // namespace weft
