#include "learners/returns.h"

#include <algorithm>

#include "base/check.h"
#include "environments/environment.h"

namespace weft {
namespace {

// The rollout as plain arrays after all shapes were checked.
struct Rollout {
  int64_t time, rows;
  const float *value, *reward, *discount;
  const uint8_t* type;

  explicit Rollout(const RolloutSteps& steps)
      : time(steps.reward.dim(0)),
        rows(steps.reward.dim(1)),
        value(steps.value.data<float>().data()),
        reward(steps.reward.data<float>().data()),
        discount(steps.discount.data<float>().data()),
        type(steps.type.data<uint8_t>().data()) {
    const Shape transitions{time, rows}, states{time + 1, rows};
    WEFT_CHECK_GT(time, 0) << "a rollout without transitions";
    WEFT_CHECK_EQ(steps.reward.shape(), transitions) << "reward";
    WEFT_CHECK_EQ(steps.discount.shape(), transitions) << "discount";
    WEFT_CHECK_EQ(steps.value.shape(), states) << "value";
    WEFT_CHECK_EQ(steps.type.shape(), states) << "step type";
  }

  bool Last(int64_t t, int64_t n) const {
    return type[t * rows + n] == static_cast<uint8_t>(StepType::kLast);
  }
};

}  // namespace

Advantages GeneralisedAdvantages(const RolloutSteps& steps, double gamma, double lambda) {
  const Rollout rollout(steps);
  const Shape shape{rollout.time, rollout.rows};
  Advantages result{Tensor::Empty(shape), Tensor::Empty(shape), Tensor::Empty(shape)};
  float* advantage = result.advantage.data<float>().data();
  float* returns = result.returns.data<float>().data();
  float* valid = result.valid.data<float>().data();

  Tensor carried = Tensor::Zeros({rollout.rows}, DType::kFloat64);  // A_{t+1}
  double* following = carried.data<double>().data();
  for (int64_t t = rollout.time - 1; t >= 0; --t) {
    for (int64_t n = 0; n < rollout.rows; ++n) {
      const int64_t i = t * rollout.rows + n;
      const double value = rollout.value[i];
      const double discount = gamma * rollout.discount[i];
      const double delta = rollout.reward[i] + discount * rollout.value[i + rollout.rows] - value;
      const bool dummy = rollout.Last(t, n);
      const double beyond = rollout.Last(t + 1, n) ? 0.0 : lambda * discount * following[n];
      following[n] = dummy ? 0.0 : delta + beyond;
      advantage[i] = static_cast<float>(following[n]);
      returns[i] = static_cast<float>(following[n] + value);
      valid[i] = dummy ? 0.0f : 1.0f;
    }
  }
  return result;
}

Tensor LambdaReturns(const RolloutSteps& steps, double gamma, double lambda) {
  const Rollout rollout(steps);
  Tensor result = Tensor::Empty({rollout.time, rollout.rows});
  float* returns = result.data<float>().data();

  Tensor carried = Tensor::Empty({rollout.rows}, DType::kFloat64);  // G_{t+1}
  double* following = carried.data<double>().data();
  std::copy_n(rollout.value + rollout.time * rollout.rows, rollout.rows, following);
  for (int64_t t = rollout.time - 1; t >= 0; --t) {
    for (int64_t n = 0; n < rollout.rows; ++n) {
      const int64_t i = t * rollout.rows + n;
      const double next_value = rollout.value[i + rollout.rows];
      const double beyond =
          rollout.Last(t + 1, n) ? next_value : (1.0 - lambda) * next_value + lambda * following[n];
      following[n] = rollout.Last(t, n) ? rollout.value[i]
                                        : rollout.reward[i] + gamma * rollout.discount[i] * beyond;
      returns[i] = static_cast<float>(following[n]);
    }
  }
  return result;
}

NStepReturns ComputeNStepReturns(const RolloutSteps& steps, double gamma, int64_t n) {
  WEFT_CHECK_GE(n, 1) << "steps of an n-step return";
  const Rollout rollout(steps);
  const Shape shape{rollout.time, rollout.rows};
  NStepReturns result{Tensor::Empty(shape), Tensor::Empty(shape, DType::kInt64)};
  float* returns = result.returns.data<float>().data();
  int64_t* length = result.length.data<int64_t>().data();

  for (int64_t t = 0; t < rollout.time; ++t) {
    for (int64_t row = 0; row < rollout.rows; ++row) {
      double sum = 0, discount = 1;
      int64_t end = t;  // the step reached so far
      while (!rollout.Last(end, row) && end < rollout.time && end - t < n) {
        const int64_t i = end * rollout.rows + row;
        sum += discount * rollout.reward[i];
        discount *= gamma * rollout.discount[i];
        ++end;
      }
      const int64_t i = t * rollout.rows + row;
      returns[i] = static_cast<float>(sum + discount * rollout.value[end * rollout.rows + row]);
      length[i] = end - t;
    }
  }
  return result;
}

}  // namespace weft
