// A reward model from pairs: a score head on a language model, trained so that chosen answers score
// above rejected ones (Bradley and Terry 1952; Ouyang et al. 2022), with margins where the data
// gives them and a pull of the pairs' sums to zero (Eisenstein et al. 2023). What is kept is a
// Hugging Face sequence-classification folder with the scores' mean and deviation beside it.
//
//   data ==batch==> learner
#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "language/chat_model.h"
#include "language/model_name.h"
#include "rlhf/offline.h"
#include "rlhf/preference_losses.h"
#include "rlhf/reward_model.h"

namespace weft {
namespace {

// Sequences [begin, end) and the row of each one's last token.
struct ScoreBatch {
  LanguageBatch batch;
  std::vector<int64_t> last;

  ScoreBatch(const Examples& examples, int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; s += examples.width) {
      std::vector<std::span<const int32_t>> answers;
      for (int64_t i = s; i < s + examples.width; ++i) answers.push_back(examples.Ids(i));
      std::ranges::copy(batch.AddBranches(answers), std::back_inserter(last));
    }
  }
};

// Of `right` of `count`, at 95 % (Wilson 1927).
std::pair<double, double> Interval(double share, double count) {
  constexpr double kZ = 1.959963984540054;
  const double middle = share + kZ * kZ / (2 * count);
  const double half = kZ * std::sqrt(share * (1 - share) / count + kZ * kZ / (4 * count * count));
  return {(middle - half) / (1 + kZ * kZ / count), (middle + half) / (1 + kZ * kZ / count)};
}

// The mean distance between how sure the scores are that the higher one was chosen and how often it
// was, over ten equal bins of that sureness (Guo et al. 2017).
double CalibrationError(std::span<const double> chosen, std::span<const double> rejected) {
  constexpr int kBins = 10;
  double sure[kBins] = {}, right[kBins] = {};
  for (size_t i = 0; i < chosen.size(); ++i) {
    const double p = 1 / (1 + std::exp(-std::abs(chosen[i] - rejected[i])));  // [0.5, 1]
    const int bin = std::min(kBins - 1, static_cast<int>((p - 0.5) * 2 * kBins));
    sure[bin] += p;
    right[bin] += chosen[i] > rejected[i];
  }
  double error = 0;
  for (int bin = 0; bin < kBins; ++bin) error += std::abs(sure[bin] - right[bin]);
  return error / static_cast<double>(chosen.size());
}

// ---- Config

class RewardTraining final : public OfflineTraining {
 public:
  double centring = 0.01;

  RewardTraining() {
    total_steps = 100;
    learning_rate = 1e-5;
    schedule = "linear";
    gguf = "none";
  }
  void Fields(FieldVisitor& v) override {
    OfflineTraining::Fields(v);
    v.Field("centring", centring, "weight of (chosen + rejected)^2, which keeps scores around zero",
            Range::AtLeast(0));
  }

  std::vector<double> Scores(const Context& context, const Transformer& model_in_use,
                             const Examples& examples) const {
    std::vector<double> scores;
    ForMicroBatches(examples, micro_batch_tokens, [&](int64_t begin, int64_t end) {
      const ScoreBatch scored(examples, begin, end);
      const Tensor rows = model_in_use.Forward(context, scored.batch.view(), nullptr);
      for (const float score : ScoreRows(context, model_in_use, rows, scored.last)) {
        scores.push_back(score);
      }
    });
    return scores;
  }
  PairLoss Loss(std::span<const double> scores, std::span<const double> margin) const {
    std::vector<double> chosen, rejected;
    for (size_t s = 0; s < scores.size(); s += 2) {
      chosen.push_back(scores[s]);
      rejected.push_back(scores[s + 1]);
    }
    return BradleyTerry(chosen, rejected, margin, centring);
  }

  std::vector<Figure> Judge(const Context& context, Transformer& judged,
                            const Examples& examples) const override {
    const std::vector<double> scores = Scores(context, judged, examples);
    const PairLoss loss = Loss(scores, examples.margin);
    std::vector<double> chosen, rejected;
    for (size_t s = 0; s < scores.size(); s += 2) {
      chosen.push_back(scores[s]);
      rejected.push_back(scores[s + 1]);
    }
    const auto [low, high] = Interval(loss.accuracy, static_cast<double>(chosen.size()));
    return {{"loss", loss.loss},
            {"accuracy", loss.accuracy},
            {"accuracy_low", low},
            {"accuracy_high", high},
            {"calibration_error", CalibrationError(chosen, rejected)}};
  }

