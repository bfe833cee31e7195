#include "environments/critic_input.h"

#include <cstring>
#include <vector>

#include "base/check.h"
#include "tensor/ops.h"

namespace weft {

CriticInput::CriticInput(const EnvironmentSpec& spec, const Shape& observation, bool centralised)
    : centralised_(centralised),
      has_leaf_(spec.Has("state")),
      agents_(spec.agent_count()),
      shape_(observation) {
  if (!centralised) return;
  if (!has_leaf_ && agents_ == 1) {
    throw ConfigProblem("critic", spec.id + " tells no state and has one agent only: its critic " +
                                      "sees the observation");
  }
  if (observation.rank() > 1) {
    throw ConfigProblem("critic", spec.id + " observes pictures, which have no state beside them");
  }
  const int64_t size = observation.elements();
  shape_ = {size + (has_leaf_ ? spec.leaf("state").shape.elements() : agents_ * size)};
}

Tensor CriticInput::operator()(const Tensor& x, const TensorMap& leaves, int leading) const {
  if (!centralised_) return x;
  const auto lead = x.shape().dims().first(static_cast<size_t>(leading));
  std::vector<int64_t> dims(lead.begin(), lead.end());
  int64_t rows = 1;
  for (const int64_t dim : dims) rows *= dim;
  const Tensor own = x.Reshape({rows, x.elements() / rows});
  const Tensor state =
      has_leaf_ ? leaves.At("state").Reshape({rows, leaves.At("state").elements() / rows})
                : AllAgents(own);
  const Tensor parts[] = {own, state};
  dims.push_back(shape_.elements());
  return ConcatLast(parts).Reshape(Shape(dims));
}

Tensor CriticInput::AllAgents(const Tensor& rows) const {
  const int64_t count = rows.dim(0), size = rows.dim(1);
  WEFT_CHECK_EQ(count % agents_, 0) << "rows of " << agents_ << " agents each";
  Tensor all = Tensor::Empty({count, agents_ * size});
  const size_t bytes = rows.bytes() / static_cast<size_t>(count / agents_);  // of one environment
  for (int64_t row = 0; row < count; ++row) {
    std::memcpy(all.raw() + static_cast<size_t>(row) * bytes,
                rows.raw() + static_cast<size_t>(row / agents_) * bytes, bytes);
  }
  return all;
}

}  // namespace weft
