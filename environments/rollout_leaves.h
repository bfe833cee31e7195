// Small things that both sides of a rollout agree on: which steps begin an episode, how recurrent
// states travel as leaves, and what a snapshot is for.
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

// What a learner wants of a snapshot: bits that travel with it as leaf `wanted`. One without that
// leaf is to be evaluated.
enum Wanted : int { kWantsEvaluation = 1, kWantsVideo = 2 };
void AddWanted(int wanted, TensorMap& snapshot);
int TakeWanted(TensorMap& snapshot);  // and the leaf is gone

}  // namespace weft
