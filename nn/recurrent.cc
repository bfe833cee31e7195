#include "nn/recurrent.h"

#include <tuple>

#include "base/check.h"
#include "tensor/ops.h"

namespace weft {
namespace {

// Zeroes the rows of state where first [B] is 1.
void Forget(const Tensor& first, RecurrentState& state) {
  const Tensor keep = Reshape(Affine(Cast(first, DType::kFloat32), -1, 1), {first.dim(0), 1});
  state.hidden = Mul(state.hidden, keep);
  if (state.cell.defined()) state.cell = Mul(state.cell, keep);
}

}  // namespace

Tensor Recurrent::Step(const Tensor& x, const Tensor& first, RecurrentState& state) const {
  WEFT_CHECK_EQ(x.shape().rank(), 2) << "a recurrent step takes [rows, inputs]";
  WEFT_CHECK_EQ(first.shape(), Shape({x.dim(0)})) << "one first flag a row";
  Forget(first, state);
  Advance(InputGates(x), state);
  return state.hidden;
}

Tensor Recurrent::Sequence(const Tensor& x, const Tensor& first, RecurrentState& state) const {
  WEFT_CHECK_EQ(x.shape().rank(), 3) << "a recurrent sequence takes [steps, rows, inputs]";
  const int64_t steps = x.dim(0), rows = x.dim(1);
  WEFT_CHECK_EQ(first.shape(), Shape({steps, rows})) << "one first flag a step and row";
  WEFT_CHECK_GT(steps, 0) << "a recurrent sequence needs a step";
  const Tensor gates = InputGates(Reshape(x, {steps * rows, x.dim(2)}));  // [T * B, G]
  std::vector<Tensor> outputs;
  outputs.reserve(static_cast<size_t>(steps));
  for (int64_t t = 0; t < steps; ++t) {
    Forget(first.Row(t), state);
    Advance(SliceRows(gates, t * rows, (t + 1) * rows), state);
    outputs.push_back(state.hidden);
  }
  return StackRows(outputs);  // [T, B, H]
}

Lstm::Lstm(int64_t in, int64_t hidden, const Initialisation& initialisation, Rng& rng)
    : Recurrent(hidden),
      input_weight_(MakeWeight(in, 4 * hidden, hidden, initialisation, rng)),
      hidden_weight_(MakeWeight(hidden, 4 * hidden, hidden, initialisation, rng)),
      bias_(MakeBias(4 * hidden, hidden, initialisation, rng)) {}

RecurrentState Lstm::InitialState(int64_t rows) const {
  return {.hidden = Tensor::Zeros({rows, out()}), .cell = Tensor::Zeros({rows, out()})};
}

Tensor Lstm::InputGates(const Tensor& x) const {
  return Dense(x, input_weight_, bias_);
}

void Lstm::Advance(const Tensor& input_gates, RecurrentState& state) const {
  const Tensor gates = Add(input_gates, Dense(state.hidden, hidden_weight_, Tensor()));
  std::tie(state.hidden, state.cell) = LstmCell(gates, state.cell);
}

void Lstm::Collect(std::string_view prefix, std::vector<NamedParameter>& out) {
  AddParameter(prefix, "input.weight", input_weight_, out);
  AddParameter(prefix, "input.bias", bias_, out);
  AddParameter(prefix, "hidden.weight", hidden_weight_, out);
}

Gru::Gru(int64_t in, int64_t hidden, const Initialisation& initialisation, Rng& rng)
    : Recurrent(hidden),
      input_weight_(MakeWeight(in, 3 * hidden, hidden, initialisation, rng)),
      input_bias_(MakeBias(3 * hidden, hidden, initialisation, rng)),
      hidden_weight_(MakeWeight(hidden, 3 * hidden, hidden, initialisation, rng)),
      hidden_bias_(MakeBias(3 * hidden, hidden, initialisation, rng)) {}

RecurrentState Gru::InitialState(int64_t rows) const {
  return {.hidden = Tensor::Zeros({rows, out()}), .cell = Tensor()};
}

Tensor Gru::InputGates(const Tensor& x) const {
  return Dense(x, input_weight_, input_bias_);
}

void Gru::Advance(const Tensor& input_gates, RecurrentState& state) const {
  state.hidden =
      GruCell(input_gates, Dense(state.hidden, hidden_weight_, hidden_bias_), state.hidden);
}

void Gru::Collect(std::string_view prefix, std::vector<NamedParameter>& out) {
  AddParameter(prefix, "input.weight", input_weight_, out);
  AddParameter(prefix, "input.bias", input_bias_, out);
  AddParameter(prefix, "hidden.weight", hidden_weight_, out);
  AddParameter(prefix, "hidden.bias", hidden_bias_, out);
}

}  // namespace weft
