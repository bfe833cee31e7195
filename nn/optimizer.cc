#include "nn/optimizer.h"

#include <cmath>

#include "base/check.h"
#include "tensor/context.h"
#include "tensor/kernels.h"

namespace weft {
namespace {

constexpr double kClipEpsilon = 1e-6;  // torch.nn.utils.clip_grad_norm_

}  // namespace

void OptimizerConfig::Fields(FieldVisitor& visitor) {
  visitor.Choice("name", name, {"adam", "adamw", "rmsprop", "sgd"}, "update rule");
  visitor.Field("beta1", beta1, "adam, adamw: decay of the mean of gradients",
                Range::Between(0, 1));
  visitor.Field("beta2", beta2, "adam, adamw: decay of the mean of squared gradients",
                Range::Between(0, 1));
  visitor.Field("epsilon", epsilon, "adam, adamw, rmsprop: added to the denominator",
                Range::Positive());
  visitor.Field("epsilon_inside", epsilon_inside,
                "rmsprop: as TensorFlow, epsilon under the root and a square average that starts "
                "at 1; false: as torch");
  visitor.Field("alpha", alpha, "rmsprop: decay of the mean of squared gradients",
                Range::Between(0, 1));
  visitor.Field("momentum", momentum, "rmsprop, sgd: decay of the momentum buffer, 0 for none",
                Range::Between(0, 1));
  visitor.Field("nesterov", nesterov, "sgd: look ahead along the momentum");
  visitor.Field("weight_decay", weight_decay,
                "adamw: share of a parameter lost per step and learning rate; rmsprop, sgd: times "
                "the parameter, added to its gradient",
                Range::AtLeast(0));
  visitor.Field("decay_vectors", decay_vectors,
                "whether weight_decay is of biases and gains too, or of matrices alone");
}

void OptimizerConfig::Check() const {
  if (name == "adam" && weight_decay > 0) {
    throw ConfigProblem("weight_decay", "adam has no weight decay: take adamw");
  }
  if (beta1 >= 1 || beta2 >= 1) {
    throw ConfigProblem(beta1 >= 1 ? "beta1" : "beta2", "must be below 1");
  }
  if (nesterov && (name != "sgd" || momentum <= 0)) {
    throw ConfigProblem("nesterov", "needs sgd with momentum above 0");
  }
}

Optimizer::Optimizer(const OptimizerConfig& config, std::vector<NamedParameter> parameters)
    : config_(config),
      kind_(config.name == "sgd"       ? Kind::kSgd
            : config.name == "rmsprop" ? Kind::kRmsProp
                                       : Kind::kAdam),
      parameters_(std::move(parameters)) {
  config_.Check();
  const bool has_first = kind_ == Kind::kAdam || config_.momentum > 0;
  const bool has_second = kind_ != Kind::kSgd;
  for (const NamedParameter& parameter : parameters_) {
    const Tensor& tensor = *parameter.tensor;
    if (has_first) first_.push_back(Tensor::Zeros(tensor.shape(), tensor.dtype(), tensor.layout()));
    if (has_second) {
      second_.push_back(Tensor::Zeros(tensor.shape(), tensor.dtype(), tensor.layout()));
      if (kind_ == Kind::kRmsProp && config_.epsilon_inside) second_.back().Fill(1);
    }
  }
}

double Optimizer::Step(std::span<const Tensor> gradients, double learning_rate, double max_norm) {
  WEFT_CHECK_EQ(gradients.size(), parameters_.size()) << "one gradient a parameter";
  const Context& context = CurrentContext();
  double sum = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Tensor& gradient = gradients[i];
    const Tensor& parameter = *parameters_[i].tensor;
    WEFT_CHECK(gradient.shape() == parameter.shape() && gradient.layout() == parameter.layout())
        << "gradient " << gradient.shape() << " of " << parameters_[i].name.text() << " "
        << parameter.shape();
    const double squares =
        kernels::SumSquares(context, gradient.stored_elements(), gradient.data<float>().data());
    // Squares of finite floats cannot overflow a double.
    if (!std::isfinite(squares)) {
      throw Error(ErrorCode::kDiverged,
                  "the gradient of " + std::string(parameters_[i].name.text()) + " is not finite");
    }
    sum += squares;
  }
  const double norm = std::sqrt(sum);
  const double scale = std::min(1.0, max_norm / (norm + kClipEpsilon));
  ++steps_;
  beta1_power_ = kernels::Power(config_.beta1, steps_);
  beta2_power_ = kernels::Power(config_.beta2, steps_);
  for (size_t i = 0; i < gradients.size(); ++i) {
    StepOne(i, gradients[i], learning_rate, scale);
    parameters_[i].tensor->MarkWritten();
  }
  return norm;
}

