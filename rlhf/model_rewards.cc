// Rewards that trained models give.
#include <map>

#include "base/check.h"
#include "language/chat_model.h"
#include "language/model_name.h"
#include "language/text_encoder.h"
#include "language/transformer_memory.h"
#include "rlhf/reward_model.h"
#include "rlhf/rewards.h"

namespace weft {
namespace {

class ModelReward final : public Reward {
 public:
  explicit ModelReward(RewardModel model) : model_(std::move(model)) {}

  std::vector<double> Score(const Context& context,
                            std::span<const ScoredAnswer> answers) override {
    std::vector<std::vector<int32_t>> sequences;
    for (const ScoredAnswer& answer : answers) {
      auto& sequence = sequences.emplace_back(answer.prompt_ids.begin(), answer.prompt_ids.end());
      sequence.insert(sequence.end(), answer.answer_ids.begin(), answer.answer_ids.end());
    }
    return model_.Score(context, sequences);
  }

 private:
  const RewardModel model_;
};

// An id means the same to both.
bool SameWords(const Tokenizer& a, const Tokenizer& b) {
  if (a.size() != b.size()) return false;
  for (int32_t id = 0; id < a.size(); ++id) {
    if (a.Text(id) != b.Text(id)) return false;
  }
  return true;
}

struct ModelRewardConfig final : RewardConfig {
  std::string path;

  void Fields(FieldVisitor& v) override {
    RewardConfig::Fields(v);
    v.Field("path", path, "a sequence-classification folder with one label, or a run's model");
  }
  void Check() const override {
    if (path.empty()) throw ConfigProblem("path", "is missing");
  }
  void Look() const override { ResolveModel(path); }
  std::unique_ptr<Reward> Make(const RewardSetting& setting) const override {
    RewardModel model = RewardModel::Load({}, path, setting.precision);
    if (!SameWords(model.tokenizer(), LoadTokenizerOf(*ModelFile::Open(setting.policy)))) {
      throw Error(ErrorCode::kConfig,
                  path + " has another tokenizer than " + setting.policy +
                      ": the policy's ids mean other words to it; train it from the same model");
    }
    return std::make_unique<ModelReward>(std::move(model));
  }
  int64_t ModelBytes(const RewardSetting& setting) const override {
    return LoadedBytes(*ModelFile::Open(ResolveModel(path)), {.precision = setting.precision});
  }
};
WEFT_REGISTER_REWARD(ModelRewardConfig, "model", "a trained reward model's score");

// Cosines of embeddings, of the answer and of what is expected.
class SimilarityReward final : public Reward {
 public:
  explicit SimilarityReward(TextEncoder encoder) : encoder_(std::move(encoder)) {}

  std::vector<double> Score(const Context& context,
                            std::span<const ScoredAnswer> answers) override {
    std::vector<std::string> texts;  // each once: answers to one prompt share what is expected
    std::map<std::string_view, int64_t> places;
    const auto add = [&](const std::string& text) {
      if (places.emplace(text, std::ssize(texts)).second) texts.push_back(text);
    };
    for (const ScoredAnswer& answer : answers) {
      if (answer.expected.empty()) {
        throw Error(ErrorCode::kConfig,
                    "there is no completion to compare answers with; the prompt is \"" +
                        answer.prompt.substr(0, 200) + "\"");
      }
      add(answer.answer);
      add(answer.expected);
    }
    const Tensor embeddings = encoder_.Embed(context, texts);
    const auto of = [&](const std::string& text) {
      const int64_t width = embeddings.dim(1);
      return embeddings.data<float>().subspan(places.at(text) * width, width);
    };
    std::vector<double> scores;
    for (const ScoredAnswer& answer : answers) {
      scores.push_back(Cosine(of(answer.answer), of(answer.expected)));
    }
    return scores;
  }

 private:
  const TextEncoder encoder_;
};

struct SimilarityRewardConfig final : RewardConfig {
  std::string path = "all-minilm-l6-v2";

  void Fields(FieldVisitor& v) override {
    RewardConfig::Fields(v);
    v.Field("path", path, "a text encoder of BERT's kind: folder or name");
  }
  void Check() const override {
    if (path.empty()) throw ConfigProblem("path", "is missing");
  }
  void Look() const override { ReadEncoderConfig(ResolveModel(path)); }
  bool compares() const override { return true; }
  std::unique_ptr<Reward> Make(const RewardSetting&) const override {
    return std::make_unique<SimilarityReward>(TextEncoder::Load(path));
  }
  int64_t ModelBytes(const RewardSetting&) const override {
    return EncoderBytes(ReadEncoderConfig(ResolveModel(path)));
  }
};
WEFT_REGISTER_REWARD(SimilarityRewardConfig, "similarity",
                     "the cosine of the answer's embedding with that of its prompt's completion");

}  // namespace
}  // namespace weft
