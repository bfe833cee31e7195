// Small things that both sides of a rollout agree on: which steps begin an episode, and how
// recurrent states travel as leaves.
#pragma once

#include <string>

#include "nn/recurrent.h"
#include "tensor/tensor_map.h"

namespace weft {

// From StepTypes, u8 of any shape: 1 where a step begins an episode, else 0.
Tensor FirstSteps(const Tensor& type);

// A recurrent state as leaves NAME.hidden and NAME.cell; what is undefined is left out and comes
// back undefined.
void AddState(const std::string& name, const RecurrentState& state, TensorMap& leaves);
RecurrentState TakeState(const std::string& name, const TensorMap& leaves);

}  // namespace weft