  // Of the held-out answers' scores, chosen and rejected alike.
  ScoreNormalisation Normalisation(const Context& context, const Transformer& judged,
                                   const Examples& held_out) const {
    if (held_out.count() == 0) return {};
    const std::vector<double> scores = Scores(context, judged, held_out);
    const auto count = static_cast<double>(scores.size());
    const double mean = std::accumulate(scores.begin(), scores.end(), 0.0) / count;
    double squares = 0;
    for (const double score : scores) squares += (score - mean) * (score - mean);
    const double deviation = std::sqrt(squares / count);
    return {.mean = mean, .deviation = deviation > 0 ? deviation : 1};
  }
  void WriteBest(const Context& context, Transformer& judged, const Examples& held_out,
                 const TensorMap& policy, const std::string& folder) const override {
    OfflineTraining::WriteBest(context, judged, held_out, policy, folder);
    Normalisation(context, judged, held_out).Write(folder + "/best");
  }
  std::vector<Figure> Compare(const Context& context, const Examples& held_out, Transformer&,
                              Transformer& trained) const override {
    if (held_out.count() == 0) return {};
    const ScoreNormalisation found = Normalisation(context, trained, held_out);
    return {{"score_mean", found.mean}, {"score_deviation", found.deviation}};
  }
  std::vector<Figure> Finish(const TensorMap& policy, const std::string& folder) const override {
    std::vector<Figure> figures = OfflineTraining::Finish(policy, folder);
    ScoreNormalisation normalisation;
    for (const auto& [name, value] : figures) {
      if (name == "score_mean") normalisation.mean = value;
      if (name == "score_deviation") normalisation.deviation = value;
    }
    normalisation.Write(folder + "/model");
    return figures;
  }

 protected:
  std::unique_ptr<Transformer> LoadStart(const Context& context,
                                         const LoadOptions& options) const override {
    return LoadScoreModel(context, *ModelFile::Open(ResolveModel(model)), options, seed);
  }
  ModelDescription Description() const override {
    const auto file = ModelFile::Open(ResolveModel(model));
    ModelDescription description = file->description();
    description.config.labels = 1;
    description.config.tied = false;
    description.config.pad = Padding(*file);
    return description;
  }
  std::unique_ptr<OfflineLearner> MakeLearner(const Replica& replica) const override;
  ExampleOptions ExamplesWanted() const override {
    return {.model = ResolveModel(model), .kind = ExampleKind::kPair, .seed = seed};
  }

 private:
  // transformers scores the last token that is not padding, so an id that ends answers is none:
  // the file's own id or else the first special one that ends nothing; -1: none.
  static int64_t Padding(const ModelFile& file) {
    const Tokenizer tokenizer = LoadTokenizerOf(file);
    const std::vector<int32_t> stops = StopIds(file, tokenizer);
    const auto ends = [&](int64_t id) {
      return std::ranges::find(stops, static_cast<int32_t>(id)) != stops.end();
    };
    if (file.config().pad >= 0 && !ends(file.config().pad)) return file.config().pad;
    for (int32_t id = 0; id < tokenizer.size(); ++id) {
      if (tokenizer.IsSpecial(id) && !ends(id)) return id;
    }
    return -1;
  }
};

// ---- Learner

class RewardLearner final : public OfflineLearner {
 public:
  RewardLearner(const RewardTraining& config, const Replica& replica)
      : OfflineLearner(config, replica), config_(config) {}

 protected:
  void Improve(const Examples& examples, weft::Ports& ports) override {
    const auto pairs = static_cast<double>(examples.count());
    double loss = 0, accuracy = 0, sum = 0;
    ForMicroBatches(examples, config_.micro_batch_tokens, [&](int64_t begin, int64_t end) {
      const ScoreBatch batch(examples, begin, end);
      TransformerTrace trace;
      trace.recompute = config_.recompute;
      const Tensor rows = model().Forward(context(), batch.batch.view(), &trace);
      const std::vector<float> scores = ScoreRows(context(), model(), rows, batch.last);
      const PairLoss part =
          config_.Loss(std::vector<double>(scores.begin(), scores.end()),
                       std::span(examples.margin).subspan(begin / 2, (end - begin) / 2));
      const double share = static_cast<double>(part.per_pair.size()) / pairs;
      std::vector<double> d_scores;
      for (size_t i = 0; i < part.d_chosen.size(); ++i) {
        d_scores.push_back(part.d_chosen[i] * share);
        d_scores.push_back(part.d_rejected[i] * share);
      }
      model().Backward(context(), batch.batch.view(), trace,
                       ScoreRowsGradient(context(), model(), rows, batch.last, d_scores));
      loss += part.loss * share;
      accuracy += part.accuracy * share;
      for (const float score : scores) sum += score;
    });
    if (!std::isfinite(loss)) throw Error(ErrorCode::kDiverged, "the loss is not finite");
    ports.Log("loss", loss);
    ports.Log("accuracy", accuracy);
    ports.Log("score", sum / (2 * pairs));
  }

 private:
  const RewardTraining& config_;
};

// ---- Build

std::unique_ptr<OfflineLearner> RewardTraining::MakeLearner(const Replica& replica) const {
  return std::make_unique<RewardLearner>(*this, replica);
}

WEFT_REGISTER_LANGUAGE_METHOD(RewardTraining, "reward_model",
                              "a reward model from pairs of a chosen and a rejected answer");

}  // namespace
}  // namespace weft
