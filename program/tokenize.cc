// weft tokenize.
#include <fmt/format.h>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/file.h"
#include "language/model_name.h"
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

}  // namespace

int Tokenize(const TokenizeOptions& options) {
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
