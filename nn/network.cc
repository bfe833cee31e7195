#include "nn/network.h"

#include <cmath>

#include "base/check.h"
#include "tensor/ops.h"

namespace weft {
namespace {

constexpr int64_t kCnnFeatures = 512;  // Mnih et al. 2015

}  // namespace

void NetworkConfig::Fields(FieldVisitor& visitor) {
  visitor.Field("hidden", hidden, "sizes of the hidden layers, after the convolutions of pixels",
                Range::Between(1, 65536));
  visitor.Choice("activation", activation, {"tanh", "relu"}, "after every hidden layer");
  visitor.Field("layer_norm", layer_norm, "normalise every hidden layer before its activation");
  visitor.Choice("recurrent", recurrent, {"none", "lstm", "gru"},
                 "recurrent layer after the hidden layers, for what one observation does not show");
  visitor.Field("recurrent_size", recurrent_size, "units of the recurrent layer",
                Range::Between(1, 65536));
  visitor.Field("recurrent_hidden", recurrent_hidden,
                "sizes of hidden layers behind the recurrent layer", Range::Between(1, 65536));
  visitor.Field("orthogonal", orthogonal,
                "orthogonal initial weights and zero biases; false: uniform, as torch's default");
  visitor.Field("shared", shared, "one trunk for policy and value instead of one each");
}

Activation NetworkConfig::hidden_activation() const {
  return activation == "relu" ? Activation::kRelu : Activation::kTanh;
}

Initialisation NetworkConfig::hidden_initialisation() const {
  return head_initialisation(std::sqrt(2.0));
}

Initialisation NetworkConfig::head_initialisation(double gain) const {
  return orthogonal ? Initialisation::Orthogonal(gain) : Initialisation::Uniform();
}

Trunk::Trunk(const NetworkConfig& config, const Shape& observation, Rng& rng)
    : row_elements_(observation.elements()) {
  const Initialisation initialisation = config.hidden_initialisation();
  int64_t size = row_elements_;
  if (observation.rank() == 3) {
    cnn_ = std::make_unique<NatureCnn>(observation[0], observation[1], observation[2], kCnnFeatures,
                                       initialisation, rng);
    size = cnn_->out();
  }
  mlp_ = std::make_unique<Mlp>(size, config.hidden, config.hidden_activation(), config.layer_norm,
                               initialisation, rng);
  // Recurrent weights have gain 1: they are applied again and again.
  const Initialisation recurrent_initialisation = config.head_initialisation(1.0);
  if (config.recurrent == "lstm") {
    recurrent_ =
        std::make_unique<Lstm>(mlp_->out(), config.recurrent_size, recurrent_initialisation, rng);
  } else if (config.recurrent == "gru") {
    recurrent_ =
        std::make_unique<Gru>(mlp_->out(), config.recurrent_size, recurrent_initialisation, rng);
  }
  if (recurrent_) {
    after_ =
        std::make_unique<Mlp>(recurrent_->out(), config.recurrent_hidden,
                              config.hidden_activation(), config.layer_norm, initialisation, rng);
  }
}

int64_t Trunk::out() const {
  return after_ ? after_->out() : mlp_->out();
}

RecurrentState Trunk::InitialState(int64_t rows) const {
  return recurrent_ ? recurrent_->InitialState(rows) : RecurrentState();
}

Tensor Trunk::Features(const Tensor& rows) const {
  if (cnn_) return mlp_->Forward(cnn_->Forward(rows));
  const Tensor x = rows.dtype() == DType::kFloat32 ? rows : Cast(rows, DType::kFloat32);
  if (x.shape().rank() == 2) return mlp_->Forward(x);
  return mlp_->Forward(Reshape(x, {x.dim(0), row_elements_}));
}

Tensor Trunk::Forward(const Tensor& observation) const {
  WEFT_CHECK(!recurrent_) << "a recurrent network needs its state: call Step or Sequence";
  return Features(observation);
}

Tensor Trunk::Step(const Tensor& observation, const Tensor& first, RecurrentState& state) const {
  const Tensor features = Features(observation);
  return recurrent_ ? after_->Forward(recurrent_->Step(features, first, state)) : features;
}

Tensor Trunk::Sequence(const Tensor& observation, const Tensor& first,
                       RecurrentState& state) const {
  const Shape& shape = observation.shape();
  WEFT_CHECK_GE(shape.rank(), 2) << "a sequence of observations is [steps, rows, ..]";
  const int64_t steps = shape[0], rows = shape[1];
  const Tensor features =
      Features(Reshape(observation, shape.DropFirst().WithDim(0, steps * rows)));  // [T * B, F']
  const Tensor sequence = Reshape(features, {steps, rows, features.dim(1)});
  return recurrent_ ? after_->Forward(recurrent_->Sequence(sequence, first, state)) : sequence;
}

void Trunk::Collect(std::string_view prefix, std::vector<NamedParameter>& out) {
  const std::string base(prefix);
  if (cnn_) cnn_->Collect(base + "cnn.", out);
  mlp_->Collect(base + "hidden.", out);
  if (!recurrent_) return;
  recurrent_->Collect(base + "recurrent.", out);
  after_->Collect(base + "recurrent.hidden.", out);
}

}  // namespace weft
