// A Hugging Face tokenizer in GGUF's words (tokenizer_files.h).
#include <algorithm>

#include "base/check.h"
#include "base/file.h"
#include "language/json.h"
#include "language/json_keys.h"
#include "language/tokenizer/known_patterns.h"
#include "language/tokenizer/tokenizer.h"
#include "language/tokenizer_files.h"

namespace weft {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 28;
constexpr int64_t kMaxTokens = int64_t{1} << 26;

class TokenizerReader {
 public:
  TokenizerReader(const std::string& folder, int64_t vocabulary)
      : folder_(folder),
        file_(folder + "/tokenizer.json"),
        document_(ReadJsonFile(file_, kMaxFileBytes)),
        tokenizer_(Tokenizer::Load(folder)) {
    const JsonValue* model = document_.Find("model");
    if (!model) Refuse("model", "is missing");
    model_ = model;
    result_.tokens.resize(static_cast<size_t>(std::max<int64_t>(vocabulary, tokenizer_.size())));
    result_.types.assign(result_.tokens.size(), static_cast<int32_t>(GgufTokenType::kUnused));
  }

  GgufTokenizer Read() {
    const JsonValue* type = model_->Find("type");
    if (type && type->IsString() && type->AsString() != "BPE") {
      Refuse("model.type", "\"" + type->AsString() + "\" has no form in GGUF that weft writes");
    }
    ReadTokens();
    if (IsByteLevel()) {
      result_.model = "gpt2";
      result_.pre = FindPre();
      for (const auto& [left, right] : Merges()) result_.merges.push_back(left + " " + right);
    } else {
      const JsonValue* fallback = model_->Find("byte_fallback");
      if (!fallback || !fallback->IsBool() || !fallback->AsBool()) {
        Refuse("model.byte_fallback",
               "neither bytes nor byte-level tokens: GGUF has no form of it");
      }
      result_.model = "llama";
      result_.pre = "default";
      ReadScores();
    }
    ReadRoles();
    ReadConfig();
    return std::move(result_);
  }

 private:
  [[noreturn]] void Refuse(const std::string& member, const std::string& reason) const {
    throw Error(ErrorCode::kInvalidArgument, file_ + ": " + member + ": " + reason);
  }

  void SetToken(int64_t id, const std::string& text, GgufTokenType type) {
    if (id < 0 || id >= static_cast<int64_t>(result_.tokens.size()) || id >= kMaxTokens) {
      Refuse("model.vocab", "id " + std::to_string(id) + " is out of range");
    }
    result_.tokens[static_cast<size_t>(id)] = text;
    result_.types[static_cast<size_t>(id)] = static_cast<int32_t>(type);
  }

  void ReadTokens() {
    const JsonValue* vocabulary = model_->Find("vocab");
    if (!vocabulary || !vocabulary->IsObject()) Refuse("model.vocab", "must be an object");
    for (const auto& [text, value] : vocabulary->Members()) {
      int64_t id = -1;
      value.GetInteger(id);
      const bool byte = text.size() == 6 && text.starts_with("<0x") && text.ends_with('>');
      SetToken(id, text, byte ? GgufTokenType::kByte : GgufTokenType::kNormal);
    }
    if (const JsonValue* added = document_.Find("added_tokens"); added && added->IsArray()) {
      for (const JsonValue& entry : added->Items()) {
        JsonKeys keys(entry, file_, "added_tokens.");
        const bool special = keys.Bool("special").value_or(false);
        SetToken(keys.RequiredInteger("id", 0, kMaxTokens), keys.String("content").value_or(""),
                 special ? GgufTokenType::kControl : GgufTokenType::kUserDefined);
      }
    }
    for (size_t id = 0; id < result_.tokens.size(); ++id) {
      if (result_.types[id] == static_cast<int32_t>(GgufTokenType::kUnused)) {
        result_.tokens[id] = "[PAD" + std::to_string(id) + "]";
      }
    }
  }

