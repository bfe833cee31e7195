#include "nn/layers.h"

#include <string>

#include "base/check.h"

namespace weft {

Linear::Linear(int64_t in, int64_t out, Activation activation, const Initialisation& initialisation,
               Rng& rng)
    : weight_(MakeWeight(in, out, in, initialisation, rng)),
      bias_(MakeBias(out, in, initialisation, rng)),
      activation_(activation) {}

void Linear::Collect(std::string_view prefix, std::vector<NamedParameter>& out) {
  AddParameter(prefix, "weight", weight_, out);
  AddParameter(prefix, "bias", bias_, out);
}

LayerNormalisation::LayerNormalisation(int64_t size)
    : gamma_(Tensor::Full({size}, 1.0)), beta_(Tensor::Zeros({size})) {}

void LayerNormalisation::Collect(std::string_view prefix, std::vector<NamedParameter>& out) {
  AddParameter(prefix, "gamma", gamma_, out);
  AddParameter(prefix, "beta", beta_, out);
}

Tensor Activate(Activation activation, const Tensor& x) {
  switch (activation) {
    case Activation::kTanh:
      return Tanh(x);
    case Activation::kRelu:
      return Relu(x);
    case Activation::kSigmoid:
      return Sigmoid(x);
    case Activation::kNone:
      return x;
  }
  return x;
}

Mlp::Mlp(int64_t in, std::span<const int64_t> hidden, Activation activation, bool layer_norm,
         const Initialisation& initialisation, Rng& rng)
    : activation_(activation), out_(in) {
  for (const int64_t size : hidden) {
    // With a norm in between, the activation cannot be the dense layer's epilogue.
    layers_.emplace_back(out_, size, layer_norm ? Activation::kNone : activation, initialisation,
                         rng);
    if (layer_norm) norms_.emplace_back(size);
    out_ = size;
  }
}

Tensor Mlp::Forward(const Tensor& x) const {
  Tensor h = x;
  for (size_t i = 0; i < layers_.size(); ++i) {
    h = layers_[i].Forward(h);
    if (!norms_.empty()) h = Activate(activation_, norms_[i].Forward(h));
  }
  return h;
}

void Mlp::Collect(std::string_view prefix, std::vector<NamedParameter>& out) {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const std::string layer = std::string(prefix) + std::to_string(i) + ".";
    layers_[i].Collect(layer, out);
    if (!norms_.empty()) norms_[i].Collect(layer + "norm.", out);
  }
}

Convolution::Convolution(int64_t channels, int64_t filters, int64_t kernel, int64_t stride,
                         int64_t pad, Activation activation, const Initialisation& initialisation,
                         Rng& rng)
    : weight_(MakeWeight(channels * kernel * kernel, filters, channels * kernel * kernel,
                         initialisation, rng)),
      bias_(MakeBias(filters, channels * kernel * kernel, initialisation, rng)),
      kernel_(kernel),
      stride_(stride),
      pad_(pad),
      activation_(activation) {}

void Convolution::Collect(std::string_view prefix, std::vector<NamedParameter>& out) {
  AddParameter(prefix, "weight", weight_, out);
  AddParameter(prefix, "bias", bias_, out);
}

NatureCnn::NatureCnn(int64_t channels, int64_t height, int64_t width, int64_t features,
                     const Initialisation& initialisation, Rng& rng)
    : conv1_(channels, 32, 8, 4, 0, Activation::kRelu, initialisation, rng),
      conv2_(32, 64, 4, 2, 0, Activation::kRelu, initialisation, rng),
      conv3_(64, 64, 3, 1, 0, Activation::kRelu, initialisation, rng),
      dense_(FlatSize(height, width), features, Activation::kRelu, initialisation, rng) {}

int64_t NatureCnn::FlatSize(int64_t height, int64_t width) const {
  WEFT_CHECK(height >= 36 && width >= 36)
      << "the Nature CNN needs images of at least 36 x 36, not " << height << " x " << width;
  const auto size = [this](int64_t side) {
    return conv3_.OutputSize(conv2_.OutputSize(conv1_.OutputSize(side)));
  };
  return 64 * size(height) * size(width);
}

Tensor NatureCnn::Convolutions(const Tensor& x) const {
  WEFT_CHECK_EQ(x.shape().rank(), 4) << "images as [batch, channels, height, width]";
  const Tensor pixels = x.dtype() == DType::kFloat32 ? x : Cast(x, DType::kFloat32);
  const Tensor h =
      conv3_.Forward(conv2_.Forward(conv1_.Forward(Scale(pixels, 1.0f / 255))));  // [B, 64, h, w]
  return Reshape(h, {x.dim(0), h.dim(1) * h.dim(2) * h.dim(3)});
}

void NatureCnn::Collect(std::string_view prefix, std::vector<NamedParameter>& out) {
  const std::string base(prefix);
  conv1_.Collect(base + "conv1.", out);
  conv2_.Collect(base + "conv2.", out);
  conv3_.Collect(base + "conv3.", out);
  dense_.Collect(base + "dense.", out);
}

}  // namespace weft
