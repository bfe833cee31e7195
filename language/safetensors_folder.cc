#include "language/safetensors_folder.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "base/check.h"
#include "language/json_keys.h"

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

SafetensorsFolder OpenSafetensorsFolder(const std::string& folder) {
  SafetensorsFolder opened;
  const auto add = [&](const std::string& file) {
    opened.shards.push_back(std::make_unique<MappedFile>(file));
    AddSafetensors(opened.shards.back()->bytes(), file, opened.tensors);
  };
  opened.file = folder + "/" + kSingle;
  if (FileExists(opened.file)) {
    add(opened.file);
    return opened;
  }
  opened.file = folder + "/" + kIndex;
  if (!FileExists(opened.file)) {
    throw Error(ErrorCode::kIo, folder + ": there is neither " + kSingle + " nor " + kIndex +
                                    " (weft reads no pickled weights)");
  }
  const ShardIndex index = ReadShardIndex(opened.file);
  std::vector<std::pair<std::string, size_t>> shard_of;
  for (size_t i = 0; i < index.files.size(); ++i) {
    add(folder + "/" + index.files[i]);
    while (shard_of.size() < opened.tensors.size()) {
      shard_of.emplace_back(opened.tensors[shard_of.size()].name, i);
    }
  }
  CheckIndex(index, shard_of, opened.file);
  return opened;
}

}  // namespace weft
