#include "rlhf/next_token.h"

#include <cmath>

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

double LanguageLearner::AddLikelihood(const Examples& examples, double weight) {
  const double tokens = LearntTokens(examples);
  double loss = 0;
  ForMicroBatches(examples, config_.micro_batch_tokens, [&](int64_t begin, int64_t end) {
    const LanguageBatch batch = BatchOf(examples, begin, end);
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
  const double loss = AddLikelihood(examples, 1);
  ports.Log("loss", loss);
  ports.Log("perplexity", std::exp(loss));
  ports.Log("learnt_tokens", LearntTokens(examples));
}

}  // namespace weft
