#include "language/lora_files.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/check.h"
#include "base/file.h"
#include "base/text.h"
#include "language/json_keys.h"
#include "language/stored_tensors.h"
#include "language/weight_blocks.h"
#include "language/weight_layout.h"
#include "nn/safetensors.h"

namespace weft {
namespace {

constexpr const char* kConfigFile = "adapter_config.json";
constexpr const char* kWeightsFile = "adapter_model.safetensors";
constexpr std::string_view kPrefix = "base_model.model.";
constexpr std::string_view kA = ".lora_A.weight", kB = ".lora_B.weight";
constexpr int64_t kMaxRank = 1 << 16;

// Off, these change nothing; on, they change what an adapter is.
constexpr const char* kUnsupported[] = {"alora_invocation_tokens",
                                        "alpha_pattern",
                                        "arrow_config",
                                        "corda_config",
                                        "ensure_weight_tying",
                                        "kasa_config",
                                        "layer_replication",
                                        "lora_bias",
                                        "lora_ga_config",
                                        "megatron_config",
                                        "modules_to_save",
                                        "monteclora_config",
                                        "rank_pattern",
                                        "target_parameters",
                                        "trainable_token_indices",
                                        "use_bdlora",
                                        "use_dora",
                                        "use_qalora",
                                        "velora_config"};
// Which matrices were chosen, and how training went: the tensors tell the first.
constexpr const char* kIrrelevant[] = {"auto_mapping",        "eva_config",     "exclude_modules",
                                       "fan_in_fan_out",      "inference_mode", "layers_pattern",
                                       "layers_to_transform", "megatron_core",  "peft_version",
                                       "qalora_group_size",   "revision",       "runtime_config",
                                       "target_modules",      "task_type"};

bool IsOff(const JsonValue& value) {
  if (value.IsBool()) return !value.AsBool();
  if (value.IsArray()) return value.Items().empty();
  return value.IsObject() && value.Members().empty();
}

LoraAdapter ReadConfig(const std::string& file) {
  const JsonValue json = ReadJsonFile(file);
  JsonKeys keys(json, file);
  const std::string type = keys.String("peft_type").value_or("");
  if (type != "LORA") keys.Refuse("peft_type", "\"" + type + "\" is not supported; weft has LORA");
  LoraAdapter adapter;
  adapter.rank = keys.RequiredInteger("r", 1, kMaxRank);
  adapter.alpha = keys.Number("lora_alpha").value_or(8);  // PEFT's default
  adapter.rank_stabilised = keys.Bool("use_rslora").value_or(false);
  adapter.dropout = keys.Number("lora_dropout").value_or(0);
  adapter.base_model = keys.String("base_model_name_or_path").value_or("");
  if (const std::string bias = keys.String("bias").value_or("none"); bias != "none") {
    keys.Refuse("bias", "\"" + bias + "\" is not supported");
  }
  for (const char* key : kUnsupported) {
    const JsonValue* value = keys.Find(key);
    if (value && !IsOff(*value)) keys.Refuse(key, "is not supported");
  }
  if (const JsonValue* loftq = keys.Find("loftq_config"); loftq && !IsOff(*loftq)) {
    keys.Refuse("loftq_config", "is not supported");
  }
  // The others begin with changed weights of the base model.
  if (const JsonValue* start = keys.Find("init_lora_weights"); start && start->IsString()) {
    const std::string& name = start->AsString();
    if (name != "gaussian" && name != "eva" && name != "orthogonal") {
      keys.Refuse("init_lora_weights", "\"" + name + "\" is not supported");
    }
  }
  for (const char* key : kIrrelevant) keys.Find(key);
  for (const std::string& key : keys.Unread()) {
    if (!IsOff(*json.Find(key))) keys.Refuse(key, "is not known");
  }
  return adapter;
}

std::vector<float> Values(const FoundTensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.shape[0] * tensor.shape[1]));
  DequantiseRow(tensor.type, tensor.bytes.data(), std::ssize(values), values.data());
  return values;
}

// The module of transformers that holds a stored tensor's weight: the name without ".weight".
std::string ModuleOf(const StoredTensor& tensor) {
  return tensor.name.substr(0, tensor.name.size() - std::string_view(".weight").size());
}

// Matrices that an adapter may change: of attention and feed-forward.
bool IsAdaptable(const StoredTensor& tensor) {
  return tensor.shape.size() == 2 && tensor.parts[0].weight.name.starts_with("model.layers.");
}

