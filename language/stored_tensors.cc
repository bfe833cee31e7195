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

std::vector<StoredWeight> JoinLayout(const std::vector<StoredTensor>& layout,
                                     std::string_view prefix, std::vector<FoundTensor> tensors,
                                     const std::function<std::string(const FoundTensor&)>& beyond,
                                     const std::string& file) {
  FoundByName found;
  for (FoundTensor& tensor : tensors) {
    std::string name = tensor.name;
    found.emplace(std::move(name), std::move(tensor));
  }
  std::set<std::string> wanted;
  for (const StoredTensor& tensor : layout) wanted.insert(tensor.name);
  AddPrefix(prefix, found, wanted);

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
  for (const auto& [name, tensor] : found) {
    if (wanted.contains(name)) continue;
    if (std::string what = beyond(tensor); !what.empty()) unexpected.push_back(std::move(what));
  }
  if (!missing.empty() || !misshaped.empty() || !unexpected.empty()) {
    std::string lists = Listed("tensors are missing", missing) +
                        Listed("have another shape", misshaped) +
                        Listed("are not expected", unexpected);
    throw Error(ErrorCode::kCorrupt, file + ": the tensors are not those of its config" + lists);
  }
  return weights;
}

std::vector<StoredWeight> JoinWeights(const ModelConfig& config, FileFormat format,
                                      std::vector<FoundTensor> found,
                                      std::span<const std::string> used, const std::string& file) {
  const std::vector<StoredTensor> layout = StoredLayout(config, format);
  const std::string_view head = HeadName(config, format);
  const std::string_view prefix =
      format == FileFormat::kHuggingFace ? OptionalPrefix(config) : std::string_view();
  // A tied head may stand beside the embedding if it is the same.
  const std::string& embedding_name = layout[0].name;
  const auto stored = std::ranges::find_if(found, [&](const FoundTensor& tensor) {
    return tensor.name == embedding_name || std::string(prefix) + tensor.name == embedding_name;
  });
  const FoundTensor embedding = stored == found.end() ? FoundTensor() : *stored;
  const auto beyond = [&](const FoundTensor& tensor) -> std::string {
    const bool read = std::ranges::find(used, tensor.name) != used.end();
    if (read || IsIgnorableTensor(tensor.name, format)) return "";
    if (tensor.name != head) return tensor.name;
    if (config.labels > 0) return "";  // left over from pretraining
    if (!config.tied) return tensor.name;
    const bool same =
        embedding.type == tensor.type && std::ranges::equal(embedding.bytes, tensor.bytes);
    return same ? "" : tensor.name + " (differs from the embedding, which the config ties it to)";
  };
  std::vector<StoredWeight> weights = JoinLayout(layout, prefix, std::move(found), beyond, file);
  // Fused tensors give their parts one after the other; the order of the model is by weight.
  std::map<std::string, size_t, std::less<>> place;
  for (const WeightSpec& spec : ModelWeights(config)) place.emplace(spec.name, place.size());
  std::ranges::sort(weights, {},
                    [&](const StoredWeight& weight) { return place.at(weight.name()); });
  return weights;
}

}  // namespace weft
