#include "tensor/kernels_pointwise.h"

namespace weft::kernels {
namespace {

float Single(double value) {
  return static_cast<float>(value);
}

}  // namespace

double Power(double base, int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}

AdamFactors FactorsOf(const AdamStep& step) {
  return {.scale = Single(step.gradient_scale),
          .one_minus_beta1 = Single(1 - step.beta1),
          .beta2 = Single(step.beta2),
          .one_minus_beta2 = Single(1 - step.beta2),
          .epsilon = Single(step.epsilon),
          .keep = Single(1 - step.learning_rate * step.weight_decay),
          .step_size = Single(step.learning_rate / (1 - step.beta1_power)),
          .root_scale = Single(1 / __builtin_sqrt(1 - step.beta2_power))};
}

RmsPropFactors FactorsOf(const RmsPropStep& step) {
  return {.scale = Single(step.gradient_scale),
          .alpha = Single(step.alpha),
          .one_minus_alpha = Single(1 - step.alpha),
          .epsilon = Single(step.epsilon),
          .momentum = Single(step.momentum),
          .weight_decay = Single(step.weight_decay),
          .learning_rate = Single(step.learning_rate),
          .epsilon_inside = step.epsilon_inside};
}

SgdFactors FactorsOf(const SgdStep& step) {
  return {.scale = Single(step.gradient_scale),
          .momentum = Single(step.momentum),
          .one_minus_dampening = Single(1 - step.dampening),
          .weight_decay = Single(step.weight_decay),
          .learning_rate = Single(step.learning_rate),
          .nesterov = step.nesterov,
          .first = step.first};
}

}  // namespace weft::kernels
