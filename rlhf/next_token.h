// The learner of methods whose loss is the mean of -log p over a step's learnt tokens.
#pragma once

#include <memory>
#include <vector>

#include "rlhf/offline.h"

namespace weft {

// {"loss"}: the mean over all learnt tokens of the examples.
std::vector<LanguageMethod::Figure> JudgeNextToken(const Context& context, Transformer& model,
                                                   const Examples& examples,
                                                   int64_t micro_batch_tokens);

// Noise for the embeddings of sequences [begin, end), [T, hidden] with T as in BatchOf: uniform in
// +-alpha / sqrt(length * hidden) (Jain et al. 2023, NEFTune). Token t of a step's examples has the
// same noise however they are cut.
std::vector<float> EmbeddingNoise(const Examples& examples, int64_t begin, int64_t end,
                                  int64_t hidden, double alpha, uint64_t seed, int64_t step);

class NextTokenLearner final : public OfflineLearner {
 public:
  // noise_alpha: of noise on the embeddings while training; 0: none.
  NextTokenLearner(const OfflineTraining& config, const Replica& replica, double noise_alpha = 0)
      : OfflineLearner(config, replica), noise_alpha_(noise_alpha) {}

 protected:
  void Improve(const Examples& examples, weft::Ports& ports) override;

 private:
  const double noise_alpha_;
};

}  // namespace weft
