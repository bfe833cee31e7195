#include "language/stored_tensors.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"
#include "base/text.h"
#include "nn/safetensors.h"

namespace weft {
namespace {

WeightType TypeOf(const SafetensorsEntry& entry, const std::string& file) {
  if (entry.dtype == "F32") return WeightType::kF32;
  if (entry.dtype == "F16") return WeightType::kF16;
  if (entry.dtype == "BF16") return WeightType::kBF16;
  throw Error(ErrorCode::kInvalidArgument, file + ": tensor " + entry.name + " has dtype " +
                                               std::string(entry.dtype) +
                                               "; weft reads weights in F32, F16 and BF16");
}

using FoundByName = std::map<std::string, FoundTensor, std::less<>>;

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const int64_t size : shape) sizes.push_back(std::to_string(size));
  return "[" + Join(sizes, ", ") + "]";
}

// At most ten of the names, and how many there are.
std::string Listed(const char* what, const std::vector<std::string>& names) {
  constexpr size_t kListed = 10;
  if (names.empty()) return "";
  const std::vector<std::string> first(names.begin(),
                                       names.begin() + std::min(names.size(), kListed));
  const size_t others = names.size() - first.size();
  return "; " + std::to_string(names.size()) + " " + what + ": " + Join(first, ", ") +
         (others > 0 ? " and " + std::to_string(others) + " more" : "");
}

// The output matrix of a model whose config ties it to the embedding.
std::string_view HeadName(const ModelConfig& config, FileFormat format) {
  if (format == FileFormat::kGguf) return "output.weight";
  return config.family == "gpt_neox" ? "embed_out.weight" : "lm_head.weight";
}

// Older files leave out the prefix of all names, or hold it in some and not in others.
void AddPrefix(std::string_view prefix, FoundByName& found, const std::set<std::string>& wanted) {
  if (prefix.empty()) return;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : found) {
    const std::string full = std::string(prefix) + name;
    if (!wanted.contains(name) && wanted.contains(full) && !found.contains(full)) {
      names.push_back(name);
    }
  }
  for (const std::string& name : names) {
    auto node = found.extract(name);
    node.key() = std::string(prefix) + name;
    found.insert(std::move(node));
  }
}

}  // namespace

void AddSafetensors(std::span<const uint8_t> bytes, const std::string& file,
                    std::vector<FoundTensor>& found) {
  const SafetensorsHeader header = ParseSafetensorsHeader(bytes, file);
  for (const SafetensorsEntry& entry : header.entries) {
    if (IsIgnorableTensor(entry.name, FileFormat::kHuggingFace)) continue;
    FoundTensor& tensor = found.emplace_back();
    tensor.name = entry.name;
    for (int d = 0; d < entry.shape.rank(); ++d) tensor.shape.push_back(entry.shape[d]);
    tensor.type = TypeOf(entry, file);
    tensor.bytes = bytes.subspan(header.data_begin + entry.begin, entry.end - entry.begin);
  }
}

std::vector<StoredWeight> JoinWeights(const ModelConfig& config, FileFormat format,
                                      std::vector<FoundTensor> tensors,
                                      std::span<const std::string> used, const std::string& file) {
  FoundByName found;
  for (FoundTensor& tensor : tensors) {
    std::string name = tensor.name;
    found.emplace(std::move(name), std::move(tensor));
  }
  const std::vector<StoredTensor> layout = StoredLayout(config, format);
  std::set<std::string> wanted;
  for (const StoredTensor& tensor : layout) wanted.insert(tensor.name);
  if (format == FileFormat::kHuggingFace) AddPrefix(OptionalPrefix(config), found, wanted);

  std::vector<StoredWeight> weights;
  std::vector<std::string> missing, misshaped, unexpected;
  for (const StoredTensor& tensor : layout) {
    const auto at = found.find(tensor.name);
    if (at == found.end()) {
      missing.push_back(tensor.name);
    } else if (at->second.shape != tensor.shape) {
      misshaped.push_back(tensor.name + " " + ShapeText(at->second.shape) + ", not " +
                          ShapeText(tensor.shape));
    } else {
      for (const StoredPart& part : tensor.parts) {
        weights.emplace_back(tensor, part, at->second.type, at->second.bytes.data(), file);
      }
    }
  }
  const std::string_view head = HeadName(config, format);
  const FoundTensor* embedding = layout.empty() || !found.contains(layout[0].name)
                                     ? nullptr
                                     : &found.find(layout[0].name)->second;
  for (const auto& [name, tensor] : found) {
    if (wanted.contains(name) || std::ranges::find(used, name) != used.end() ||
        IsIgnorableTensor(name, format)) {
      continue;
    }
    if (name == head && config.labels > 0) continue;  // left over from pretraining
    if (name == head && config.tied && embedding && embedding->type == tensor.type &&
        std::ranges::equal(embedding->bytes, tensor.bytes)) {
      continue;
    }
    unexpected.push_back(name == head && config.tied
                             ? name + " (differs from the embedding, which the config ties it to)"
                             : name);
  }
  if (!missing.empty() || !misshaped.empty() || !unexpected.empty()) {
    std::string lists = Listed("tensors are missing", missing) +
                        Listed("have another shape", misshaped) +
                        Listed("are not expected", unexpected);
    throw Error(ErrorCode::kCorrupt, file + ": the tensors are not those of its config" + lists);
  }
  // Fused tensors give their parts one after the other; the order of the model is by weight.
  std::map<std::string, size_t, std::less<>> place;
  for (const WeightSpec& spec : ModelWeights(config)) place.emplace(spec.name, place.size());
  std::ranges::sort(weights, {},
                    [&](const StoredWeight& weight) { return place.at(weight.name()); });
  return weights;
}

}  // namespace weft
