// A model opened from a Hugging Face folder (config.json, model.safetensors or its shards,
// generation_config.json, tokenizer files) or from a GGUF file. Weights stay where they are: files
// are mapped and rows are read when they are asked for, so opening takes milliseconds.
//
// Files are not trusted. Every tensor of a file must be one that its config asks for, in its shape,
// or a buffer that is known to be needless; what is missing, unexpected or of another shape is
// listed in one Error(kCorrupt). What weft does not support is Error(kInvalidArgument) naming file
// and key.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "language/gguf_tokenizer.h"
#include "language/model_description.h"
#include "language/stored_weight.h"

namespace weft {

class GgufFile;
class MappedFile;

class ModelFile {
 public:
  // path: a folder, or a .gguf file (see model_name.h for names). Error(kIo) when it cannot be
  // read.
  static std::unique_ptr<ModelFile> Open(const std::string& path);
  ~ModelFile();

  const std::string& path() const { return path_; }
  FileFormat format() const { return gguf_ ? FileFormat::kGguf : FileFormat::kHuggingFace; }
  const ModelDescription& description() const { return description_; }
  const ModelConfig& config() const { return description_.config; }
  const GenerationDefaults& generation() const { return description_.generation; }

  // All weights in the order of ModelWeights (weight_layout.h); views that live as long as this.
  std::span<const StoredWeight> weights() const { return weights_; }
  const StoredWeight& Find(
      std::string_view name) const;  // a canonical name; throws when there is none
  // The type of most of the matrices' elements, such as Q4_1.
  WeightType main_type() const;

  // Takes what was read of the files out of the resident set.
  void ReleasePages() const;

  // The GGUF, or null: its tokenizer is ReadGgufTokenizer(*gguf()).
  const GgufFile* gguf() const { return gguf_.get(); }

 private:
  ModelFile() = default;
  void OpenFolder();
  void OpenGguf();

  std::string path_;
  ModelDescription description_;
  std::vector<StoredWeight> weights_;
  std::unique_ptr<GgufFile> gguf_;
  std::vector<std::unique_ptr<MappedFile>> shards_;
};

}  // namespace weft
