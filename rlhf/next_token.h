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

class NextTokenLearner final : public OfflineLearner {
 public:
  NextTokenLearner(const OfflineTraining& config, const Replica& replica)
      : OfflineLearner(config, replica), config_(config) {}

 protected:
  void Improve(const Examples& examples, weft::Ports& ports) override;

 private:
  const OfflineTraining& config_;
};

}  // namespace weft