void Optimizer::StepOne(size_t index, const Tensor& gradient, double learning_rate, double scale) {
  if (!first_.empty()) HaveAlone(first_[index]);
  if (!second_.empty()) HaveAlone(second_[index]);
  const Context& context = CurrentContext();
  const int64_t count = gradient.stored_elements();
  const double decay =
      config_.decay_vectors || gradient.shape().rank() > 1 ? config_.weight_decay : 0;
  const float* d = gradient.data<float>().data();
  float* parameter = parameters_[index].tensor->data<float>().data();
  float* first = first_.empty() ? nullptr : first_[index].data<float>().data();
  float* second = second_.empty() ? nullptr : second_[index].data<float>().data();
  switch (kind_) {
    case Kind::kAdam:
      kernels::Adam(context, count,
                    {.learning_rate = learning_rate,
                     .beta1 = config_.beta1,
                     .beta2 = config_.beta2,
                     .epsilon = config_.epsilon,
                     .weight_decay = decay,
                     .beta1_power = beta1_power_,
                     .beta2_power = beta2_power_,
                     .gradient_scale = scale},
                    d, parameter, first, second);
      return;
    case Kind::kRmsProp:
      kernels::RmsProp(context, count,
                       {.learning_rate = learning_rate,
                        .alpha = config_.alpha,
                        .epsilon = config_.epsilon,
                        .momentum = config_.momentum,
                        .weight_decay = decay,
                        .gradient_scale = scale,
                        .epsilon_inside = config_.epsilon_inside},
                       d, parameter, second, first);
      return;
    case Kind::kSgd:
      kernels::Sgd(context, count,
                   {.learning_rate = learning_rate,
                    .momentum = config_.momentum,
                    .dampening = 0,
                    .weight_decay = decay,
                    .gradient_scale = scale,
                    .nesterov = config_.nesterov,
                    .first = steps_ == 1},
                   d, parameter, first);
      return;
  }
}

std::vector<NamedParameter> Optimizer::StateEntries() {
  std::vector<NamedParameter> entries;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const std::string_view name = parameters_[i].name.text();
    if (!first_.empty()) AddParameter("first.", name, first_[i], entries);
    if (!second_.empty()) AddParameter("second.", name, second_[i], entries);
  }
  return entries;
}

TensorMap Optimizer::Save() const {
  TensorMap state = ShareState(const_cast<Optimizer*>(this)->StateEntries());  // only read
  state.Set("step", Tensor::From<int64_t>({}, {steps_}));
  return state;
}

void Optimizer::Load(const TensorMap& state) {
  const Tensor* step = state.Find("step");
  if (!step || step->dtype() != DType::kInt64 || step->elements() != 1) {
    throw Error(ErrorCode::kInvalidArgument, "the optimiser's state has no i64 scalar \"step\"");
  }
  TensorMap moments = state;
  moments.Erase("step");
  for (Tensor& moment : first_) HaveAlone(moment);
  for (Tensor& moment : second_) HaveAlone(moment);
  LoadState(StateEntries(), moments);
  steps_ = step->data<int64_t>()[0];
}

}  // namespace weft
