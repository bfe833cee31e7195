#include "rlhf/next_token.h"

#include <cmath>

#include "base/random.h"

namespace weft {
namespace {

double LearntTokens(const Examples& examples) {
  int64_t tokens = 0;
  for (int64_t s = 0; s < examples.sequences.count(); ++s) tokens += examples.LearntTokens(s);
  return static_cast<double>(tokens);
}

}  // namespace

std::vector<LanguageMethod::Figure> JudgeNextToken(const Context& context, Transformer& model,
                                                   const Examples& examples,
                                                   int64_t micro_batch_tokens) {
  double sum = 0;
  for (const double log_p :
       SequenceLogProbabilities(context, model, examples, micro_batch_tokens)) {
    sum -= log_p;
  }
  return {{"loss", sum / LearntTokens(examples)}};
}

std::vector<float> EmbeddingNoise(const Examples& examples, int64_t begin, int64_t end,
                                  int64_t hidden, double alpha, uint64_t seed, int64_t step) {
  const Rng base(seed, Purpose::kLearner, (uint64_t{1} << 39) + static_cast<uint64_t>(step));
  std::vector<float> noise;
  for (int64_t s = begin; s < end; ++s) {
    Rng::State state = base.state();  // a draw for each number of each token of the step
    state.position = static_cast<uint64_t>(examples.sequences.offsets[s] * hidden);
    Rng rng(state);
    const auto bound = static_cast<float>(
        alpha / std::sqrt(static_cast<double>(examples.sequences.length(s) * hidden)));
    const int64_t rows = examples.sequences.length(s) - 1;  // nothing is foreseen by the last token
    for (int64_t i = 0; i < rows * hidden; ++i) {
      noise.push_back(bound * (2 * rng.UniformFloat() - 1));
    }
  }
  return noise;
}

double LanguageLearner::AddLikelihood(const Examples& examples, double weight, double noise_alpha) {
  const double tokens = LearntTokens(examples);
  double loss = 0;
  ForMicroBatches(examples, config_.micro_batch_tokens, [&](int64_t begin, int64_t end) {
    LanguageBatch batch = BatchOf(examples, begin, end);
    if (noise_alpha > 0) {
      batch.noise = EmbeddingNoise(examples, begin, end, model().config().hidden, noise_alpha,
                                   config_.seed, env_steps());
    }
    TransformerTrace trace;
    Tensor rows;
    const std::vector<float> log_p = LogProbabilities(batch, &trace, &rows);
    for (const float value : log_p) loss -= value;
    AddGradient(batch, trace, rows, std::vector<double>(log_p.size(), -weight / tokens));
  });
  loss /= tokens;
  if (!std::isfinite(loss)) throw Error(ErrorCode::kDiverged, "the loss is not finite");
  return loss;
}

void NextTokenLearner::Improve(const Examples& examples, weft::Ports& ports) {
  const double loss = AddLikelihood(examples, 1, noise_alpha_);
  ports.Log("loss", loss);
  ports.Log("perplexity", std::exp(loss));
  ports.Log("learnt_tokens", LearntTokens(examples));
}

}  // namespace weft
