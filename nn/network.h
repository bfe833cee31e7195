// The network between observations and heads, described by a config and built from layers: pixels
// go through the Nature CNN, everything else is flat; then hidden layers, then, if there is one, a
// recurrent layer and the layers behind it. The heads (policy, value) belong to the algorithms.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "base/random.h"
#include "nn/layers.h"
#include "nn/module.h"
#include "nn/recurrent.h"

namespace weft {

struct NetworkConfig : Config {
  std::vector<int64_t> hidden = {64, 64};
  std::string activation = "tanh";
  bool layer_norm = false;
  std::string recurrent = "none";
  int64_t recurrent_size = 128;
  std::vector<int64_t> recurrent_hidden;
  bool orthogonal = true;
  bool shared = false;

  void Fields(FieldVisitor& visitor) override;

  Activation hidden_activation() const;
  // Of hidden layers: orthogonal with gain sqrt(2) (Andrychowicz et al. 2021), or torch's uniform.
  Initialisation hidden_initialisation() const;
  // Of a head: orthogonal with the gain given (0.01 for policies, 1 for values), or torch's
  // uniform.
  Initialisation head_initialisation(double gain) const;
};

// Observation rows to features. B rows, T steps, F = out().
class Trunk final : public Module {
 public:
  // observation: the shape of one row. [C, H, W] means pixels 0..255 (u8 or f32), other shapes are
  // flattened; any dtype, the network computes in f32.
  Trunk(const NetworkConfig& config, const Shape& observation, Rng& rng);

  int64_t out() const;
  bool recurrent() const { return recurrent_ != nullptr; }
  // Zeros; undefined tensors without a recurrent layer.
  RecurrentState InitialState(int64_t rows) const;

  // [B, ..] -> [B, F]; only without a recurrent layer.
  Tensor Forward(const Tensor& observation) const;
  // [B, ..], first u8 [B] -> [B, F]. Without a recurrent layer the same as Forward.
  Tensor Step(const Tensor& observation, const Tensor& first, RecurrentState& state) const;
  // [T, B, ..], first u8 [T, B] -> [T, B, F]; without a recurrent layer all rows at once.
  Tensor Sequence(const Tensor& observation, const Tensor& first, RecurrentState& state) const;

  // Parameters: cnn.*, hidden.N.*, recurrent.*, recurrent.hidden.N.*
  void Collect(std::string_view prefix, std::vector<NamedParameter>& out) override;
  // Appends one step to a graph; state is used and replaced only with a recurrent layer.
  std::string Export(OnnxGraph& graph, std::string_view prefix, const std::string& x,
                     OnnxState& state) const;

 private:
  Tensor Features(const Tensor& rows) const;  // [R, ..] -> [R, F'] before the recurrent layer

  int64_t row_elements_;
  std::unique_ptr<NatureCnn> cnn_;
  std::unique_ptr<Mlp> mlp_;
  std::unique_ptr<Recurrent> recurrent_;
  std::unique_ptr<Mlp> after_;  // with the recurrent layer
};

}  // namespace weft
