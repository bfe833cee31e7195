// What the keys tokenizer.* of a GGUF file mean, in the terms of a tokenizer.json.
#include <algorithm>
#include <limits>

#include "base/check.h"
#include "language/gguf_tokenizer.h"
#include "language/tokenizer/known_patterns.h"
#include "language/tokenizer/marker.h"
#include "language/tokenizer/tokenizer_parts.h"

namespace weft {
namespace {

// The pre-tokenizers that tokenizer.ggml.pre names.
struct Pre {
  std::string_view name;
  KnownPattern pattern;
  bool digits = false;         // each digit alone, before the pattern
  bool ignore_merges = false;  // a word that is a token is that token
};
constexpr Pre kPres[] = {
    {"", KnownPattern::kGpt2},  // files older than the key
    {"gpt-2", KnownPattern::kGpt2},
    {"phi-2", KnownPattern::kGpt2},
    {"smollm", KnownPattern::kGpt2, true},
    {"starcoder", KnownPattern::kGpt2, true},
    {"refact", KnownPattern::kGpt2, true},
    {"command-r", KnownPattern::kGpt2, true},
    {"codeshell", KnownPattern::kGpt2, true},
    {"llama-bpe", KnownPattern::kLlama3, false, true},
    {"llama3", KnownPattern::kLlama3, false, true},
    {"llama-v3", KnownPattern::kLlama3, false, true},
    {"qwen2", KnownPattern::kQwen2},
    {"deepseek-r1-qwen", KnownPattern::kQwen2},
    {"stablelm2", KnownPattern::kQwen2},
};

const Pre& FindPre(const std::string& name, const std::string& file) {
  const auto* found = std::ranges::find(kPres, name, &Pre::name);
  if (found == std::end(kPres)) {
    throw Error(ErrorCode::kCorrupt,
                file + ": tokenizer.ggml.pre \"" + name.substr(0, 100) + "\" is not supported");
  }
  return *found;
}

// {"type": type, ...}
JsonValue Component(const char* type, std::vector<JsonValue::Member> members = {}) {
  JsonValue value = JsonValue::MakeObject();
  value.Set("type", JsonValue(type));
  for (auto& [key, member] : members) value.Set(key, std::move(member));
  return value;
}

JsonValue Object(const char* key, JsonValue value) {
  JsonValue object = JsonValue::MakeObject();
  object.Set(key, std::move(value));
  return object;
}

JsonValue ByteLevel(bool use_regex) {
  return Component("ByteLevel", {{"add_prefix_space", JsonValue(false)},
                                 {"trim_offsets", JsonValue(false)},
                                 {"use_regex", JsonValue(use_regex)}});
}

JsonValue Replace(std::string_view from, std::string_view to) {
  return Component("Replace", {{"pattern", Object("String", JsonValue(std::string(from)))},
                               {"content", JsonValue(std::string(to))}});
}

JsonValue PreTokenizer(const Pre& pre) {
  std::vector<JsonValue> steps;
  if (pre.digits) steps.push_back(Component("Digits", {{"individual_digits", JsonValue(true)}}));
  const bool own_regex = pre.pattern == KnownPattern::kGpt2;  // ByteLevel's
  if (!own_regex) {
    const std::string text(TextOf(pre.pattern));
    steps.push_back(Component("Split", {{"pattern", Object("Regex", JsonValue(text))},
                                        {"behavior", JsonValue("Isolated")},
                                        {"invert", JsonValue(false)}}));
  }
  steps.push_back(ByteLevel(own_regex));
  if (steps.size() == 1) return std::move(steps[0]);
  return Component("Sequence", {{"pretokenizers", JsonValue::MakeArray(std::move(steps))}});
}

JsonValue AddedTokens(const GgufTokenizer& gguf) {
  JsonValue list = JsonValue::MakeArray();
  for (size_t id = 0; id < gguf.types.size(); ++id) {
    const auto type = static_cast<GgufTokenType>(gguf.types[id]);
    const bool special = type == GgufTokenType::kControl;
    if ((!special && type != GgufTokenType::kUserDefined) || gguf.tokens[id].empty()) continue;
    JsonValue token = JsonValue::MakeObject();
    token.Set("id", JsonValue(static_cast<int64_t>(id)));
    token.Set("content", JsonValue(gguf.tokens[id]));
    for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized"}) {
      token.Set(flag, JsonValue(false));
    }
    token.Set("special", JsonValue(special));
    list.Append(std::move(token));
  }
  return list;
}

// BOS and EOS around the text where the file wants them, or null.
JsonValue SpecialsAround(const GgufTokenizer& gguf, bool bos_by_default) {
  JsonValue single = JsonValue::MakeArray(), specials = JsonValue::MakeObject();
  const auto add = [&](int64_t id) {
    const std::string& text = gguf.tokens[static_cast<size_t>(id)];
    JsonValue token = JsonValue::MakeObject();
    token.Set("id", JsonValue(text));
    JsonValue entry = token;
    token.Set("type_id", JsonValue(0));
    single.Append(Object("SpecialToken", std::move(token)));
    entry.Set("ids", JsonValue::MakeArray({JsonValue(id)}));
    entry.Set("tokens", JsonValue::MakeArray({JsonValue(text)}));
    specials.Set(text, std::move(entry));
  };
  const bool bos = gguf.add_bos.value_or(bos_by_default) && gguf.bos >= 0;
  const bool eos = gguf.add_eos.value_or(false) && gguf.eos >= 0;
  if (!bos && !eos) return {};
  if (bos) add(gguf.bos);
  JsonValue text = JsonValue::MakeObject();
  text.Set("id", JsonValue("A"));
  text.Set("type_id", JsonValue(0));
  single.Append(Object("Sequence", std::move(text)));
  if (eos) add(gguf.eos);
  return Component("TemplateProcessing", {{"single", single},
                                          {"pair", JsonValue::MakeArray()},
                                          {"special_tokens", std::move(specials)}});
}

JsonValue SentencePieceDecoder(bool prefix) {
  std::vector<JsonValue> steps = {Replace(kSpaceMarker, " "), Component("ByteFallback"),
                                  Component("Fuse")};
  if (prefix) {
    steps.push_back(Component(
        "Strip", {{"content", JsonValue(" ")}, {"start", JsonValue(1)}, {"stop", JsonValue(0)}}));
  }
  return Component("Sequence", {{"decoders", JsonValue::MakeArray(std::move(steps))}});
}

JsonValue SentencePieceNormaliser(bool prefix) {
  if (!prefix) return Replace(" ", kSpaceMarker);
  return Component("Sequence",
                   {{"normalizers",
                     JsonValue::MakeArray(
                         {Component("Prepend", {{"prepend", JsonValue(std::string(kSpaceMarker))}}),
                          Replace(" ", kSpaceMarker)})}});
}

Vocabulary MakeVocabulary(const GgufTokenizer& gguf, const std::string& file) {
  Vocabulary vocabulary;
  size_t bytes = 0;
  for (const std::string& token : gguf.tokens) bytes += token.size();
  vocabulary.Reserve(gguf.tokens.size(), bytes);
  for (size_t id = 0; id < gguf.tokens.size(); ++id) {
    const auto added = vocabulary.Add(gguf.tokens[id], static_cast<int32_t>(id));
    if (!added.added) {
      throw Error(ErrorCode::kCorrupt, file + ": tokenizer.ggml.tokens " +
                                           std::to_string(added.id) + " and " + std::to_string(id) +
                                           " are both \"" + gguf.tokens[id].substr(0, 100) + "\"");
    }
  }
  return vocabulary;
}

std::unique_ptr<TokenModel> MakeByteLevelModel(const GgufTokenizer& gguf, const std::string& file) {
  BpeParts parts;
  parts.file = file;
  parts.vocabulary = MakeVocabulary(gguf, file);
  parts.byte_level = true;
  parts.ignore_merges = FindPre(gguf.pre, file).ignore_merges;
  parts.merges.reserve(gguf.merges.size());
  for (const std::string& merge : gguf.merges) {
    const std::string_view text = merge;
    const size_t space = text.find(' ');
    const int32_t left = parts.vocabulary.Find(text.substr(0, space));
    const int32_t right =
        space == std::string_view::npos ? -1 : parts.vocabulary.Find(text.substr(space + 1));
    if (left < 0 || right < 0) {
      throw Error(ErrorCode::kCorrupt, file + ": tokenizer.ggml.merges " +
                                           std::to_string(parts.merges.size()) + ", \"" +
                                           merge.substr(0, 100) + "\", is not two tokens");
    }
    parts.merges.emplace_back(left, right);
  }
  return MakeBpe(std::move(parts));
}

std::unique_ptr<TokenModel> MakeSentencePieceModel(const GgufTokenizer& gguf,
                                                   const std::string& file) {
  std::vector<float> scores = gguf.scores;
  if (scores.size() != gguf.tokens.size()) {
    throw Error(ErrorCode::kCorrupt, file + ": tokenizer.ggml.scores has " +
                                         std::to_string(scores.size()) + " entries for " +
                                         std::to_string(gguf.tokens.size()) + " tokens");
  }
  for (size_t id = 0; id < gguf.types.size(); ++id) {
    const auto type = static_cast<GgufTokenType>(gguf.types[id]);
    if (type != GgufTokenType::kNormal && type != GgufTokenType::kUserDefined) {
      scores[id] = std::numeric_limits<float>::quiet_NaN();
    }
  }
  return MakeSentencePiece(MakeVocabulary(gguf, file), scores, static_cast<int32_t>(gguf.unknown));
}

}  // namespace

