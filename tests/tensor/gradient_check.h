// Gradients against central differences, and the compiled backward pass against the interpreted
// one, bit for bit.
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <span>
#include <vector>

#include "base/random.h"
#include "tensor/context.h"
#include "tensor/ops.h"
#include "tensor/tape.h"
#include "tensor/tensor.h"

namespace weft {

// Uniform in [low, high).
inline Tensor Random(const Shape& shape, uint64_t seed, double low = -1, double high = 1) {
  Rng rng(seed, Purpose::kTest);
  Tensor tensor = Tensor::Empty(shape);
  for (float& value : tensor.data<float>()) value = static_cast<float>(rng.Uniform(low, high));
  return tensor;
}
inline Tensor RandomWeight(int64_t in, int64_t out, uint64_t seed) {
  return Random({in, out}, seed).ToLayout(Layout::kPanels);
}

inline std::vector<Tensor*> Handles(std::vector<Tensor>& tensors) {
  std::vector<Tensor*> handles;
  for (Tensor& tensor : tensors) handles.push_back(&tensor);
  return handles;
}

inline bool SameBits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.layout() == b.layout() &&
         std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

using Loss = std::function<Tensor(std::span<const Tensor>)>;

// The gradients of the loss, cloned.
inline std::vector<Tensor> GradientsOf(std::vector<Tensor> parameters, const Loss& loss,
                                       bool plan) {
  const Context context{.plan = plan};
  const ContextScope scope(context);
  Tape tape(Handles(parameters));
  const Tape::Recording recording(tape);
  std::vector<Tensor> result;
  for (const Tensor& gradient : tape.Gradient(loss(parameters), parameters))
    result.push_back(gradient.Clone());
  return result;
}

inline void ExpectPlanEqualsInterpreter(const std::vector<Tensor>& parameters, const Loss& loss) {
  const auto planned = GradientsOf(parameters, loss, true),
             interpreted = GradientsOf(parameters, loss, false);
  for (size_t i = 0; i < planned.size(); ++i) {
    EXPECT_TRUE(SameBits(planned[i], interpreted[i]))
        << "parameter " << i << " " << parameters[i].shape();
  }
}

// function's output is weighted with fixed numbers and summed. The differences are of fourth order
// with step 0.02, so their own error is about 1e-5; kinks must be 0.04 away from the inputs.
inline void ExpectGradients(std::vector<Tensor> inputs, const Loss& function,
                            double tolerance = 5e-4) {
  for (Tensor& input : inputs) input = input.Clone();
  const auto weights_of = [](const Tensor& y) {
    Tensor weights = Tensor::Empty(y.shape());
    for (int64_t i = 0; i < weights.elements(); ++i) {
      weights.data<float>()[static_cast<size_t>(i)] = std::cos(1.7f * static_cast<float>(i) + 0.3f);
    }
    return weights;
  };
  const Loss loss = [&](std::span<const Tensor> parameters) {
    const Tensor y = function(parameters);
    return Sum(Mul(y, weights_of(y)));
  };
  const auto value = [&] {
    const Tensor y = function(inputs), weights = weights_of(y);
    double sum = 0;
    for (size_t i = 0; i < y.data<float>().size(); ++i) {
      sum +=
          static_cast<double>(y.data<float>()[i]) * static_cast<double>(weights.data<float>()[i]);
    }
    return sum;
  };
  const std::vector<Tensor> gradients = GradientsOf(inputs, loss, true);
  for (size_t p = 0; p < inputs.size(); ++p) {
    const Tensor gradient = gradients[p].ToLayout(Layout::kRowMajor);
    for (int64_t i = 0; i < gradient.elements(); ++i) {
      const Layout layout = inputs[p].layout();
      const Tensor original = inputs[p].ToLayout(Layout::kRowMajor).Clone();
      const auto moved = [&](double by) {
        Tensor changed = original.Clone();
        changed.data<float>()[static_cast<size_t>(i)] += static_cast<float>(by);
        inputs[p] = changed.ToLayout(layout);
        return value();
      };
      constexpr double kStep = 0.02;
      const double expected =
          (8 * (moved(kStep) - moved(-kStep)) - (moved(2 * kStep) - moved(-2 * kStep))) /
          (12 * kStep);
      inputs[p] = original.ToLayout(layout);
      EXPECT_NEAR(gradient.data<float>()[static_cast<size_t>(i)], expected,
                  tolerance * (1 + std::fabs(expected)))
          << "input " << p << ", element " << i;
    }
  }
  ExpectPlanEqualsInterpreter(inputs, loss);
}

}  // namespace weft
