// Action values of discrete actions. B rows, A actions.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "nn/network.h"

namespace weft {

class QNetwork final : public Module {
 public:
  // dueling: a head for the value and one for the advantages, Q = V + A - mean(A) (Wang et al.
  // 2016, equation 9).
  QNetwork(const NetworkConfig& config, const Shape& observation, int64_t actions, bool dueling,
           Rng& rng);

  Tensor Forward(const Tensor& observation) const;  // [B, ..] -> [B, A]
  // Appends the same to a graph (nn/onnx.h).
  std::string Export(OnnxGraph& graph, const std::string& x) const;

  // Parameters: q.*, q.head.*, q.value_head.*
  void Collect(std::string_view prefix, std::vector<NamedParameter>& out) override;

 private:
  Trunk trunk_;
  Linear head_;
  std::optional<Linear> value_head_;
};

// q [B, A] with -1e30 for the actions that mask, u8 [B, A], does not allow: below every value, and
// finite, so that 0 times it is 0. An undefined mask allows everything. Not for use on a tape.
Tensor AllowedValues(const Tensor& q, const Tensor& mask);

// Q(s, a) of continuous actions, on observation and action side by side.
class ContinuousQNetwork final : public Module {
 public:
  ContinuousQNetwork(const NetworkConfig& config, int64_t observation, int64_t actions, Rng& rng);

  Tensor Forward(const Tensor& observation, const Tensor& action) const;  // [B, O], [B, A] -> [B]

  // Parameters: q.*, q.head.*
  void Collect(std::string_view prefix, std::vector<NamedParameter>& out) override;

 private:
  Trunk trunk_;
  Linear head_;
};

}  // namespace weft
