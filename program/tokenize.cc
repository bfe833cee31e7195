// weft tokenize: the tokens of a text, or a vocabulary learnt from texts.
#include <fmt/format.h>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "language/model_name.h"
#include "language/tokenizer/train_bpe.h"
#include "language/tokenizer_files.h"
#include "language/verify_text.h"
#include "program/commands.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

std::string ReadInput(const TokenizeOptions& options) {
  if (!options.file.empty() && !options.text.empty()) {
    throw Error(ErrorCode::kConfig, "give a text or --file, not both");
  }
  if (!options.file.empty() && options.file != "-") return ReadFile(options.file);
  if (!options.text.empty()) return options.text;
  return std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
}

// Bytes as a JSON string: ill-formed ones as U+FFFD.
Json JsonText(std::string_view text) {
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

// A vocabulary as the `tokenizers` library learns it from the same files, a line at a time.
int LearnVocabulary(const TokenizeOptions& options) {
  if (!options.model.empty() || !options.file.empty()) {
    throw Error(ErrorCode::kConfig, "--train takes the files of text; a model has its vocabulary");
  }
  if (DirectoryExists(options.output) || FileExists(options.output)) {
    throw Error(ErrorCode::kConfig, options.output + " exists");
  }
  std::vector<std::unique_ptr<MappedFile>> files;
  std::vector<std::string_view> lines;
  for (const std::string& path : options.train) {
    const auto bytes = files.emplace_back(std::make_unique<MappedFile>(path))->bytes();
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
      lines.push_back(text.substr(begin, end - begin));
      begin = end;
    }
  }
  const GgufTokenizer learnt = TrainBpe(
      lines, {.vocabulary = options.vocabulary, .pre = options.pre, .specials = options.specials});
  WriteDirectoryAtomic(options.output, [&](const std::string& folder) {
    WriteFileAtomic(folder + "/tokenizer.json", TokenizerJson(learnt, options.output));
    WriteFileAtomic(folder + "/tokenizer_config.json",
                    Json{{"tokenizer_class", "PreTrainedTokenizerFast"},
                         {"model_max_length", 1'000'000'000},
                         {"clean_up_tokenization_spaces", false}}
                            .dump(2) +
                        "\n");
  });
  if (options.json) {
    fmt::print("{}\n", Json{{"tokenizer", options.output + "/tokenizer.json"},
                            {"tokens", learnt.tokens.size()},
                            {"merges", learnt.merges.size()}}
                           .dump());
  } else {
    fmt::print("{}/tokenizer.json: {} tokens, {} merges\n", options.output, learnt.tokens.size(),
               learnt.merges.size());
  }
  return 0;
}

}  // namespace

int Tokenize(const TokenizeOptions& options) {
  if (!options.train.empty()) return LearnVocabulary(options);
  if (options.model.empty()) {
    throw Error(ErrorCode::kConfig, "name a model, or --train FILE... to learn a vocabulary");
  }
  const Tokenizer tokenizer = LoadAnyTokenizer(ResolveModel(options.model));
  const std::string text = ReadInput(options);
  const EncodeOptions encode = {.add_special = options.special, .parse_special = !options.plain};
  if (options.json) {
    const Encoding encoding = tokenizer.EncodeWithOffsets(text, encode);
    Json pieces = Json::array(), bytes = Json::array(), code_points = Json::array();
    for (size_t i = 0; i < encoding.ids.size(); ++i) {
      pieces.push_back(JsonText(tokenizer.Text(encoding.ids[i])));
      bytes.push_back({encoding.bytes[i].begin, encoding.bytes[i].end});
      code_points.push_back({encoding.code_points[i].begin, encoding.code_points[i].end});
    }
    fmt::print("{}\n", Json{{"count", encoding.ids.size()},
                            {"ids", encoding.ids},
                            {"pieces", pieces},
                            {"offsets", code_points},
                            {"byte_offsets", bytes}}
                           .dump());
    return 0;
  }
  const std::vector<int32_t> ids = tokenizer.Encode(text, encode);
  if (options.ids) {
    fmt::print("{}\n", fmt::join(ids, " "));
  } else if (options.pieces) {
    for (const int32_t id : ids) fmt::print("{}\n", tokenizer.Text(id));
  } else {
    for (const int32_t id : ids) {
      fmt::print("{:>7}  {}\n", id, JsonText(tokenizer.Decode({&id, 1})).dump());
    }
    fmt::print("{} tokens for {} bytes\n", ids.size(), text.size());
  }
  return 0;
}

}  // namespace weft
