#include "environments/environment_row.h"

#include <utility>

#include "base/check.h"

namespace weft {
namespace {

template <class T>
void Append(const Tensor& tensor, std::vector<double>& values) {
  for (const T value : tensor.data<T>()) values.push_back(static_cast<double>(value));
}

}  // namespace

void AppendNumbers(const Tensor& leaf, std::vector<double>& values) {
  switch (leaf.dtype()) {
    case DType::kFloat32:
      return Append<float>(leaf, values);
    case DType::kFloat64:
      return Append<double>(leaf, values);
    case DType::kUInt8:
      return Append<uint8_t>(leaf, values);
    case DType::kInt64:
      return Append<int64_t>(leaf, values);
    default:
      throw Error(ErrorCode::kInvalidArgument, std::string("a leaf of dtype ") +
                                                   Name(leaf.dtype()) +
                                                   "; there are f32, f64, u8 and i64");
  }
}

EnvironmentRow::EnvironmentRow(std::unique_ptr<Environment> environment)
    : environment_(std::move(environment)) {
  for (const Leaf& leaf : spec().observation) {
    buffers_.push_back(Tensor::Zeros(leaf.shape, leaf.dtype));
    leaves_.push_back(buffers_.back().raw());
  }
}

void EnvironmentRow::SetState(std::span<const double> state) {
  environment_->SetState(state);
  environment_->Observe(ObservationRow(leaves_.data()));
  row().First();
}

std::vector<double> EnvironmentRow::Observation() const {
  std::vector<double> values;
  for (const Tensor& buffer : buffers_) AppendNumbers(buffer, values);
  return values;
}

std::vector<double> EnvironmentRow::State() const {
  std::vector<double> state;
  environment_->GetState(state);
  return state;
}

std::vector<double> EnvironmentRow::Info() const {
  std::vector<double> values(spec().info.size());
  environment_->Info(values);
  return values;
}

}  // namespace weft
