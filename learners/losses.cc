#include "learners/losses.h"

#include <cmath>
#include <limits>

#include "base/check.h"
#include "tensor/ops.h"

namespace weft {
namespace {

float F(double value) {
  return static_cast<float>(value);
}

// Visits the valid rows in order.
template <class Visit>
void ForValid(const Tensor& valid, int64_t rows, Visit visit) {
  const float* mask = valid.defined() ? valid.data<float>().data() : nullptr;
  WEFT_CHECK(!mask || valid.elements() == rows)
      << "valid is " << valid.shape() << " for " << rows << " rows";
  for (int64_t i = 0; i < rows; ++i) {
    if (!mask || mask[i] != 0.0f) visit(i);
  }
}

// Mean and sum of squared deviations, in two passes in the order of the rows.
struct Moments {
  int64_t count = 0;
  double mean = 0, squares = 0;
};
template <class Value>
Moments ComputeMoments(const Tensor& valid, int64_t rows, Value value) {
  Moments moments;
  double sum = 0;
  ForValid(valid, rows, [&](int64_t i) {
    sum += value(i);
    ++moments.count;
  });
  if (moments.count == 0) return moments;
  moments.mean = sum / static_cast<double>(moments.count);
  ForValid(valid, rows, [&](int64_t i) {
    const double deviation = value(i) - moments.mean;
    moments.squares += deviation * deviation;
  });
  return moments;
}

}  // namespace

Tensor MeanWeights(const Tensor& valid, int64_t rows, double denominator) {
  const double weight = denominator > 0 ? 1.0 / denominator : 0.0;
  if (!valid.defined()) return Tensor::Full({rows}, weight);
  WEFT_CHECK_EQ(valid.elements(), rows) << "valid";
  return Scale(valid.Reshape({rows}), F(weight));
}

Tensor WeightedSum(const Tensor& x, const Tensor& weight) {
  WEFT_CHECK_EQ(x.shape(), weight.shape()) << "one weight a row";
  return Sum(Mul(x, weight));
}

Surrogate ClippedSurrogate(const Tensor& log_prob, const Tensor& old_log_prob,
                           const Tensor& advantage, double clip, double dual_clip) {
  WEFT_CHECK_EQ(log_prob.shape(), old_log_prob.shape()) << "old_log_prob";
  WEFT_CHECK_EQ(log_prob.shape(), advantage.shape()) << "advantage";
  Surrogate result;
  result.log_ratio = Sub(log_prob, old_log_prob);  // [B]
  result.ratio = Exp(result.log_ratio);            // [B]
  const Tensor cost = Neg(advantage);              // [B], a constant
  result.loss = Maximum(Mul(result.ratio, cost),
                        Mul(Clamp(result.ratio, F(1 - clip), F(1 + clip)), cost));  // [B]
  if (dual_clip > 0) {
    WEFT_CHECK_GT(dual_clip, 1.0) << "dual_clip";
    // Rows with A >= 0 get an infinite bound, so one minimum serves all.
    Tensor bound = Tensor::Empty(cost.shape());  // [B]
    const auto cost_of = cost.data<float>();
    auto bound_of = bound.data<float>();
    for (size_t i = 0; i < cost_of.size(); ++i) {
      bound_of[i] =
          cost_of[i] > 0 ? cost_of[i] * F(dual_clip) : std::numeric_limits<float>::infinity();
    }
    result.loss = Minimum(result.loss, bound);  // [B]
  }
  return result;
}

Tensor ValueLoss(const Tensor& value, const Tensor& returns, const Tensor& old_value, double clip) {
  WEFT_CHECK_EQ(value.shape(), returns.shape()) << "returns";
  const Tensor squared = Square(Sub(value, returns));  // [B]
  if (clip <= 0) return Scale(squared, 0.5f);
  WEFT_CHECK_EQ(value.shape(), old_value.shape()) << "old_value";
  const Tensor change = Clamp(Sub(value, old_value), F(-clip), F(clip));  // [B]
  const Tensor clipped = Square(Sub(Add(change, old_value), returns));    // [B]
  return Scale(Maximum(squared, clipped), 0.5f);
}

Tensor NormaliseAdvantages(const Tensor& advantage, const Tensor& valid, double epsilon) {
  const auto values = advantage.data<float>();
  const int64_t rows = advantage.elements();
  const Moments moments = ComputeMoments(valid, rows, [&](int64_t i) { return double{values[i]}; });
  if (moments.count < 2) return advantage.Clone();
  const double scale =
      1.0 / (std::sqrt(moments.squares / static_cast<double>(moments.count - 1)) + epsilon);
  Tensor result = Tensor::Zeros(advantage.shape());
  auto normalised = result.data<float>();
  ForValid(valid, rows, [&](int64_t i) { normalised[i] = F((values[i] - moments.mean) * scale); });
  return result;
}

PolicyDivergence MeasureDivergence(const Surrogate& policy, const Tensor& valid, double clip) {
  const auto ratio = policy.ratio.data<float>();
  const auto log_ratio = policy.log_ratio.data<float>();
  PolicyDivergence result;
  int64_t count = 0;
  ForValid(valid, policy.ratio.elements(), [&](int64_t i) {
    ++count;
    result.kl_k1 -= log_ratio[i];
    result.kl_k3 += (double{ratio[i]} - 1.0) - log_ratio[i];
    result.clip_fraction += std::abs(double{ratio[i]} - 1.0) > clip ? 1.0 : 0.0;
  });
  if (count == 0) return {};
  const double scale = 1.0 / static_cast<double>(count);
  return {result.kl_k1 * scale, result.kl_k3 * scale, result.clip_fraction * scale};
}

double ExplainedVariance(const Tensor& value, const Tensor& returns, const Tensor& valid) {
  WEFT_CHECK_EQ(value.elements(), returns.elements()) << "returns";
  const auto values = value.data<float>();
  const auto targets = returns.data<float>();
  const Moments total =
      ComputeMoments(valid, returns.elements(), [&](int64_t i) { return double{targets[i]}; });
  const Moments residual = ComputeMoments(
      valid, returns.elements(), [&](int64_t i) { return double{targets[i]} - double{values[i]}; });
  return total.squares > 0 ? 1.0 - residual.squares / total.squares : 0.0;
}

Tensor DqnTarget(const Tensor& reward, const Tensor& discount, const Tensor& next_q_target,
                 const Tensor& next_q_online) {
  WEFT_CHECK_EQ(reward.shape(), discount.shape()) << "discount";
  const Tensor next = next_q_online.defined() ? GatherLast(next_q_target, ArgMaxLast(next_q_online))
                                              : MaxLast(next_q_target);  // [B]
  return Add(reward, Mul(discount, next));                               // [B]
}

Tensor TdError(const Tensor& q, const Tensor& action, const Tensor& target) {
  const Tensor taken = GatherLast(q, action);  // [B]
  WEFT_CHECK_EQ(taken.shape(), target.shape()) << "target";
  return Sub(taken, target);  // [B]
}

Tensor HuberLoss(const Tensor& error, double delta) {
  WEFT_CHECK_GT(delta, 0.0) << "delta of the Huber loss";
  // With c = clamp(x), c (x - c / 2) is x^2 / 2 within delta and delta |x| - delta^2 / 2 beyond.
  const Tensor clamped = Clamp(error, F(-delta), F(delta));  // [B]
  return Mul(clamped, Sub(error, Scale(clamped, 0.5f)));     // [B]
}

Tensor SquaredLoss(const Tensor& error) {
  return Square(error);
}

Tensor SacTarget(const Tensor& reward, const Tensor& discount, const Tensor& next_q1,
                 const Tensor& next_q2, const Tensor& next_log_prob, const Tensor& alpha) {
  WEFT_CHECK_EQ(reward.shape(), next_q1.shape()) << "next_q1";
  const Tensor soft = Sub(Minimum(next_q1, next_q2), Mul(next_log_prob, alpha));  // [B]
  return Add(reward, Mul(discount, soft));                                        // [B]
}

Tensor TwinCriticLoss(const Tensor& q1, const Tensor& q2, const Tensor& target) {
  WEFT_CHECK_EQ(q1.shape(), target.shape()) << "target";
  const Tensor squares = Add(Square(Sub(q1, target)), Square(Sub(q2, target)));  // [B]
  return Scale(squares, 0.5f);                                                   // [B]
}

Tensor SacActorLoss(const Tensor& log_prob, const Tensor& q1, const Tensor& q2,
                    const Tensor& alpha) {
  return Sub(Mul(log_prob, alpha), Minimum(q1, q2));  // [B]
}

Tensor TemperatureLoss(const Tensor& log_alpha, const Tensor& log_prob, const Tensor& weight,
                       double target_entropy) {
  const Tensor surplus = WeightedSum(Shift(log_prob.Detach(), F(target_entropy)), weight);  // []
  return Mul(log_alpha, Neg(surplus));
}

}  // namespace weft
