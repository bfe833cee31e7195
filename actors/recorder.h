// What an actor keeps of its steps until it hands them on: whole rollouts for on-policy learners,
// n-step transitions for replay.
#pragma once

#include <cstdint>
#include <memory>

#include "tensor/tensor_map.h"

namespace weft {

class Recorder {
 public:
  virtual ~Recorder() = default;
  // A time step of N rows and what the agent chose on it.
  virtual void Record(const TensorMap& step, const TensorMap& chosen) = 0;
  // The step after the last recorded one, on which the agent has not acted yet: returns what was
  // recorded and starts anew. The step will be recorded again, as the first of the next piece.
  virtual TensorMap Flush(const TensorMap& step) = 0;

  virtual TensorMap Save() const = 0;
  virtual void Load(const TensorMap& state) = 0;
};

}  // namespace weft
