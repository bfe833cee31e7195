// Gradient descent on a fixed list of parameters. The global norm is summed in double, tensor by
// tensor in the order of the list; the step itself is elementwise, so equal gradients give equal
// bits on any number of threads.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "nn/module.h"
#include "tensor/tensor_map.h"

namespace weft {

struct OptimizerConfig : Config {
  std::string name = "adam";
  double beta1 = 0.9, beta2 = 0.999;  // Kingma and Ba 2015
  double epsilon = 1e-8;
  bool epsilon_inside = false;
  double alpha = 0.99;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  bool decay_vectors = true;

  void Fields(FieldVisitor& visitor) override;
  void Check() const override;
};

class Optimizer {
 public:
  // parameters: those that Step changes, f32. They must outlive the optimiser.
  Optimizer(const OptimizerConfig& config, std::vector<NamedParameter> parameters);

  static constexpr double kNoClip = std::numeric_limits<double>::infinity();

  // One step along gradients (one a parameter, same order, shape and layout), scaled down to a
  // global norm of max_norm where it is larger (by max_norm / (norm + 1e-6), as torch). Marks the
  // parameters written. Returns the norm before clipping. When a gradient is not finite nothing is
  // changed and Error(kDiverged) names the first such parameter.
  double Step(std::span<const Tensor> gradients, double learning_rate, double max_norm = kNoClip);

  int64_t steps() const { return steps_; }
  // The whole state: "step" i64 [] and, by parameter, "first.NAME" and "second.NAME" (which of the
  // two depends on the optimiser). Copies. Load throws Error(kInvalidArgument) that lists what is
  // missing, unexpected or mis-shaped.
  TensorMap Save() const;
  void Load(const TensorMap& state);

 private:
  enum class Kind : uint8_t { kAdam, kRmsProp, kSgd };
  void StepOne(size_t index, const Tensor& gradient, double learning_rate, double scale);
  std::vector<NamedParameter> StateEntries();

  OptimizerConfig config_;
  Kind kind_;
  std::vector<NamedParameter> parameters_;
  std::vector<Tensor> first_;  // Adam's first moment, momentum buffers; empty when not used
  std::vector<Tensor>
      second_;  // Adam's second moment, RMSProp's square average; empty when not used
  int64_t steps_ = 0;
  double beta1_power_ = 1, beta2_power_ = 1;  // of the step being made
};

}  // namespace weft
