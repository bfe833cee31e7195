#include "language/model_files.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/check.h"
#include "base/file.h"
#include "base/memory.h"
#include "language/gguf.h"
#include "language/gguf_config.h"
#include "language/hf_config.h"
#include "language/json_keys.h"
#include "language/stored_tensors.h"

namespace weft {
namespace {

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

// Every tensor stands in the shard that the index names, and none beside.
void CheckIndex(const ShardIndex& index, const std::vector<std::pair<std::string, size_t>>& found,
                const std::string& file) {
  std::map<std::string_view, size_t> shard_of;
  for (const auto& [name, shard] : found) {
    if (!shard_of.emplace(name, shard).second) {
      throw Error(ErrorCode::kCorrupt, file + ": tensor " + name + " stands in two shards");
    }
  }
  for (const auto& [name, shard] : index.tensors) {
    const auto at = shard_of.find(name);
    if (at == shard_of.end() || at->second != shard) {
      throw Error(ErrorCode::kCorrupt,
                  file + ": tensor " + name + " is not in " + index.files[shard]);
    }
  }
}

}  // namespace

ShardIndex ReadShardIndex(const std::string& path) {
  const JsonValue json = ReadJsonFile(path);
  JsonKeys keys(json, path);
  if (const JsonValue* metadata = keys.Find("metadata")) {
    JsonKeys inner(*metadata, path, "metadata.");
    if (inner.Number("total_size").value_or(0) < 0) inner.Fail("total_size", "is negative");
  }
  const JsonValue* map = keys.Find("weight_map");
  if (!map || !map->IsObject() || map->Members().empty()) {
    keys.Fail("weight_map", "must name the file of each tensor");
  }
  ShardIndex index;
  std::set<std::string> files;
  for (const auto& [tensor, file] : map->Members()) {
    if (!file.IsString()) keys.Fail("weight_map." + tensor, "must be a file name");
    const std::string& name = file.AsString();
    if (name.find('/') != std::string::npos || name.find('\\') != std::string::npos ||
        name.find('\0') != std::string::npos || name.starts_with('.') ||
        !name.ends_with(".safetensors")) {
      keys.Fail("weight_map." + tensor, "must be the name of a .safetensors file beside the index");
    }
    files.insert(name);
  }
  index.files.assign(files.begin(), files.end());
  for (const auto& [tensor, file] : map->Members()) {
    const auto at = std::ranges::lower_bound(index.files, file.AsString());
    index.tensors.emplace_back(tensor, static_cast<size_t>(at - index.files.begin()));
  }
  return index;
}

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
  std::vector<FoundTensor> found;
  const auto add = [&](const std::string& file) {
    shards_.push_back(std::make_unique<MappedFile>(file));
    AddSafetensors(shards_.back()->bytes(), file, found);
  };
  std::string weights = path_ + "/" + kSingle;
  if (FileExists(weights)) {
    add(weights);
  } else if (FileExists(path_ + "/" + kIndex)) {
    weights = path_ + "/" + kIndex;
    const ShardIndex index = ReadShardIndex(weights);
    std::vector<std::pair<std::string, size_t>> shard_of;
    for (size_t i = 0; i < index.files.size(); ++i) {
      add(path_ + "/" + index.files[i]);
      while (shard_of.size() < found.size()) shard_of.emplace_back(found[shard_of.size()].name, i);
    }
    CheckIndex(index, shard_of, weights);
  } else {
    throw Error(ErrorCode::kIo, path_ + ": there is neither " + kSingle + " nor " + kIndex +
                                    " (weft reads no pickled weights)");
  }
  weights_ = JoinWeights(config(), FileFormat::kHuggingFace, std::move(found), {}, weights);
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