  // The steps of a component that may be a Sequence.
  std::vector<const JsonValue*> Steps(const char* member, const char* list) const {
    const JsonValue* component = document_.Find(member);
    if (!component || component->IsNull()) return {};
    const JsonValue* steps = component->Find(list);
    if (!steps || !steps->IsArray()) return {component};
    std::vector<const JsonValue*> found;
    for (const JsonValue& step : steps->Items()) found.push_back(&step);
    return found;
  }

  static std::string TypeOf(const JsonValue& step) {
    const JsonValue* type = step.Find("type");
    return type && type->IsString() ? type->AsString() : "";
  }

  bool IsByteLevel() const {
    return std::ranges::any_of(Steps("pre_tokenizer", "pretokenizers"),
                               [](const JsonValue* step) { return TypeOf(*step) == "ByteLevel"; });
  }

  // The name that GGUF gives to the way text is cut into words.
  std::string FindPre() const {
    for (const JsonValue* step : Steps("normalizer", "normalizers")) {
      // Qwen's, which llama.cpp leaves out as well.
      if (TypeOf(*step) != "NFC") Refuse("normalizer", TypeOf(*step) + " has no form in GGUF");
    }
    bool digits = false;
    std::optional<KnownPattern> pattern;
    for (const JsonValue* step : Steps("pre_tokenizer", "pretokenizers")) {
      const std::string type = TypeOf(*step);
      JsonKeys keys(*step, file_, "pre_tokenizer.");
      if (type == "Digits" && keys.Bool("individual_digits").value_or(false)) {
        digits = true;
      } else if (type == "Split" && !pattern) {
        const JsonValue* regex = keys.Find("pattern");
        regex = regex ? regex->Find("Regex") : nullptr;
        if (regex && regex->IsString()) pattern = FindKnownPattern(regex->AsString());
        if (!pattern) Refuse("pre_tokenizer.pattern", "is none that GGUF has a name for");
      } else if (type == "ByteLevel") {
        if (keys.Bool("use_regex").value_or(true) && !pattern) pattern = KnownPattern::kGpt2;
        if (keys.Bool("add_prefix_space").value_or(false)) {
          Refuse("pre_tokenizer.add_prefix_space", "true has no form in GGUF");
        }
      } else {
        Refuse("pre_tokenizer.type", type + " has no form in GGUF");
      }
    }
    const JsonValue* flag = model_->Find("ignore_merges");
    const bool whole_words = flag && flag->IsBool() && flag->AsBool();
    if (pattern == KnownPattern::kGpt2 && !whole_words) return digits ? "smollm" : "gpt-2";
    if (pattern == KnownPattern::kLlama3 && whole_words && !digits) return "llama-bpe";
    if (pattern == KnownPattern::kQwen2 && !whole_words && !digits) return "qwen2";
    Refuse("pre_tokenizer", "is none that GGUF has a name for");
  }

  std::vector<std::pair<std::string, std::string>> Merges() const {
    std::vector<std::pair<std::string, std::string>> pairs;
    const JsonValue* merges = model_->Find("merges");
    if (!merges || !merges->IsArray()) Refuse("model.merges", "must be an array");
    for (const JsonValue& merge : merges->Items()) {
      if (merge.IsString()) {
        const size_t space = merge.AsString().find(' ');
        if (space == std::string::npos) Refuse("model.merges", "holds a text without a space");
        pairs.emplace_back(merge.AsString().substr(0, space), merge.AsString().substr(space + 1));
      } else if (merge.IsArray() && merge.Items().size() == 2 && merge.Items()[0].IsString() &&
                 merge.Items()[1].IsString()) {
        pairs.emplace_back(merge.Items()[0].AsString(), merge.Items()[1].AsString());
      } else {
        Refuse("model.merges", "must be pairs");
      }
    }
    return pairs;
  }

