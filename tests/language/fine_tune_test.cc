// A short fine-tune against one in float64 by another program (tests/language/make_fine_tune.py):
// every step's loss is its, whether activations are kept or made again, and whether the loss is the
// fused head's or ops on a tape, with compiled gradients (plan on) or interpreted ones.
#include <cmath>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

#include "language/json.h"
#include "language/language_head.h"
#include "language/language_model.h"
#include "nn/optimizer.h"
#include "nn/safetensors.h"
#include "tensor/ops.h"
#include "tensor/tape.h"
#include "tests/language/reference_files.h"

namespace weft {
namespace {

double Number(const JsonValue& page, const char* key) {
  double number = NAN;
  page.Find(key)->GetDouble(number);
  return number;
}

std::vector<double> Numbers(const JsonValue& page, const char* key) {
  std::vector<double> numbers;
  for (const JsonValue& item : page.Find(key)->Items()) item.GetDouble(numbers.emplace_back());
  return numbers;
}

// The rows of a recorded batch without their padding, and what is to be learnt.
struct Batch {
  std::vector<int32_t> ids, positions, targets;
  std::vector<kernels::AttentionSpan> spans;
  int64_t wanted = 0;

  explicit Batch(const TensorMap& recording) {
    const Tensor batch = recording.At("input_ids_right"), labels = recording.At("labels_right");
    const auto mask = recording.At("attention_mask_right").data<int64_t>();
    const int64_t columns = batch.dim(1);
    for (int64_t b = 0; b < batch.dim(0); ++b) {
      spans.push_back({std::ssize(ids), 0, 0, nullptr});
      for (int64_t t = 0; t < columns && mask[b * columns + t] != 0; ++t) {
        const int64_t at = b * columns + t;
        ids.push_back(static_cast<int32_t>(batch.data<int64_t>()[at]));
        positions.push_back(static_cast<int32_t>(t));
        const int64_t label = t + 1 < columns ? labels.data<int64_t>()[at + 1] : -100;
        targets.push_back(label < 0 ? -1 : static_cast<int32_t>(label));
        wanted += label >= 0;
        ++spans.back().rows;
      }
    }
  }
};

struct Trajectory {
  std::vector<double> losses, norms;
  int64_t plan_hits = 0;
};

// MeanLoss by ops on a tape: adds to the output matrix's gradient and sets d_final.
class TapeLoss {
 public:
  TapeLoss(Projection& head, const Batch& batch)
      : head_(head),
        rows_(Tensor::Zeros({std::ssize(batch.ids), head.in()})),
        weight_(head.weight()),
        index_(Tensor::Zeros({rows_.dim(0)}, DType::kInt64)),
        share_(Tensor::Zeros({rows_.dim(0)})),
        parameters_{&rows_, &weight_},
        tape_(parameters_) {
    for (size_t t = 0; t < batch.targets.size(); ++t) {
      if (batch.targets[t] < 0) continue;
      index_.data<int64_t>()[t] = batch.targets[t];
      share_.data<float>()[t] = static_cast<float>(-1 / static_cast<double>(batch.wanted));
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
  config.beta1 = Number(page, "beta1");
  config.beta2 = Number(page, "beta2");
  config.epsilon = Number(page, "epsilon");
  config.weight_decay = Number(page, "weight_decay");
  Optimizer optimizer(config, model->Parameters());
  std::vector<Tensor> gradients = model->Gradients();
  const Batch batch(ReadSafetensors(folder + "/expected.safetensors"));
  const TokenBatch tokens{.ids = batch.ids, .positions = batch.positions, .spans = batch.spans};
  std::unique_ptr<TapeLoss> by_tape;
  if (way == Way::kTapePlanned || way == Way::kTapeInterpreted) {
    by_tape = std::make_unique<TapeLoss>(model->head(), batch);
  }
  Trajectory trajectory;
  const size_t steps = Numbers(page, "gradient_norms").size();
  for (size_t step = 0; step <= steps; ++step) {
    TransformerTrace trace;
    trace.recompute = way == Way::kFusedRecomputed;
    const Tensor rows = model->Forward(context, tokens, &trace);
    Tensor d_final;
    trajectory.losses.push_back(by_tape ? by_tape->Of(rows, &d_final)
                                        : MeanLoss(context, *model, rows, batch.targets, &d_final));
    if (step == steps) break;
    model->Backward(context, tokens, trace, d_final);
    trajectory.norms.push_back(optimizer.Step(gradients, Number(page, "learning_rate"),
                                              Number(page, "max_gradient_norm")));
    for (Tensor& gradient : gradients) gradient.Fill(0);
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
    const std::vector<double> losses = Numbers(page_, "losses"),
                              norms = Numbers(page_, "gradient_norms");
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
