#include "rlhf/text_data.h"

#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/random.h"
#include "language/tokenizer/train_bpe.h"
#include "rlhf/data_source.h"

namespace weft {
namespace {

constexpr const char* kEndOfText = "<|endoftext|>";

std::string ReadAll(const std::vector<std::string>& files) {
  std::string text;
  for (const std::string& file : files) text += ReadFile(file);
  return text;
}

// The characters that occur, in the order of their code points.
std::set<std::string> Characters(std::string_view text) {
  std::set<std::string> characters;
  bool seen[128] = {};
  for (size_t begin = 0; begin < text.size();) {
    if (const auto byte = static_cast<uint8_t>(text[begin]); byte < 128) {
      if (!seen[byte]) characters.emplace(1, text[begin]);
      seen[byte] = true;
      ++begin;
      continue;
    }
    size_t end = begin + 1;
    while (end < text.size() && (text[end] & 0xC0) == 0x80) ++end;
    characters.emplace(text.substr(begin, end - begin));
    begin = end;
  }
  return characters;
}

std::string CharacterTokenizer(std::string_view text) {
  JsonValue vocabulary = JsonValue::MakeObject();
  int id = 0;
  for (const std::string& character : Characters(text)) {
    vocabulary.Set(character, JsonValue(id++));
  }
  JsonValue json = ParseJson(
      R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,)"
      R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":".|\\n"},"behavior":"Isolated",)"
      R"("invert":false},"post_processor":null,"decoder":{"type":"Fuse"},"model":{"type":"BPE",)"
      R"("dropout":null,"unk_token":null,"continuing_subword_prefix":null,)"
      R"("end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,)"
      R"("vocab":{},"merges":[]}})",
      "tokenizer.json");
  JsonValue model = *json.Find("model");
  model.Set("vocab", std::move(vocabulary));
  json.Set("model", std::move(model));
  return json.ToText();
}

}  // namespace

void TextDataConfig::Fields(FieldVisitor& v) {
  v.Names("files", files, "text files, read one after the other");
  v.Choice("tokenizer", tokenizer, {"bpe", "characters"},
           "made from the files: byte-level BPE, or one token a character; not where a model is "
           "named to go on from");
  v.Field("vocabulary", vocabulary, "bpe: tokens at most", Range::Between(257, 1'000'000));
  v.Field("window", window, "tokens that the model sees together", Range::Between(2, 1 << 20));
  v.Field("evaluation_share", evaluation_share, "last part of the tokens, kept back",
          Range::Between(0, 0.9));
}

void TextDataConfig::Check() const {
  if (files.empty()) throw ConfigProblem("files", "name text files to learn from");
}

TextFiles MakeTokenizer(const TextDataConfig& config) {
  const std::string text = ReadAll(config.files);
  std::string json;
  JsonValue settings =
      JsonValue::MakeObject({{"tokenizer_class", JsonValue("PreTrainedTokenizerFast")},
                             {"model_max_length", JsonValue(config.window)}});
  if (config.tokenizer == "characters") {
    json = CharacterTokenizer(text);
  } else {
    const std::string_view view = text;
    json = TokenizerJson(
        TrainBpe({&view, 1}, {.vocabulary = config.vocabulary, .specials = {kEndOfText}}),
        config.files[0]);
    settings.Set("eos_token", JsonValue(kEndOfText));
  }
  return {{"tokenizer.json", json}, {"tokenizer_config.json", settings.ToText(2) + "\n"}};
}

TextData::TextData(const TextDataConfig& config, const Tokenizer& tokenizer)
    : window_(config.window) {
  const std::string text = ReadAll(config.files);
  checksum_ = Crc32c({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  ids_ = tokenizer.Encode(text);
  const auto all = static_cast<double>(ids_.size());
  training_ = static_cast<int64_t>(all * (1 - config.evaluation_share));
  if (training_ < 2 * (window_ + 1)) {
    throw Error(ErrorCode::kConfig, config.files[0] + ": " + std::to_string(training_) +
                                        " tokens to train on are fewer than two windows of " +
                                        std::to_string(window_));
  }
}

void TextData::AddWindow(int64_t begin, int64_t end, int64_t number, Examples& to) const {
  MarkedSequence sequence{.ids = {ids_.begin() + begin, ids_.begin() + end}, .learnt = {}};
  sequence.learnt.assign(sequence.ids.size(), 1);
  sequence.learnt[0] = 0;
  to.Add({.place = {}, .sequences = {std::move(sequence)}}, number);
}

Examples TextData::Draw(uint64_t seed, uint64_t first, int64_t count) const {
  Examples examples;
  for (int64_t i = 0; i < count; ++i) {
    Rng rng(seed, Purpose::kReplay, (uint64_t{1} << 38) + first + static_cast<uint64_t>(i));
    const auto begin = static_cast<int64_t>(rng.Below(static_cast<uint64_t>(training_ - window_)));
    AddWindow(begin, begin + window_ + 1, begin, examples);
  }
  return examples;
}

Examples TextData::HeldOut() const {
  Examples examples;
  for (int64_t begin = training_; begin + 1 < std::ssize(ids_); begin += window_) {
    AddWindow(begin, std::min(begin + window_ + 1, std::ssize(ids_)), begin, examples);
  }
  return examples;
}

namespace {

class Source final : public Fragment {
 public:
  explicit Source(const TextFragmentOptions& options)
      : options_(options),
        data_(options.data,
              Tokenizer::FromJson(options.tokenizer.front().second, "tokenizer.json")),
        held_out_(data_.HeldOut()) {}

  PortSet Needs() const override { return {}; }
  void Step(Ports& ports) override {
    const auto batch = static_cast<uint64_t>(options_.batch);
    DataStep step{
        .train = data_.Draw(options_.seed, static_cast<uint64_t>(steps_) * batch, options_.batch),
        .evaluation = {}};
    step.epochs = static_cast<double>(++steps_ * options_.batch * options_.data.window) /
                  static_cast<double>(data_.training_tokens());
    const int64_t every = options_.evaluate_every;
    step.evaluate_before = steps_ == 1 && held_out_.count() > 0;
    step.evaluate_after = held_out_.count() > 0 &&
                          (steps_ == options_.total_steps || (every > 0 && steps_ % every == 0));
    if (step.evaluate_before || step.evaluate_after) step.evaluation = held_out_;
    ports.Write(0, {.body = step.ToMap(), .version = steps_});
  }
  TensorMap Save() const override {
    TensorMap state;
    state.Set("steps", Tensor::From<int64_t>({2}, {steps_, int64_t{data_.checksum()}}));
    return state;
  }
  void Load(const TensorMap& state) override {
    const auto saved = state.At("steps").data<int64_t>();
    if (saved[1] != int64_t{data_.checksum()}) {
      throw Error(ErrorCode::kConfig,
                  options_.data.files[0] + ": is not the text that the run began with");
    }
    steps_ = saved[0];
  }

 private:
  const TextFragmentOptions options_;
  const TextData data_;
  const Examples held_out_;
  int64_t steps_ = 0;
};

}  // namespace

FragmentFactory TextFragment(const TextFragmentOptions& options) {
  return {.ports = {.inputs = {}, .outputs = {{.name = "batch"}}},
          .make = [options](const Replica&) { return std::make_unique<Source>(options); }};
}

}  // namespace weft