  // A token's score is the negative rank of the first merge that makes it.
  void ReadScores() {
    result_.scores.assign(result_.tokens.size(), 0.0f);
    std::vector<bool> seen(result_.tokens.size());
    float rank = 0;
    for (const auto& [left, right] : Merges()) {
      const int32_t id = tokenizer_.Find(left + right);
      if (id < 0 || seen[static_cast<size_t>(id)]) continue;
      seen[static_cast<size_t>(id)] = true;
      result_.scores[static_cast<size_t>(id)] = -(rank += 1);
    }
    // What no merge makes is never merged into.
    for (size_t id = 0; id < seen.size(); ++id) {
      const bool normal = result_.types[id] == static_cast<int32_t>(GgufTokenType::kNormal);
      if (normal && !seen[id]) result_.scores[id] = -(rank + 1);
    }
    bool prefix = false;
    for (const JsonValue* step : Steps("normalizer", "normalizers")) {
      const std::string type = TypeOf(*step);
      if (type == "Prepend") {
        prefix = true;
      } else if (type != "Replace") {
        Refuse("normalizer", type + " has no form in GGUF");
      }
    }
    for (const JsonValue* step : Steps("pre_tokenizer", "pretokenizers")) {
      JsonKeys keys(*step, file_, "pre_tokenizer.");
      if (TypeOf(*step) != "Metaspace") continue;
      const bool old = keys.Bool("add_prefix_space").value_or(true);
      prefix = keys.String("prepend_scheme").value_or(old ? "always" : "never") != "never";
    }
    result_.add_space_prefix = prefix;
  }

  void ReadRoles() {
    const SpecialIds& special = tokenizer_.special();
    result_.bos = special.bos;
    result_.eos = special.eos;
    result_.unknown = special.unknown;
    result_.padding = special.padding;
    if (const JsonValue* unknown = model_->Find("unk_token"); unknown && unknown->IsString()) {
      if (result_.unknown < 0) result_.unknown = tokenizer_.Find(unknown->AsString());
      if (result_.model == "llama" && result_.unknown >= 0) {
        result_.types[static_cast<size_t>(result_.unknown)] =
            static_cast<int32_t>(GgufTokenType::kUnknown);
      }
    }
    // A post-processor shows ids that no file names.
    if (result_.bos < 0 && !tokenizer_.prefix().empty()) result_.bos = tokenizer_.prefix()[0];
    if (result_.eos < 0 && !tokenizer_.suffix().empty()) result_.eos = tokenizer_.suffix()[0];
    const auto adds = [&](std::span<const int32_t> ids, int64_t id, const char* where) {
      if (ids.size() > 1 || (ids.size() == 1 && ids[0] != id)) {
        Refuse("post_processor", std::string("adds other tokens ") + where + " than GGUF can say");
      }
      return !ids.empty();
    };
    result_.add_bos = adds(tokenizer_.prefix(), result_.bos, "before a text");
    result_.add_eos = adds(tokenizer_.suffix(), result_.eos, "behind a text");
  }

  void ReadConfig() {
    if (const std::string path = folder_ + "/tokenizer_config.json"; FileExists(path)) {
      const JsonValue config = ReadJsonFile(path, kMaxFileBytes);
      const JsonValue* chat = config.Find("chat_template");
      if (chat && chat->IsString()) result_.chat_template = chat->AsString();
      if (chat && chat->IsArray()) {
        for (const JsonValue& entry : chat->Items()) {
          JsonKeys keys(entry, path, "chat_template.");
          const std::string name = keys.String("name").value_or("");
          const std::string text = keys.String("template").value_or("");
          if (name == "default") {
            result_.chat_template = text;
          } else {
            result_.named_templates.emplace_back(name, text);
          }
        }
      }
    }
    if (const std::string path = folder_ + "/chat_template.jinja"; FileExists(path)) {
      result_.chat_template = ReadFile(path, kMaxFileBytes);
    }
  }

  const std::string folder_, file_;
  const JsonValue document_;
  const Tokenizer tokenizer_;
  const JsonValue* model_ = nullptr;
  GgufTokenizer result_;
};

}  // namespace

GgufTokenizer MakeGgufTokenizer(const std::string& folder, int64_t vocabulary) {
  return TokenizerReader(folder, vocabulary).Read();
}

}  // namespace weft
