#include "language/model_writer.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "language/gguf.h"
#include "language/gguf_config.h"
#include "language/gguf_writer.h"
#include "language/hf_config.h"
#include "language/model_family.h"
#include "language/tensor_maker.h"
#include "nn/json_cursor.h"

namespace weft {
namespace {

uint64_t TensorBytes(const StoredTensor& tensor, WeightType type) {
  uint64_t rows = 1;
  for (size_t i = 0; i + 1 < tensor.shape.size(); ++i)
    rows *= static_cast<uint64_t>(tensor.shape[i]);
  return rows * static_cast<uint64_t>(RowBytes(type, tensor.shape.back()));
}

// The container of nn/safetensors.h, one tensor after the other, for weights that a TensorMap could
// hold neither in their types nor in memory.
void WriteSafetensorsFile(const std::string& path, const std::vector<StoredTensor>& tensors,
                          WeightType type, const TensorMaker& maker,
                          const WriteProgress& progress) {
  std::string header = R"({"__metadata__":{"format":"pt"})";
  uint64_t total = 0;
  for (const StoredTensor& tensor : tensors) {
    header += ',';
    AppendJsonQuoted(tensor.name, header);
    header += ":{\"dtype\":\"" + std::string(Info(type).name) + "\",\"shape\":[";
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      header += (i > 0 ? "," : "") + std::to_string(tensor.shape[i]);
    }
    const uint64_t bytes = TensorBytes(tensor, type);
    header +=
        "],\"data_offsets\":[" + std::to_string(total) + "," + std::to_string(total + bytes) + "]}";
    total += bytes;
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  AppendFile file(path);
  const uint64_t length = header.size();
  AppendOrThrow(file, {reinterpret_cast<const char*>(&length), sizeof(length)});
  AppendOrThrow(file, header);
  uint64_t done = 0;
  std::string buffer;
  for (const StoredTensor& tensor : tensors) {
    buffer.resize(TensorBytes(tensor, type));
    maker.Fill(tensor, type, {reinterpret_cast<uint8_t*>(buffer.data()), buffer.size()});
    AppendOrThrow(file, buffer);
    done += buffer.size();
    if (progress) progress(done, total);
  }
}

bool IsBelowQ8(WeightType type) {
  return Info(type).block > 1 && type != WeightType::kQ8_0;
}

// llama.cpp's rules: src/llama-quant.cpp and conversion/base.py. Its Q6_K for the output matrix,
// which weft does not write, becomes Q8_0.
WeightType TypeInGguf(const StoredTensor& tensor, const ModelConfig& config, WeightType wanted) {
  const bool vector = tensor.shape.size() == 1;
  if (vector || tensor.name.ends_with("_norm.weight") || tensor.name == "position_embd.weight") {
    return WeightType::kF32;
  }
  const bool output =
      tensor.name == "output.weight" || (config.tied && tensor.name == "token_embd.weight");
  const WeightType type = output && IsBelowQ8(wanted) ? WeightType::kQ8_0 : wanted;
  return tensor.shape.back() % Info(type).block == 0 ? type : WeightType::kF16;
}

// LLAMA_FTYPE_*, what most of the matrices are.
int64_t GgufFileType(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return 0;
    case WeightType::kF16:
      return 1;
    case WeightType::kQ4_0:
      return 2;
    case WeightType::kQ4_1:
      return 3;
    case WeightType::kQ8_0:
      return 7;
    case WeightType::kQ5_0:
      return 8;
    case WeightType::kQ5_1:
      return 9;
    case WeightType::kQ2_K:
      return 10;
    case WeightType::kQ3_K:
      return 12;
    case WeightType::kQ4_K:
      return 15;
    case WeightType::kQ5_K:
      return 17;
    case WeightType::kQ6_K:
      return 18;
    case WeightType::kBF16:
      return 32;
  }
  return 0;
}

// Written anew, whatever the source says.
bool IsRewritten(std::string_view key) {
  return key == "general.architecture" || key == "general.file_type" ||
         key == "general.quantization_version" || key == "general.alignment" ||
         key.starts_with("general.sampling.");
}

void SetOrigin(const GgufWriteOptions& options, GgufWriter& writer) {
  if (options.source) {
    for (const auto& [key, value] : options.source->metadata()) {
      const bool general = key.starts_with("general.") && !IsRewritten(key);
      if ((general || key.starts_with("tokenizer.")) && value.type != GgufType::kArray) {
        writer.Copy(key, value);
      }
    }
    return;
  }
  writer.SetString("general.type", "model");
  if (!options.name.empty()) writer.SetString("general.name", options.name);
  if (!options.tokenizer) return;
  SetGgufTokenizer(*options.tokenizer, writer);
  if (!options.tokenizer_json.empty()) {
    writer.SetString("tokenizer.huggingface.json", options.tokenizer_json);
  }
}

}  // namespace

void WriteModelFolder(const std::string& path, const ModelDescription& description,
                      std::span<const StoredWeight> weights, WeightType type,
                      const TextFiles& tokenizer, const WriteProgress& progress) {
  WEFT_CHECK(Info(type).block == 1)
      << "a Hugging Face folder has weights in F32, F16 or BF16, not " << Info(type).name;
  const TensorMaker maker(weights);
  std::vector<StoredTensor> layout = StoredLayout(description.config, FileFormat::kHuggingFace);
  std::ranges::sort(layout, {}, &StoredTensor::name);
  WriteDirectoryAtomic(path, [&](const std::string& folder) {
    WriteFileAtomic(folder + "/config.json", MakeHfConfig(description, type).ToText(2) + "\n");
    WriteFileAtomic(folder + "/generation_config.json",
                    MakeHfGeneration(description).ToText(2) + "\n");
    for (const auto& [name, text] : tokenizer) WriteFileAtomic(folder + "/" + name, text);
    WriteSafetensorsFile(folder + "/model.safetensors", layout, type, maker, progress);
  });
}

void WriteModelGguf(const std::string& path, const ModelDescription& description,
                    std::span<const StoredWeight> weights, const GgufWriteOptions& options,
                    const WriteProgress& progress) {
  const ModelConfig& config = description.config;
  const ModelFamilyInfo& family = FamilyOf(config);
  if (family.gguf.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "GGUF has no architecture for models of the family " + config.family);
  }
  const TensorMaker maker(weights);
  GgufWriter writer;
  writer.SetString("general.architecture", family.gguf);
  SetOrigin(options, writer);
  SetGgufConfig(description, writer);
  std::map<WeightType, int64_t> elements;
  for (StoredTensor& tensor : StoredLayout(config, FileFormat::kGguf)) {
    const WeightType wanted = options.type.value_or(maker.TypeOf(tensor));
    const bool keep = !options.type && tensor.shape.size() == 2;
    const WeightType type = keep ? wanted : TypeInGguf(tensor, config, wanted);
    if (tensor.shape.size() == 2) elements[type] += tensor.shape[0] * tensor.shape[1];
    std::string name = tensor.name;
    std::vector<int64_t> shape = tensor.shape;
    writer.AddTensor(std::move(name), std::move(shape), type,
                     [&maker, type, tensor = std::move(tensor)](std::span<uint8_t> out) {
                       maker.Fill(tensor, type, out);
                     });
  }
  const auto most =
      std::ranges::max_element(elements, {}, [](const auto& entry) { return entry.second; });
  writer.SetU32(
      "general.file_type",
      GgufFileType(options.type.value_or(most == elements.end() ? WeightType::kF32 : most->first)));
  writer.SetU32("general.quantization_version", 2);
  writer.Write(path, progress);
}

}  // namespace weft
