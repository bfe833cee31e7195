// The model, the added tokens and the vocabulary of a tokenizer.json.
#include <algorithm>

#include "language/json_keys.h"
#include "language/tokenizer/tokenizer_parts.h"

namespace weft {
namespace {

// Memory grows with the largest id, so ids may leave only so many unused.
int64_t LargestId(size_t tokens) {
  return static_cast<int64_t>(4 * tokens + 65536);
}

Vocabulary ReadVocabulary(JsonKeys& model) {
  const JsonValue& entries = model.Required("vocab");
  if (!entries.IsObject()) {
    model.Fail("vocab", "must be an object of token: id, not " + std::string(entries.KindName()));
  }
  Vocabulary vocabulary;
  size_t bytes = 0;
  for (const auto& [text, id] : entries.Members()) bytes += text.size();
  vocabulary.Reserve(entries.Members().size(), bytes);
  const int64_t most = LargestId(entries.Members().size());
  for (const auto& [text, value] : entries.Members()) {
    int64_t id = 0;
    if (!value.GetInteger(id) || id < 0 || id > most) {
      model.Fail("vocab", "token \"" + text.substr(0, 100) +
                              "\": the id must be an integer from 0 to " + std::to_string(most));
    }
    if (!vocabulary.Add(text, static_cast<int32_t>(id)).added) {
      model.Fail("vocab",
                 "tokens \"" + text.substr(0, 100) + "\" and \"" +
                     std::string(vocabulary.Text(static_cast<int32_t>(id)).substr(0, 100)) +
                     "\" both have id " + std::to_string(id));
    }
  }
  return vocabulary;
}

// "left right", split at the first space, or ["left", "right"].
std::pair<std::string_view, std::string_view> MergeParts(JsonKeys& model, size_t rank,
                                                         const JsonValue& merge) {
  const auto fail = [&](const std::string& reason) {
    model.Fail("merges[" + std::to_string(rank) + "]", reason);
  };
  if (merge.IsString()) {
    const std::string_view text = merge.AsString();
    const size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
      fail("\"" + std::string(text.substr(0, 100)) + "\" is not two tokens with a space between");
    }
    return {text.substr(0, space), text.substr(space + 1)};
  }
  if (!merge.IsArray() || merge.Items().size() != 2 || !merge.Items()[0].IsString() ||
      !merge.Items()[1].IsString()) {
    fail("must be two tokens");
  }
  return {merge.Items()[0].AsString(), merge.Items()[1].AsString()};
}

std::unique_ptr<TokenModel> ReadBpe(JsonKeys& model, const std::string& file, bool byte_level) {
  BpeParts parts;
  parts.file = file;
  parts.vocabulary = ReadVocabulary(model);
  parts.byte_level = byte_level;
  if (const JsonValue* dropout = model.Find("dropout")) {
    double rate = -1;
    if (!dropout->GetDouble(rate) || rate != 0) {
      model.Fail("dropout", "makes tokens random; weft encodes without: set it to null");
    }
  }
  parts.unknown = model.String("unk_token").value_or("");
  parts.prefix = model.String("continuing_subword_prefix").value_or("");
  parts.suffix = model.String("end_of_word_suffix").value_or("");
  parts.fuse_unknown = model.Bool("fuse_unk").value_or(false);
  parts.byte_fallback = model.Bool("byte_fallback").value_or(false);
  parts.ignore_merges = model.Bool("ignore_merges").value_or(false);
  const JsonValue& merges = model.Required("merges");
  if (!merges.IsArray()) {
    model.Fail("merges", "must be an array, not " + std::string(merges.KindName()));
  }
  parts.merges.reserve(merges.Items().size());
  for (const JsonValue& merge : merges.Items()) {
    const size_t rank = parts.merges.size();
    const auto [left, right] = MergeParts(model, rank, merge);
    const int32_t left_id = parts.vocabulary.Find(left), right_id = parts.vocabulary.Find(right);
    if (left_id < 0 || right_id < 0) {
      model.Fail("merges[" + std::to_string(rank) + "]",
                 "names \"" + std::string((left_id < 0 ? left : right).substr(0, 100)) +
                     "\", which is not in the vocabulary");
    }
    parts.merges.emplace_back(left_id, right_id);
  }
  return MakeBpe(std::move(parts));
}

std::unique_ptr<TokenModel> ReadWordPiece(JsonKeys& model) {
  Vocabulary vocabulary = ReadVocabulary(model);
  const std::string unknown = model.String("unk_token").value_or("[UNK]");
  const int32_t id = vocabulary.Find(unknown);
  if (id < 0) model.Fail("unk_token", "\"" + unknown + "\" is not in the vocabulary");
  const int64_t most = model.Integer("max_input_chars_per_word", 0, INT32_MAX).value_or(100);
  return MakeWordPiece(std::move(vocabulary), id,
                       model.String("continuing_subword_prefix").value_or("##"), most);
}

}  // namespace

std::unique_ptr<TokenModel> ReadModel(const JsonValue& document, const std::string& file,
                                      bool byte_level) {
  JsonKeys root(document, file);
  JsonKeys model = root.Object("model");
  // Old files have no type; then the members say what it is.
  const bool has_merges = model.Find("merges") != nullptr;
  const std::string type = model.String("type").value_or(has_merges ? "BPE" : "WordPiece");
  if (type == "BPE") return ReadBpe(model, file, byte_level);
  if (type == "WordPiece") return ReadWordPiece(model);
  model.Fail("type", "\"" + type + "\" is not supported; weft has BPE and WordPiece");
}

std::vector<AddedToken> ReadAddedTokens(const JsonValue& document, const std::string& file,
                                        const Vocabulary& vocabulary) {
  JsonKeys root(document, file);
  std::vector<AddedToken> added;
  const JsonValue* entries = root.Find("added_tokens");
  if (!entries) return added;
  if (!entries->IsArray()) root.Fail("added_tokens", "must be an array");
  const int64_t most = LargestId(static_cast<size_t>(vocabulary.size()) + entries->Items().size());
  Vocabulary seen;
  for (const JsonValue& entry : entries->Items()) {
    JsonKeys fields = root.Member("added_tokens[" + std::to_string(added.size()) + "]", entry);
    AddedToken token;
    token.id = static_cast<int32_t>(fields.RequiredInteger("id", 0, most));
    token.content = fields.RequiredString("content");
    token.special = fields.Bool("special").value_or(false);
    token.single_word = fields.Bool("single_word").value_or(false);
    token.lstrip = fields.Bool("lstrip").value_or(false);
    token.rstrip = fields.Bool("rstrip").value_or(false);
    token.normalised = fields.Bool("normalized").value_or(!token.special);
    if (token.content.empty()) fields.Fail("content", "is empty");
    const int32_t known = vocabulary.Find(token.content);
    if (known >= 0 ? known != token.id : vocabulary.Has(token.id)) {
      fields.Fail("id", std::to_string(token.id) + " of \"" + token.content.substr(0, 100) +
                            "\" contradicts the vocabulary");
    }
    if (!seen.Add(token.content, token.id).added) {
      fields.Fail("id", std::to_string(token.id) + " or its content stands twice");
    }
    added.push_back(std::move(token));
  }
  return added;
}

}  // namespace weft
