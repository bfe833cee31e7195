// Returns and losses against values and gradients computed in double by other programs: the maths
// files of the reference data, within the float tolerance that they state (1e-5 relative and 1e-6
// absolute).
#include "tests/nn/reference.h"

#include <functional>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

#include "environments/environment.h"
#include "learners/losses.h"
#include "learners/returns.h"
#include "nn/distribution.h"
#include "tensor/ops.h"

namespace weft {
namespace {

constexpr double kRelative = 1e-5, kAbsolute = 1e-6;

// Tensors of one case of a maths file.
class Case {
 public:
  Case(const TensorMap& file, std::string name) : file_(file), name_(std::move(name)) {}
  const Tensor& At(const std::string& tensor) const { return file_.At(name_ + "." + tensor); }
  void Expect(const Tensor& actual, const std::string& tensor) const {
    ExpectClose(actual, At(tensor), kRelative, kAbsolute, name_ + "." + tensor);
  }
  void Expect(double actual, const std::string& tensor) const {
    Expect(Tensor::Scalar(actual, DType::kFloat64), tensor);
  }

 private:
  const TensorMap& file_;
  std::string name_;
};

TensorMap Maths(const std::string& topic) {
  return ReadSafetensors(ReferencePath("language/maths/" + topic + ".safetensors"));
}

// The files tell a rollout in the form of autoreset within the step: the final observation of an
// episode is a value on the side. Here it becomes a step of its own, followed by a dummy
// transition. One column at a time, since columns grow apart.
struct Column {
  RolloutSteps steps;
  std::vector<int64_t> place;  // of transition t of the file
};

Column Unfold(const Case& file, int64_t n, bool done_only) {
  const Tensor& rewards = file.At("rewards");
  const int64_t time = rewards.dim(0), rows = rewards.dim(1);
  std::vector<float> value, reward, discount;
  std::vector<uint8_t> type = {static_cast<uint8_t>(StepType::kFirst)};
  Column column;
  const auto state_value = [&](int64_t t) {
    return t == time ? file.At("last_values").data<float>()[static_cast<size_t>(n)]
                     : file.At("values").data<float>()[static_cast<size_t>(t * rows + n)];
  };
  value.push_back(state_value(0));
  for (int64_t t = 0; t < time; ++t) {
    const auto i = static_cast<size_t>(t * rows + n);
    const bool terminated = file.At(done_only ? "dones" : "terminated").data<uint8_t>()[i] != 0;
    const bool ended = terminated || (!done_only && file.At("truncated").data<uint8_t>()[i] != 0);
    column.place.push_back(static_cast<int64_t>(reward.size()));
    reward.push_back(rewards.data<float>()[i]);
    discount.push_back(terminated ? 0.0f : 1.0f);
    if (!ended) {
      value.push_back(state_value(t + 1));
      type.push_back(static_cast<uint8_t>(StepType::kMid));
      continue;
    }
    value.push_back(done_only ? 0.0f : file.At("final_values").data<float>()[i]);
    type.push_back(static_cast<uint8_t>(StepType::kLast));
    if (t + 1 == time) break;
    reward.push_back(0);
    discount.push_back(1);
    value.push_back(state_value(t + 1));
    type.push_back(static_cast<uint8_t>(StepType::kFirst));
  }
  const auto length = static_cast<int64_t>(reward.size());
  column.steps = {
      Tensor::From<float>({length + 1, 1}, value), Tensor::From<float>({length, 1}, reward),
      Tensor::From<float>({length, 1}, discount), Tensor::From<uint8_t>({length + 1, 1}, type)};
  return column;
}

// Computes a column at a time and gathers the transitions of the file again, [T, N].
Tensor ForColumns(const Case& file, bool done_only,
                  const std::function<Tensor(const RolloutSteps&)>& compute) {
  const int64_t time = file.At("rewards").dim(0), rows = file.At("rewards").dim(1);
  Tensor result = Tensor::Empty({time, rows}, DType::kFloat64);
  for (int64_t n = 0; n < rows; ++n) {
    const Column column = Unfold(file, n, done_only);
    const Tensor computed = compute(column.steps);
    for (int64_t t = 0; t < time; ++t) {
      result.data<double>()[static_cast<size_t>(t * rows + n)] =
          Element(computed, static_cast<size_t>(column.place[static_cast<size_t>(t)]));
    }
  }
  return result;
}

TEST(Reference, Returns) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap file = Maths("returns");
  const struct { double gamma, lambda; } settings[] = {{0.99, 0.95}, {1.0, 1.0}, {0.9, 0.0}};
  for (int i = 0; i < 3; ++i) {
    const auto [gamma, lambda] = settings[i];
    const std::string number = std::to_string(i);
    for (const bool done_only : {false, true}) {
      const Case gae(file, (done_only ? "gae_done_only." : "gae.") + number);
      gae.Expect(ForColumns(gae, done_only,
                            [&](const RolloutSteps& steps) {
                              return GeneralisedAdvantages(steps, gamma, lambda).advantage;
                            }),
                 "advantages");
      gae.Expect(ForColumns(gae, done_only,
                            [&](const RolloutSteps& steps) {
                              return GeneralisedAdvantages(steps, gamma, lambda).returns;
                            }),
                 "returns");
    }
    const Case td_lambda(file, "td_lambda." + number);
    td_lambda.Expect(
        ForColumns(td_lambda, false,
                   [&](const RolloutSteps& steps) { return LambdaReturns(steps, gamma, lambda); }),
        "returns");
    for (const int64_t n : {1, 3, 5}) {
      const Case n_step(file, "nstep." + number + ".k" + std::to_string(n));
      n_step.Expect(ForColumns(n_step, false,
                               [&](const RolloutSteps& steps) {
                                 return ComputeNStepReturns(steps, gamma, n).returns;
                               }),
                    "returns");
      n_step.Expect(ForColumns(n_step, false,
                               [&](const RolloutSteps& steps) {
                                 return ComputeNStepReturns(steps, gamma, n).length;
                               }),
                    "steps_used");
    }
  }
}

}  // namespace
}  // namespace weft
