#include "environments/rollout_leaves.h"

#include <algorithm>

#include "environments/environment.h"

namespace weft {

Tensor FirstSteps(const Tensor& type) {
  Tensor first = Tensor::Empty(type.shape(), DType::kUInt8);
  std::ranges::transform(type.data<uint8_t>(), first.data<uint8_t>().begin(), [](uint8_t step) {
    return static_cast<uint8_t>(step == static_cast<uint8_t>(StepType::kFirst));
  });
  return first;
}

void AddState(const std::string& name, const RecurrentState& state, TensorMap& leaves) {
  if (state.hidden.defined()) leaves.Set(name + ".hidden", state.hidden);
  if (state.cell.defined()) leaves.Set(name + ".cell", state.cell);
}

RecurrentState TakeState(const std::string& name, const TensorMap& leaves) {
  const Tensor* hidden = leaves.Find(name + ".hidden");
  const Tensor* cell = leaves.Find(name + ".cell");
  return {hidden ? *hidden : Tensor(), cell ? *cell : Tensor()};
}

void AddWanted(int wanted, TensorMap& snapshot) {
  if (wanted != kWantsEvaluation)
    snapshot.Set("wanted", Tensor::Scalar(static_cast<double>(wanted), DType::kInt64));
}

int TakeWanted(TensorMap& snapshot) {
  const Tensor* leaf = snapshot.Find("wanted");
  if (leaf == nullptr) return kWantsEvaluation;
  const auto wanted = static_cast<int>(leaf->Item());
  snapshot.Erase("wanted");
  return wanted;
}

}  // namespace weft