JsonValue GgufComponents(const GgufTokenizer& gguf, const std::string& file) {
  JsonValue document = JsonValue::MakeObject();
  document.Set("version", JsonValue("1.0"));
  document.Set("truncation", {});
  document.Set("padding", {});
  document.Set("added_tokens", AddedTokens(gguf));
  if (gguf.model == "gpt2") {
    document.Set("normalizer", {});
    document.Set("pre_tokenizer", PreTokenizer(FindPre(gguf.pre, file)));
    document.Set("post_processor", SpecialsAround(gguf, false));
    document.Set("decoder", ByteLevel(true));
  } else if (gguf.model == "llama") {
    const bool prefix = gguf.add_space_prefix.value_or(true);
    document.Set("normalizer", SentencePieceNormaliser(prefix));
    document.Set("pre_tokenizer", {});
    document.Set("post_processor", SpecialsAround(gguf, true));
    document.Set("decoder", SentencePieceDecoder(prefix));
  } else {
    throw Error(ErrorCode::kCorrupt, file + ": tokenizer.ggml.model \"" +
                                         gguf.model.substr(0, 100) +
                                         "\" is not supported; weft has gpt2 and llama");
  }
  return document;
}

Tokenizer Tokenizer::FromGguf(const GgufTokenizer& gguf, std::string_view file) {
  const std::string name(file);
  const JsonValue document = GgufComponents(gguf, name);
  auto parts = std::make_unique<TokenizerParts>();
  ReadComponents(document, name, *parts);
  parts->model =
      gguf.model == "gpt2" ? MakeByteLevelModel(gguf, name) : MakeSentencePieceModel(gguf, name);
  parts->added = ReadAddedTokens(document, name, parts->model->vocabulary());
  Tokenizer tokenizer(std::move(parts), name);
  tokenizer.special_ = {.bos = static_cast<int32_t>(gguf.bos),
                        .eos = static_cast<int32_t>(gguf.eos),
                        .eot = static_cast<int32_t>(gguf.eot),
                        .unknown = static_cast<int32_t>(gguf.unknown),
                        .padding = static_cast<int32_t>(gguf.padding)};
  return tokenizer;
}

}  // namespace weft
