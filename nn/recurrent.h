// Recurrent layers that carry a state from row to row of time and forget it where an episode
// begins. T steps, B rows, I inputs, H hidden units. Step and Sequence give the same bits: the
// products of a row do not depend on the other rows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "nn/initialise.h"
#include "nn/module.h"

namespace weft {

class OnnxGraph;

// Names of the state's values in a graph.
struct OnnxState {
  std::string hidden, cell;
};

struct RecurrentState {
  Tensor hidden;  // [B, H]
  Tensor cell;    // [B, H], the Lstm's only
};

class Recurrent : public Module {
 public:
  explicit Recurrent(int64_t hidden) : hidden_(hidden) {}
  int64_t out() const { return hidden_; }

  virtual RecurrentState InitialState(int64_t rows) const = 0;  // zeros

  // x [B, I], first u8 [B] -> [B, H]. Where first is 1 the state is zeroed before the step. state
  // is replaced.
  Tensor Step(const Tensor& x, const Tensor& first, RecurrentState& state) const;
  // x [T, B, I], first u8 [T, B], state before step 0 -> [T, B, H]; state becomes that after step
  // T-1.
  Tensor Sequence(const Tensor& x, const Tensor& first, RecurrentState& state) const;
  // Appends one step to a graph (nn/onnx.h) and replaces the state by the values after it.
  // Forgetting is the caller's.
  virtual std::string ExportStep(OnnxGraph& graph, std::string_view prefix, const std::string& x,
                                 OnnxState& state) const = 0;

 protected:
  // The part of the gates that depends on the input alone: [R, I] -> [R, G].
  virtual Tensor InputGates(const Tensor& x) const = 0;
  // One step: replaces the state.
  virtual void Advance(const Tensor& input_gates, RecurrentState& state) const = 0;

 private:
  int64_t hidden_;
};

// Hochreiter and Schmidhuber 1997, gates in torch's order i f g o. Parameters: input.weight [I,
// 4H], input.bias [4H] (the sum of torch's two), hidden.weight [H, 4H].
class Lstm final : public Recurrent {
 public:
  Lstm(int64_t in, int64_t hidden, const Initialisation& initialisation, Rng& rng);
  RecurrentState InitialState(int64_t rows) const override;
  void Collect(std::string_view prefix, std::vector<NamedParameter>& out) override;
  std::string ExportStep(OnnxGraph& graph, std::string_view prefix, const std::string& x,
                         OnnxState& state) const override;

 private:
  Tensor InputGates(const Tensor& x) const override;
  void Advance(const Tensor& input_gates, RecurrentState& state) const override;

  Tensor input_weight_, hidden_weight_, bias_;
};

// Cho et al. 2014 in torch's form, gates r z n with the reset gate applied after the product.
// Parameters: input.weight [I, 3H], input.bias [3H], hidden.weight [H, 3H], hidden.bias [3H].
class Gru final : public Recurrent {
 public:
  Gru(int64_t in, int64_t hidden, const Initialisation& initialisation, Rng& rng);
  RecurrentState InitialState(int64_t rows) const override;
  void Collect(std::string_view prefix, std::vector<NamedParameter>& out) override;
  std::string ExportStep(OnnxGraph& graph, std::string_view prefix, const std::string& x,
                         OnnxState& state) const override;

 private:
  Tensor InputGates(const Tensor& x) const override;
  void Advance(const Tensor& input_gates, RecurrentState& state) const override;

  Tensor input_weight_, input_bias_, hidden_weight_, hidden_bias_;
};

}  // namespace weft
