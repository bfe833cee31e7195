// weft convert: a model between a Hugging Face folder and GGUF, or into other types.
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/check.h"
#include "base/file.h"
#include "base/text.h"
#include "language/lora_files.h"
#include "language/model_files.h"
#include "language/model_name.h"
#include "language/model_writer.h"
#include "program/commands.h"

namespace weft {
namespace {

// "model" of "/a/model" and of "/a/model/".
std::string LastName(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path.substr(path.find_last_of('/') + 1);
}

WriteProgress ProgressLine(const std::string& to, bool shown) {
  if (!shown || isatty(STDERR_FILENO) == 0) return {};
  return [to](uint64_t done, uint64_t total) {
    fmt::print(stderr, "\rweft: writing {}: {} of {} ({}%) ", to,
               HumanBytes(static_cast<double>(done)), HumanBytes(static_cast<double>(total)),
               total == 0 ? 100 : done * 100 / total);
    if (done == total) fmt::print(stderr, "\n");
  };
}

std::optional<WeightType> ParseType(const std::string& name) {
  if (name.empty()) return std::nullopt;
  const WeightTypeInfo* info = FindWeightType(name);
  if (!info || !info->writable) {
    throw Error(ErrorCode::kConfig,
                "--type must be f32, f16, bf16, q8_0, q4_0, q4_1, q5_0 or q5_1, "
                "not " +
                    name);
  }
  return info->type;
}

// What a folder's weights are written in when nothing is said: their own type, or f32 for blocks.
WeightType FolderType(const ModelFile& model) {
  const WeightType type = model.main_type();
  return Info(type).block == 1 ? type : WeightType::kF32;
}

void WriteGguf(const ModelFile& model, std::span<const StoredWeight> weights,
               const ConvertOptions& options, std::optional<WeightType> type) {
  GgufWriteOptions write;
  write.type = type;
  write.name = LastName(model.path());
  write.source = model.gguf();
  if (!write.source && HasTokenizer(model.path())) {
    write.tokenizer = MakeGgufTokenizer(model.path(), model.config().vocabulary);
    write.tokenizer_json = ReadFile(model.path() + "/tokenizer.json");
  }
  WriteModelGguf(options.to, model.description(), weights, write,
                 ProgressLine(options.to, !options.json));
}

void WriteFolder(const ModelFile& model, std::span<const StoredWeight> weights,
                 const ConvertOptions& options, WeightType type) {
  TextFiles tokenizer;
  if (!model.gguf()) {
    tokenizer = CopyTokenizerFiles(model.path());
  } else if (HasTokenizer(*model.gguf())) {
    tokenizer = MakeTokenizerFiles(*model.gguf(), model.config().context);
  }
  WriteModelFolder(options.to, model.description(), weights, type, tokenizer,
                   ProgressLine(options.to, !options.json));
}

uint64_t BytesAt(const std::string& path) {
  if (!DirectoryExists(path)) return MappedFile(path).bytes().size();
  uint64_t bytes = 0;
  for (const std::string& name : ListDirectory(path)) bytes += BytesAt(path + "/" + name);
  return bytes;
}

}  // namespace

int Convert(const ConvertOptions& options) {
  const std::optional<WeightType> type = ParseType(options.type);
  const std::string from = ResolveModel(options.from);
  const bool gguf = options.to.ends_with(".gguf");
  if (!gguf && type && Info(*type).block != 1) {
    throw Error(ErrorCode::kConfig,
                "a Hugging Face folder has weights in f32, f16 or bf16; write " + options.to +
                    ".gguf for " + options.type);
  }
  if (!gguf && (DirectoryExists(options.to) || FileExists(options.to))) {
    throw Error(ErrorCode::kConfig, options.to + " exists");
  }
  const auto model = ModelFile::Open(from);
  std::vector<StoredWeight> weights(model->weights().begin(), model->weights().end());
  LoraAdapter adapter;
  if (!options.adapter.empty()) {
    adapter = ReadLoraAdapter(options.adapter, model->config());
    weights = MergeLoraAdapter(model->weights(), adapter);
    if (gguf && !type && !Info(model->main_type()).writable) {
      throw Error(ErrorCode::kConfig, options.from + " is in " +
                                          std::string(Info(model->main_type()).name) +
                                          ", which is not written: give the --type of the sum");
    }
  }
  if (gguf) {
    WriteGguf(*model, weights, options, type);
  } else {
    WriteFolder(*model, weights, options, type.value_or(FolderType(*model)));
  }
  const auto written = ModelFile::Open(options.to);  // read back, checked whole
  const std::string main_type(Info(written->main_type()).name);
  const uint64_t bytes = BytesAt(options.to);
  if (options.json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"model", options.to},
                                              {"family", written->config().family},
                                              {"type", main_type},
                                              {"weights", written->weights().size()},
                                              {"bytes", bytes}}
                           .dump());
  } else {
    fmt::print("{}: {} in {}, {} weights, {}\n", options.to, written->config().family, main_type,
               written->weights().size(), HumanBytes(static_cast<double>(bytes)));
  }
  return 0;
}

}  // namespace weft
