// A short fine-tune against one in float64 by another program (tests/language/make_fine_tune.py):
// every step's loss is its, whether activations are kept or made again.
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "language/json.h"
#include "language/language_head.h"
#include "language/language_model.h"
#include "nn/optimizer.h"
#include "nn/safetensors.h"
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
};

Trajectory FineTune(const std::string& folder, const JsonValue& page, bool recompute) {
  ThreadPool pool(2);
  const Context context{.pool = &pool};
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
  Trajectory trajectory;
  const size_t steps = Numbers(page, "gradient_norms").size();
  for (size_t step = 0; step <= steps; ++step) {
    TransformerTrace trace;
    trace.recompute = recompute;
    const Tensor rows = model->Forward(context, tokens, &trace);
    double loss = 0;
    Tensor d_final;
    const auto count = static_cast<double>(batch.wanted);
    ScoreTokens(
        context, *model, rows, batch.targets, {},
        [&](const HeadBlock& block) {
          for (size_t i = 0; i < block.rows.size(); ++i) {
            loss -= static_cast<double>(block.log_probability[i]) / count;
            block.d_log_probability[i] = static_cast<float>(-1 / count);
          }
        },
        &d_final);
    trajectory.losses.push_back(loss);
    if (step == steps) break;
    model->Backward(context, tokens, trace, d_final);
    trajectory.norms.push_back(optimizer.Step(gradients, Number(page, "learning_rate"),
                                              Number(page, "max_gradient_norm")));
    for (Tensor& gradient : gradients) gradient.Fill(0);
    model->Refresh(context);
  }
  return trajectory;
}

TEST(FineTune, FollowsTheReferenceStepByStep) {
  const std::string folder = ReferencePath("language/models/llama_gqa_untied");
  if (folder.empty()) GTEST_SKIP() << "WEFT_REFERENCE is unset: no model to fine-tune";
  const JsonValue page = ReadJsonFile(WEFT_TEST_DATA "/language/fine_tune.json");
  const Trajectory got = FineTune(folder, page, false);
  const std::vector<double> losses = Numbers(page, "losses"),
                            norms = Numbers(page, "gradient_norms");
  ASSERT_EQ(got.losses.size(), losses.size());
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(got.losses[i], losses[i], 1e-4) << "after step " << i;
  }
  for (size_t i = 0; i < norms.size(); ++i) {
    EXPECT_NEAR(got.norms[i], norms[i], 1e-3 * norms[i]) << "step " << i;
  }
  EXPECT_LT(losses.back(), 0.1 * losses.front()) << "it learns";
  EXPECT_EQ(FineTune(folder, page, true).losses, got.losses) << "activations made again";
}

}  // namespace
}  // namespace weft
