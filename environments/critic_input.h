// What a value network reads: the row's observation, or beside it what it is only told while
// training, the state of its environment: the leaf "state" where there is one, else the
// observations of all agents (a centralised critic; Yu et al. 2022, "The surprising effectiveness
// of PPO in cooperative multi-agent games").
#pragma once

#include "environments/observation_input.h"

namespace weft {

class CriticInput {
 public:
  // centralised: with the state. Throws ConfigProblem("critic") where there is none.
  CriticInput(const EnvironmentSpec& spec, const Shape& observation, bool centralised);

  bool centralised() const { return centralised_; }
  const Shape& shape() const { return shape_; }  // of one row

  // [.., N, shape] from x [.., N, observation], what ObservationInput gives, and the leaves it was
  // given; with `leading` leading dimensions, of which the last counts rows. x itself when not
  // centralised.
  Tensor operator()(const Tensor& x, const TensorMap& leaves, int leading) const;

 private:
  Tensor AllAgents(const Tensor& rows) const;  // [R, O] -> [R, G * O]

  const bool centralised_;
  bool has_leaf_ = false;
  int64_t agents_;
  Shape shape_;
};

}  // namespace weft
