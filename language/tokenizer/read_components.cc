// Normaliser, pre-tokenizer, post-processor and decoder of a tokenizer.json. Whatever is not known
// here is refused by name.
#include <algorithm>
#include <functional>

#include "base/check.h"
#include "language/json_keys.h"
#include "language/tokenizer/marker.h"
#include "language/tokenizer/tokenizer_parts.h"
#include "language/unicode.h"

namespace weft {
namespace {

constexpr size_t kMaxSteps = 64;  // of one chain

// Calls read(fields, type) for a component, or for each of a Sequence of them, which may nest.
void ForEachStep(JsonKeys fields, std::string_view list, size_t& steps,
                 const std::function<void(JsonKeys&, const std::string&)>& read) {
  const std::string type = fields.RequiredString("type");
  if (type != "Sequence") {
    if (++steps > kMaxSteps) fields.Fail("type", "is one of more than 64 steps");
    return read(fields, type);
  }
  const JsonValue& items = fields.Required(list);
  if (!items.IsArray()) fields.Fail(list, "must be an array");
  size_t index = 0;
  for (const JsonValue& item : items.Items()) {
    const std::string key = std::string(list) + "[" + std::to_string(index++) + "]";
    ForEachStep(fields.Member(key, item), list, steps, read);
  }
}

void ForEachStep(JsonKeys& root, std::string_view key, std::string_view list,
                 const std::function<void(JsonKeys&, const std::string&)>& read) {
  const JsonValue* component = root.Find(key);
  size_t steps = 0;
  if (component) ForEachStep(root.Member(key, *component), list, steps, read);
}

[[noreturn]] void Unsupported(JsonKeys& fields, const std::string& type) {
  fields.Fail("type", "\"" + type.substr(0, 100) + "\" is not supported");
}

std::shared_ptr<const Regex> MakeRegex(JsonKeys& fields, const std::string& text) {
  try {
    return std::make_shared<const Regex>(text);
  } catch (Error& error) {
    error.AddContext(fields.PlaceOf("pattern"));
    throw;
  }
}

Pattern ReadPattern(JsonKeys& fields) {
  JsonKeys pattern = fields.Object("pattern");
  if (pattern.Find("String")) return {pattern.RequiredString("String"), nullptr};
  const std::string text = pattern.RequiredString("Regex");
  return {text, MakeRegex(fields, text)};
}

SplitBehaviour ReadBehaviour(JsonKeys& fields, const std::string& fallback) {
  const std::string name = fields.String("behavior").value_or(fallback);
  if (name == "Isolated") return SplitBehaviour::kIsolated;
  if (name == "Removed") return SplitBehaviour::kRemoved;
  if (name == "MergedWithPrevious") return SplitBehaviour::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehaviour::kMergedWithNext;
  if (name == "Contiguous") return SplitBehaviour::kContiguous;
  fields.Fail("behavior", "\"" + name + "\" is not supported");
}

// A member that is one code point.
std::string ReadCodePoint(JsonKeys& fields, std::string_view key, std::string fallback) {
  std::string text = fields.String(key).value_or(std::move(fallback));
  if (CountCodePoints(text) != 1) fields.Fail(key, "must be one character");
  return text;
}

PrependScheme ReadPrepend(JsonKeys& fields) {
  const bool old = fields.Bool("add_prefix_space").value_or(true);
  const std::string name = fields.String("prepend_scheme").value_or(old ? "always" : "never");
  if (name == "always") return PrependScheme::kAlways;
  if (name == "first") return PrependScheme::kFirst;
  if (name == "never") return PrependScheme::kNever;
  fields.Fail("prepend_scheme", "\"" + name + "\" is not supported");
}

NormaliserStep ReadNormaliser(JsonKeys& fields, const std::string& type) {
  using Kind = NormaliserStep::Kind;
  NormaliserStep step;
  if (type == "NFC") {
    step.kind = Kind::kNfc;
  } else if (type == "NFD") {
    step.kind = Kind::kNfd;
  } else if (type == "NFKC") {
    step.kind = Kind::kNfkc;
  } else if (type == "NFKD") {
    step.kind = Kind::kNfkd;
  } else if (type == "Lowercase") {
    step.kind = Kind::kLowercase;
  } else if (type == "StripAccents") {
    step.kind = Kind::kStripAccents;
  } else if (type == "Strip") {
    step.kind = Kind::kStrip;
    step.left = fields.Bool("strip_left").value_or(true);
    step.right = fields.Bool("strip_right").value_or(true);
  } else if (type == "Prepend") {
    step.kind = Kind::kPrepend;
    step.content = fields.RequiredString("prepend");
  } else if (type == "Replace") {
    step.kind = Kind::kReplace;
    step.pattern = ReadPattern(fields);
    step.content = fields.RequiredString("content");
  } else if (type == "BertNormalizer") {
    step.kind = Kind::kBert;
    step.clean_text = fields.Bool("clean_text").value_or(true);
    step.chinese = fields.Bool("handle_chinese_chars").value_or(true);
    step.lowercase = fields.Bool("lowercase").value_or(true);
    step.strip_accents = fields.Bool("strip_accents").value_or(step.lowercase);
  } else {
    Unsupported(fields, type);
  }
  return step;
}

// \w+|[^\w\s]+ of the Rust library, whose \w has marks too.
constexpr std::string_view kWhitespacePattern =
    R"([\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200C}\x{200D}]+|)"
    R"([^\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200C}\x{200D}\s]+)";

void ReadPreTokenizer(JsonKeys& fields, const std::string& type, TokenizerParts& parts) {
  using Kind = PreTokenizerStep::Kind;
  if (parts.byte_level) fields.Fail("type", "stands behind ByteLevel, which has to be the last");
  PreTokenizerStep step;
  if (type == "ByteLevel") {
    if (fields.Bool("add_prefix_space").value_or(true)) {
      step.kind = Kind::kPrefixSpace;
      parts.pre_tokenizers.push_back(step);
    }
    parts.byte_level = true;
    if (!fields.Bool("use_regex").value_or(true)) return;
    step.kind = Kind::kKnown;
    step.known = KnownPattern::kGpt2;
  } else if (type == "Split") {
    step.behaviour = ReadBehaviour(fields, "Isolated");
    step.invert = fields.Bool("invert").value_or(false);
    step.kind = Kind::kPattern;
    JsonKeys pattern = fields.Object("pattern");
    const auto known = FindKnownPattern(pattern.String("Regex").value_or(""));
    // Known patterns match everything, so what is kept is the same in either of two behaviours.
    const bool all = step.behaviour == SplitBehaviour::kIsolated && !step.invert;
    const bool inverted = step.behaviour == SplitBehaviour::kRemoved && step.invert;
    if (known && (all || inverted)) {
      step.kind = Kind::kKnown;
      step.known = *known;
    } else {
      step.pattern = ReadPattern(fields);
    }
  } else if (type == "Digits") {
    step.kind = Kind::kDigits;
    step.individual = fields.Bool("individual_digits").value_or(false);
  } else if (type == "Punctuation") {
    step.kind = Kind::kPunctuation;
    step.behaviour = ReadBehaviour(fields, "Isolated");
  } else if (type == "Whitespace") {
    step.kind = Kind::kPattern;
    step.behaviour = SplitBehaviour::kRemoved;
    step.invert = true;
    step.pattern = {"", MakeRegex(fields, std::string(kWhitespacePattern))};
  } else if (type == "WhitespaceSplit") {
    step.kind = Kind::kWhitespaceSplit;
  } else if (type == "BertPreTokenizer") {
    step.kind = Kind::kBert;
  } else if (type == "CharDelimiterSplit") {
    step.kind = Kind::kPattern;
    step.behaviour = SplitBehaviour::kRemoved;
    step.pattern = {ReadCodePoint(fields, "delimiter", ""), nullptr};
  } else if (type == "Metaspace") {
    step.kind = Kind::kMetaspace;
    step.content = ReadCodePoint(fields, "replacement", std::string(kSpaceMarker));
    step.prepend = ReadPrepend(fields);
    step.cut = fields.Bool("split").value_or(true);
  } else {
    Unsupported(fields, type);
  }
  parts.pre_tokenizers.push_back(std::move(step));
}

// The ids that special_tokens of a TemplateProcessing gives a name.
std::vector<int32_t> ReadTemplateIds(JsonKeys& fields, const std::string& name) {
  JsonKeys names = fields.Object("special_tokens");
  JsonKeys entry = names.Object(name);
  const JsonValue& ids = entry.Required("ids");
  std::vector<int32_t> out;
  for (const JsonValue& id : ids.IsArray() ? ids.Items() : std::span<const JsonValue>()) {
    int64_t value = -1;
    if (!id.GetInteger(value) || value < 0 || value > INT32_MAX) break;
    out.push_back(static_cast<int32_t>(value));
  }
  if (!ids.IsArray() || out.empty() || out.size() != ids.Items().size()) {
    entry.Fail("ids", "must be an array of ids");
  }
  return out;
}

void ReadTemplate(JsonKeys& fields, PostProcessor& post) {
  const JsonValue& single = fields.Required("single");
  if (!single.IsArray()) fields.Fail("single", "must be an array");
  std::vector<int32_t> before, behind;
  int texts = 0;
  for (const JsonValue& item : single.Items()) {
    JsonKeys piece = fields.Member("single", item);
    if (const JsonValue* token = piece.Find("SpecialToken")) {
      JsonKeys special = piece.Member("SpecialToken", *token);
      const auto ids = ReadTemplateIds(fields, special.RequiredString("id"));
      auto& side = texts == 0 ? before : behind;
      side.insert(side.end(), ids.begin(), ids.end());
    } else {
      JsonKeys text = piece.Object("Sequence");
      if (text.RequiredString("id") != "A") piece.Fail("Sequence", "may hold the text A only");
      ++texts;
    }
  }
  if (texts != 1) fields.Fail("single", "must hold the text A once");
  post.prefix.insert(post.prefix.begin(), before.begin(), before.end());
  post.suffix.insert(post.suffix.end(), behind.begin(), behind.end());
}

// ["<s>", 0]
int32_t ReadTokenPair(JsonKeys& fields, std::string_view key) {
  const JsonValue& pair = fields.Required(key);
  int64_t id = -1;
  const bool holds = pair.IsArray() && pair.Items().size() == 2 && pair.Items()[1].GetInteger(id);
  if (!holds || id < 0 || id > INT32_MAX) fields.Fail(key, "must be a token and its id");
  return static_cast<int32_t>(id);
}

void ReadPostProcessor(JsonKeys& fields, const std::string& type, PostProcessor& post) {
  if (type == "TemplateProcessing") {
    ReadTemplate(fields, post);
  } else if (type == "ByteLevel") {
    post.trim_offsets |= fields.Bool("trim_offsets").value_or(true);
    post.keep_first_space = fields.Bool("add_prefix_space").value_or(true);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    post.prefix.insert(post.prefix.begin(), ReadTokenPair(fields, "cls"));
    post.suffix.push_back(ReadTokenPair(fields, "sep"));
    if (type == "RobertaProcessing") {
      post.trim_offsets |= fields.Bool("trim_offsets").value_or(true);
      post.keep_first_space = fields.Bool("add_prefix_space").value_or(true);
    }
  } else {
    Unsupported(fields, type);
  }
}

DecoderStep ReadDecoder(JsonKeys& fields, const std::string& type, bool fused) {
  using Kind = DecoderStep::Kind;
  DecoderStep step;
  step.fused = fused;
  if (type == "ByteLevel") {
    step.kind = Kind::kByteLevel;
  } else if (type == "ByteFallback") {
    step.kind = Kind::kByteFallback;
  } else if (type == "Fuse") {
    step.kind = Kind::kFuse;
  } else if (type == "Strip") {
    step.kind = Kind::kStrip;
    step.content = ReadCodePoint(fields, "content", " ");
    step.start = fields.Integer("start", 0, INT32_MAX).value_or(0);
    step.stop = fields.Integer("stop", 0, INT32_MAX).value_or(0);
  } else if (type == "Replace") {
    step.kind = Kind::kReplace;
    step.pattern = ReadPattern(fields);
    step.content = fields.RequiredString("content");
  } else if (type == "Metaspace") {
    step.kind = Kind::kMetaspace;
    step.content = ReadCodePoint(fields, "replacement", std::string(kSpaceMarker));
    step.drop_first = ReadPrepend(fields) != PrependScheme::kNever;
  } else if (type == "WordPiece") {
    step.kind = Kind::kWordPiece;
    step.content = fields.String("prefix").value_or("##");
    step.cleanup = fields.Bool("cleanup").value_or(true);
  } else if (type == "BPEDecoder") {
    step.kind = Kind::kBpeSuffix;
    step.content = fields.String("suffix").value_or("</w>");
  } else {
    Unsupported(fields, type);
  }
  const bool whole = step.kind == Kind::kStrip || step.kind == Kind::kFuse;
  if (fused && !whole) fields.Fail("type", "stands behind Fuse, where only Strip may");
  return step;
}

}  // namespace

void ReadComponents(const JsonValue& document, const std::string& file, TokenizerParts& parts) {
  JsonKeys root(document, file);
  ForEachStep(root, "normalizer", "normalizers", [&](auto& fields, const auto& type) {
    parts.normalisers.push_back(ReadNormaliser(fields, type));
  });
  ForEachStep(root, "pre_tokenizer", "pretokenizers",
              [&](auto& fields, const auto& type) { ReadPreTokenizer(fields, type, parts); });
  ForEachStep(root, "post_processor", "processors",
              [&](auto& fields, const auto& type) { ReadPostProcessor(fields, type, parts.post); });
  bool fused = false;
  ForEachStep(root, "decoder", "decoders", [&](auto& fields, const auto& type) {
    parts.decoders.push_back(ReadDecoder(fields, type, fused));
    fused |= type == "Fuse";
  });
  if (!root.Find("decoder")) parts.decoders.push_back({});
}

}  // namespace weft
