// Gradients of a loss written as a function of tensors in place.
#pragma once

#include <vector>

#include "tensor/tape.h"

namespace weft {

// d loss() / d each tensor. The handles stay marked by a tape that is gone, so they can be
// differentiated again.
template <class Loss>
std::vector<Tensor> Gradients(const std::vector<Tensor*>& places, const Loss& loss) {
  Tape tape(places);
  std::vector<Tensor> handles, copies;
  for (const Tensor* place : places) handles.push_back(*place);
  const Tape::Recording recording(tape);
  for (const Tensor& gradient : tape.Gradient(loss(), handles)) copies.push_back(gradient.Clone());
  return copies;
}

}  // namespace weft