std::vector<float> Rows(const std::vector<float>& b, const StoredPart& part, int64_t rank) {
  std::vector<float> rows;
  for (int64_t row = 0; row < part.weight.shape[0]; ++row) {
    const auto begin = b.begin() + part.rows.Stored(row) * rank;
    rows.insert(rows.end(), begin, begin + rank);
  }
  return rows;
}

}  // namespace

double LoraAdapter::scale() const {
  const auto r = static_cast<double>(rank);
  return rank_stabilised ? alpha / std::sqrt(r) : alpha / r;
}

LoraAdapter ReadLoraAdapter(const std::string& folder, const ModelConfig& config) {
  LoraAdapter adapter = ReadConfig(folder + "/" + kConfigFile);
  const std::string file = folder + "/" + kWeightsFile;
  const MappedFile mapping(file);
  std::vector<FoundTensor> tensors;
  AddSafetensors(mapping.bytes(), file, tensors);
  std::map<std::string, const FoundTensor*, std::less<>> found;
  for (const FoundTensor& tensor : tensors) found.emplace(tensor.name, &tensor);

  std::vector<std::string> faults;
  for (const StoredTensor& stored : StoredLayout(config, FileFormat::kHuggingFace)) {
    if (!IsAdaptable(stored)) continue;
    const std::string module = std::string(kPrefix) + ModuleOf(stored);
    const auto a = found.find(module + std::string(kA)), b = found.find(module + std::string(kB));
    if (a == found.end() && b == found.end()) continue;
    const int64_t in = stored.parts[0].weight.shape[1];
    int64_t out = 0;
    for (const StoredPart& part : stored.parts) out += part.weight.shape[0];
    if (a == found.end() || b == found.end()) {
      faults.push_back(module + " has one of lora_A and lora_B only");
    } else if (a->second->shape != std::vector<int64_t>{adapter.rank, in} ||
               b->second->shape != std::vector<int64_t>{out, adapter.rank}) {
      faults.push_back(module + " does not have the shapes [" + std::to_string(adapter.rank) +
                       ", " + std::to_string(in) + "] and [" + std::to_string(out) + ", " +
                       std::to_string(adapter.rank) + "]");
    } else {
      const std::vector<float> values = Values(*b->second);
      for (const StoredPart& part : stored.parts) {
        adapter.matrices.push_back({part.weight.name, in, part.weight.shape[0], Values(*a->second),
                                    Rows(values, part, adapter.rank)});
      }
    }
    if (a != found.end()) found.erase(a);
    found.erase(module + std::string(kB));
  }
  for (const auto& [name, tensor] : found) faults.push_back(name + " is not expected");
  if (adapter.matrices.empty() && faults.empty()) faults.emplace_back("there are no tensors");
  if (!faults.empty()) {
    const size_t count = faults.size();
    faults.resize(std::min<size_t>(count, 10));
    throw Error(ErrorCode::kCorrupt, file + ": the adapter does not fit the model: " +
                                         Join(faults, "; ") + (count > 10 ? "; ..." : ""));
  }
  return adapter;
}

void AttachLoraAdapter(const Context& context, const LoraAdapter& adapter, Transformer& model) {
  for (const LoraMatrix& matrix : adapter.matrices) {
    model.AttachAdapter(context, matrix.weight, matrix.a, matrix.b,
                        static_cast<float>(adapter.scale()));
  }
}

std::vector<StoredWeight> MergeLoraAdapter(std::span<const StoredWeight> weights,
                                           const LoraAdapter& adapter) {
  std::vector<StoredWeight> merged;
  for (const StoredWeight& weight : weights) {
    const auto found = std::ranges::find(adapter.matrices, weight.name(), &LoraMatrix::weight);
    if (found == adapter.matrices.end()) {
      merged.push_back(weight);
      continue;
    }
    const auto read = [&weight, matrix = &*found, rank = adapter.rank, scale = adapter.scale()](
                          int64_t begin, int64_t end, float* out) {
      weight.ReadRows(begin, end, out);
      std::vector<double> sum(static_cast<size_t>(matrix->in));
      for (int64_t row = begin; row < end; ++row) {
        std::ranges::fill(sum, 0.0);
        for (int64_t r = 0; r < rank; ++r) {
          const auto b = static_cast<double>(matrix->b[row * rank + r]);
          const float* const a = matrix->a.data() + r * matrix->in;
          for (int64_t i = 0; i < matrix->in; ++i) sum[i] += b * static_cast<double>(a[i]);
        }
        float* const to = out + (row - begin) * matrix->in;
        for (int64_t i = 0; i < matrix->in; ++i) {
          to[i] = static_cast<float>(static_cast<double>(to[i]) + scale * sum[i]);
        }
      }
    };
    merged.emplace_back(WeightSpec{weight.name(), weight.shape()}, read, weight.type());
  }
  return merged;
}

