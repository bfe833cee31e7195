// Layers without state: dense, perceptron, layer normalisation, convolution, the Nature CNN. B
// rows; leading dimensions of a dense layer's input may be several.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "nn/initialise.h"
#include "nn/module.h"
#include "tensor/kernels.h"
#include "tensor/ops.h"

namespace weft {

class OnnxGraph;

// Every module's Export appends it to a graph, reading the value x, and returns the value it
// computes; initialisers are named as the parameters are.

// activation(x w + b): [.., in] -> [.., out]. Parameters: weight [in, out] (torch's transposed),
// bias [out].
class Linear final : public Module {
 public:
  Linear(int64_t in, int64_t out, Activation activation, const Initialisation& initialisation,
         Rng& rng);
  Tensor Forward(const Tensor& x) const { return Dense(x, weight_, bias_, activation_); }
  int64_t out() const { return bias_.dim(0); }
  void Collect(std::string_view prefix, std::vector<NamedParameter>& out) override;
  std::string Export(OnnxGraph& graph, std::string_view prefix, const std::string& x) const;

 private:
  Tensor weight_, bias_;
  Activation activation_;
};

// Per row to mean 0 and variance 1 (Ba et al. 2016), times gamma, plus beta: [.., N] -> [.., N].
// Parameters: gamma, beta.
class LayerNormalisation final : public Module {
 public:
  explicit LayerNormalisation(int64_t size);
  Tensor Forward(const Tensor& x) const { return LayerNorm(x, gamma_, beta_); }
  void Collect(std::string_view prefix, std::vector<NamedParameter>& out) override;
  std::string Export(OnnxGraph& graph, std::string_view prefix, const std::string& x) const;

 private:
  Tensor gamma_, beta_;
};

Tensor Activate(Activation activation, const Tensor& x);

// Hidden layers, each dense, then normalised where layer_norm says so, then the activation: [..,
// in] -> [.., out()], where out() is the last hidden size, or in without hidden layers. Parameters:
// 0.weight, 0.bias, 0.norm.gamma, ...
class Mlp final : public Module {
 public:
  Mlp(int64_t in, std::span<const int64_t> hidden, Activation activation, bool layer_norm,
      const Initialisation& initialisation, Rng& rng);
  Tensor Forward(const Tensor& x) const;
  int64_t out() const { return out_; }
  void Collect(std::string_view prefix, std::vector<NamedParameter>& out) override;
  std::string Export(OnnxGraph& graph, std::string_view prefix, const std::string& x) const;

 private:
  std::vector<Linear> layers_;
  std::vector<LayerNormalisation> norms_;  // empty, or one a layer
  Activation activation_;
  int64_t out_;
};

// Square convolution: [B, C, H, W] -> [B, filters, OH, OW] with OH = (H + 2 pad - kernel) / stride
// + 1. Parameters: weight [C * kernel * kernel, filters] (torch's [filters, C, kernel, kernel]
// reshaped and transposed), bias [filters].
class Convolution final : public Module {
 public:
  Convolution(int64_t channels, int64_t filters, int64_t kernel, int64_t stride, int64_t pad,
              Activation activation, const Initialisation& initialisation, Rng& rng);
  Tensor Forward(const Tensor& x) const {
    return Conv2d(x, weight_, bias_, kernel_, stride_, pad_, activation_);
  }
  int64_t OutputSize(int64_t size) const { return (size + 2 * pad_ - kernel_) / stride_ + 1; }
  void Collect(std::string_view prefix, std::vector<NamedParameter>& out) override;
  std::string Export(OnnxGraph& graph, std::string_view prefix, const std::string& x) const;

 private:
  Tensor weight_, bias_;
  int64_t kernel_, stride_, pad_;
  Activation activation_;
};

// The network of Mnih et al. 2015: pixels 0..255 (u8 or f32) [B, C, H, W], divided by 255, three
// convolutions (32 8x8/4, 64 4x4/2, 64 3x3/1) and a dense layer, all with relu -> [B, features]. H
// and W are at least 36. Parameters: conv1.*, conv2.*, conv3.*, dense.*.
class NatureCnn final : public Module {
 public:
  NatureCnn(int64_t channels, int64_t height, int64_t width, int64_t features,
            const Initialisation& initialisation, Rng& rng);
  Tensor Forward(const Tensor& x) const { return dense_.Forward(Convolutions(x)); }
  // What the dense layer reads: [B, 64 * h * w], channels outermost.
  Tensor Convolutions(const Tensor& x) const;
  int64_t out() const { return dense_.out(); }
  void Collect(std::string_view prefix, std::vector<NamedParameter>& out) override;
  std::string Export(OnnxGraph& graph, std::string_view prefix, const std::string& x) const;

 private:
  // Elements of the last convolution's output for one image.
  int64_t FlatSize(int64_t height, int64_t width) const;

  Convolution conv1_, conv2_, conv3_;
  Linear dense_;
};

}  // namespace weft
