#include "language/model_files.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/check.h"
#include "base/file.h"
#include "base/memory.h"
#include "language/gguf.h"
#include "language/gguf_config.h"
#include "language/hf_config.h"
#include "language/safetensors_folder.h"

namespace weft {

std::unique_ptr<ModelFile> ModelFile::Open(const std::string& path) {
  std::unique_ptr<ModelFile> model(new ModelFile);
  model->path_ = path;
  if (DirectoryExists(path)) {
    model->OpenFolder();
  } else {
    model->OpenGguf();
  }
  return model;
}

ModelFile::~ModelFile() = default;

void ModelFile::OpenFolder() {
  const std::string config_file = path_ + "/config.json";
  description_ = ReadHfConfig(ReadJsonFile(config_file), config_file);
  if (const std::string file = path_ + "/generation_config.json"; FileExists(file)) {
    ReadHfGeneration(ReadJsonFile(file), file, description_);
  }
  SafetensorsFolder folder = OpenSafetensorsFolder(path_);
  shards_ = std::move(folder.shards);
  weights_ =
      JoinWeights(config(), FileFormat::kHuggingFace, std::move(folder.tensors), {}, folder.file);
}

void ModelFile::OpenGguf() {
  gguf_ = std::make_unique<GgufFile>(path_);
  description_ = ReadGgufConfig(*gguf_);
  std::vector<FoundTensor> found;
  for (const GgufTensor& tensor : gguf_->tensors()) {
    found.push_back({tensor.name, tensor.shape, tensor.type, tensor.bytes});
  }
  const std::array<std::string, 1> used = {"rope_freqs.weight"};
  weights_ = JoinWeights(config(), FileFormat::kGguf, std::move(found), used, path_);
}

const StoredWeight& ModelFile::Find(std::string_view name) const {
  const auto found = std::ranges::find(weights_, name, &StoredWeight::name);
  WEFT_CHECK(found != weights_.end()) << path_ << " has no weight " << name;
  return *found;
}

void ModelFile::ReleasePages() const {
  if (gguf_) gguf_->ReleasePages();
  for (const auto& shard : shards_) weft::ReleasePages(shard->bytes());
}

WeightType ModelFile::main_type() const {
  std::map<WeightType, int64_t> elements;
  for (const StoredWeight& weight : weights_) {
    if (weight.shape().size() == 2) elements[weight.type()] += weight.elements();
  }
  const auto most =
      std::ranges::max_element(elements, {}, [](const auto& entry) { return entry.second; });
  return most == elements.end() ? WeightType::kF32 : most->first;
}

}  // namespace weft