void WriteLoraAdapter(const std::string& folder, const LoraAdapter& adapter,
                      const ModelConfig& config) {
  std::map<std::string_view, const LoraMatrix*, std::less<>> matrices;
  for (const LoraMatrix& matrix : adapter.matrices) matrices.emplace(matrix.weight, &matrix);
  TensorMap tensors;
  std::set<std::string> targets;
  size_t written = 0;
  for (const StoredTensor& stored : StoredLayout(config, FileFormat::kHuggingFace)) {
    if (!IsAdaptable(stored)) continue;
    std::vector<const LoraMatrix*> parts;
    int64_t out = 0;
    for (const StoredPart& part : stored.parts) {
      const auto found = matrices.find(part.weight.name);
      if (found != matrices.end()) parts.push_back(found->second);
      out += part.weight.shape[0];
    }
    if (parts.empty()) continue;
    const bool together = parts.size() == stored.parts.size() &&
                          std::ranges::all_of(parts, [&](const LoraMatrix* matrix) {
                            return matrix->a == parts[0]->a;
                          });
    const std::string module = ModuleOf(stored);
    if (!together) {
      throw Error(ErrorCode::kInvalidArgument,
                  "PEFT's format has one adapter for " + module + ", which holds " +
                      std::to_string(stored.parts.size()) +
                      " matrices of the model: they must be adapted together, with one A");
    }
    Tensor a = Tensor::Empty({adapter.rank, parts[0]->in}, DType::kFloat32);
    std::ranges::copy(parts[0]->a, a.data<float>().begin());
    Tensor b = Tensor::Empty({out, adapter.rank}, DType::kFloat32);
    for (size_t p = 0; p < parts.size(); ++p) {
      for (int64_t row = 0; row < parts[p]->out; ++row) {
        std::copy_n(parts[p]->b.begin() + row * adapter.rank, adapter.rank,
                    b.data<float>().begin() + stored.parts[p].rows.Stored(row) * adapter.rank);
      }
    }
    tensors.Set(std::string(kPrefix) + module + std::string(kA), std::move(a));
    tensors.Set(std::string(kPrefix) + module + std::string(kB), std::move(b));
    targets.insert(module.substr(module.find_last_of('.') + 1));
    written += parts.size();
  }
  WEFT_CHECK_EQ(written, adapter.matrices.size()) << "matrices that the model has";

  JsonValue json = JsonValue::MakeObject();
  json.Set("base_model_name_or_path", JsonValue(adapter.base_model));
  json.Set("bias", JsonValue("none"));
  json.Set("fan_in_fan_out", JsonValue(config.family == "gpt2"));
  json.Set("inference_mode", JsonValue(true));
  json.Set("init_lora_weights", JsonValue(true));
  json.Set("lora_alpha", JsonValue(adapter.alpha));
  json.Set("lora_dropout", JsonValue(adapter.dropout));
  json.Set("peft_type", JsonValue("LORA"));
  json.Set("r", JsonValue(adapter.rank));
  std::vector<JsonValue> names;
  for (const std::string& name : targets) names.emplace_back(name);
  json.Set("target_modules", JsonValue::MakeArray(std::move(names)));
  json.Set("task_type", JsonValue(config.labels > 0 ? "SEQ_CLS" : "CAUSAL_LM"));
  json.Set("use_dora", JsonValue(false));
  json.Set("use_rslora", JsonValue(adapter.rank_stabilised));
  WriteDirectoryAtomic(folder, [&](const std::string& path) {
    WriteFileAtomic(path + "/" + kConfigFile, json.ToText(2) + "\n");
    WriteSafetensors(path + "/" + kWeightsFile, tensors, {{"format", "pt"}});
  });
}

}  // namespace weft
