// A short fine-tune against one in float64 by another program (tests/language/make_fine_tune.py):
// every step's loss is its, whether activations are kept or made again, and whether the loss is the
// fused head's or ops on a tape, with compiled gradients (plan on) or interpreted ones.
#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

#include "language/json.h"
#include "language/language_head.h"
#include "language/language_model.h"
#include "language/recorded_batch.h"
#include "nn/optimizer.h"
#include "nn/safetensors.h"
#include "tensor/ops.h"
#include "tensor/tape.h"
#include "tests/language/reference_files.h"

namespace weft {
namespace {

struct Trajectory {
  std::vector<double> losses, norms;
  int64_t plan_hits = 0;
};

// MeanLoss by ops on a tape: adds to the output matrix's gradient and sets d_final.
class TapeLoss {
 public:
  TapeLoss(Projection& head, std::span<const int32_t> targets)
      : head_(head),
        rows_(Tensor::Zeros({std::ssize(targets), head.in()})),
        weight_(head.weight()),
        index_(Tensor::Zeros({rows_.dim(0)}, DType::kInt64)),
        share_(Tensor::Zeros({rows_.dim(0)})),
        parameters_{&rows_, &weight_},
        tape_(parameters_) {
    const auto unwanted = std::ranges::count(targets, -1);
    const double wanted = static_cast<double>(std::ssize(targets) - unwanted);
    for (size_t t = 0; t < targets.size(); ++t) {
      if (targets[t] < 0) continue;
      index_.data<int64_t>()[t] = targets[t];
      share_.data<float>()[t] = static_cast<float>(-1 / wanted);
    }
  }

  double Of(const Tensor& rows, Tensor* d_final) {
    rows_.CopyFrom(rows);
    const Tape::Recording recording(tape_);
    const Tensor logits = Dense(rows_, weight_, Tensor());        // [T, V]
    const Tensor log_p = GatherLast(LogSoftmax(logits), index_);  // [T]
    const Tensor loss = Sum(Mul(log_p, share_));                  // []
    const auto gradients = tape_.Gradient(loss, std::vector<Tensor>{rows_, weight_});
    *d_final = gradients[0].Clone();
    head_.d_weight().CopyFrom(gradients[1]);
    return loss.Item();
  }
  int64_t plan_hits() const { return tape_.statistics().plan_hits; }

 private:
  Projection& head_;
  Tensor rows_, weight_, index_, share_;
  const std::vector<Tensor*> parameters_;
  Tape tape_;
};

enum class Way { kFused, kFusedRecomputed, kTapePlanned, kTapeInterpreted };

Trajectory FineTune(const std::string& folder, const JsonValue& page, Way way) {
  ThreadPool pool(2);
  const Context context{.pool = &pool, .plan = way != Way::kTapeInterpreted};
  const ContextScope scope(context);
  const auto file = ModelFile::Open(folder);
  const auto model =
      LoadTransformer(context, *file, {.precision = Precision::kFloat32, .keep_master = true});
  model->EnableGradient();
  model->Refresh(context);
  OptimizerConfig config;
  config.name = "adamw";
  config.beta1 = RecordedNumber(page, "beta1");
  config.beta2 = RecordedNumber(page, "beta2");
  config.epsilon = RecordedNumber(page, "epsilon");
  config.weight_decay = RecordedNumber(page, "weight_decay");
  Optimizer optimizer(config, model->Parameters());
  const RecordedBatch batch(ReadSafetensors(folder + "/expected.safetensors"), "_right");
  const TokenBatch tokens = batch.tokens();
  const std::vector<int32_t> targets = batch.Targets();
  std::unique_ptr<TapeLoss> by_tape;
  if (way == Way::kTapePlanned || way == Way::kTapeInterpreted) {
    by_tape = std::make_unique<TapeLoss>(model->head(), targets);
  }
  Trajectory trajectory;
  const size_t steps = RecordedNumbers(page, "gradient_norms").size();
  for (size_t step = 0; step <= steps; ++step) {
    TransformerTrace trace;
    trace.recompute = way == Way::kFusedRecomputed;
    const Tensor rows = model->Forward(context, tokens, &trace);
    Tensor d_final;
    trajectory.losses.push_back(by_tape ? by_tape->Of(rows, &d_final)
                                        : MeanLoss(context, *model, rows, targets, &d_final));
    if (step == steps) break;
    model->Backward(context, tokens, trace, d_final);
    trajectory.norms.push_back(optimizer.Step(model->Gradients(),
                                              RecordedNumber(page, "learning_rate"),
                                              RecordedNumber(page, "max_gradient_norm")));
    model->ClearGradients();
    model->Refresh(context);
  }
  if (by_tape) trajectory.plan_hits = by_tape->plan_hits();
  return trajectory;
}

class FineTunes : public testing::Test {
 protected:
  void SetUp() override {
    if (folder_.empty()) GTEST_SKIP() << "WEFT_REFERENCE is unset: no model to fine-tune";
  }
  Trajectory Run(Way way) const { return FineTune(folder_, page_, way); }
  void ExpectReference(const Trajectory& got) const {
    const std::vector<double> losses = RecordedNumbers(page_, "losses"),
                              norms = RecordedNumbers(page_, "gradient_norms");
    ASSERT_EQ(got.losses.size(), losses.size());
    for (size_t i = 0; i < losses.size(); ++i) {
      EXPECT_NEAR(got.losses[i], losses[i], 1e-4) << "after step " << i;
    }
    for (size_t i = 0; i < norms.size(); ++i) {
      EXPECT_NEAR(got.norms[i], norms[i], 1e-3 * norms[i]) << "step " << i;
    }
    EXPECT_LT(got.losses.back(), 0.1 * got.losses.front()) << "it learns";
  }

 private:
  const std::string folder_ = ReferencePath("language/models/llama_gqa_untied");
  const JsonValue page_ = ReadJsonFile(WEFT_TEST_DATA "/language/fine_tune.json");
};

TEST_F(FineTunes, FollowTheReferenceStepByStep) {
  const Trajectory got = Run(Way::kFused);
  ExpectReference(got);
  EXPECT_EQ(Run(Way::kFusedRecomputed).losses, got.losses) << "activations made again";
}

TEST_F(FineTunes, HaveEqualLossesWithThePlanOnAndOff) {
  const Trajectory on = Run(Way::kTapePlanned), off = Run(Way::kTapeInterpreted);
  ExpectReference(on);
  EXPECT_GT(on.plan_hits, 0);
  EXPECT_EQ(off.plan_hits, 0);
  EXPECT_EQ(off.losses, on.losses);
  EXPECT_EQ(off.norms, on.norms);
}

}  // namespace
}  // namespace weft
