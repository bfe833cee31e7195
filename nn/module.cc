#include "nn/module.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/text.h"
#include "tensor/context.h"
#include "tensor/kernels.h"

namespace weft {
namespace {

std::string Describe(const Tensor& tensor) {
  return std::string(Name(tensor.dtype())) + " " + tensor.shape().ToString();
}

bool SameKind(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype();
}

// Throws kInvalidArgument naming every parameter that is missing, of another kind or too many.
void CheckFits(std::span<const NamedParameter> parameters, const TensorMap& state) {
  std::vector<std::string> faults;
  for (const NamedParameter& parameter : parameters) {
    const Tensor* source = state.Find(parameter.name.text());
    if (!source) {
      faults.push_back("missing " + std::string(parameter.name.text()));
    } else if (!SameKind(*source, *parameter.tensor)) {
      faults.push_back(std::string(parameter.name.text()) + " is " + Describe(*source) + ", not " +
                       Describe(*parameter.tensor));
    }
  }
  for (const auto& [name, tensor] : state) {
    const bool known =
        std::any_of(parameters.begin(), parameters.end(),
                    [&name = name](const auto& parameter) { return parameter.name == name; });
    if (!known) faults.push_back("unexpected " + std::string(name.text()));
  }
  if (!faults.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "parameters do not fit the network: " + Join(faults, "; "));
  }
}

}  // namespace

std::vector<NamedParameter> Module::Parameters(std::string_view prefix) {
  std::vector<NamedParameter> parameters;
  Collect(prefix, parameters);
  return parameters;
}

void AddParameter(std::string_view prefix, std::string_view name, Tensor& tensor,
                  std::vector<NamedParameter>& out) {
  out.push_back({TensorName(std::string(prefix) + std::string(name)), &tensor});
}

std::vector<Tensor*> Pointers(std::span<const NamedParameter> parameters) {
  std::vector<Tensor*> pointers;
  pointers.reserve(parameters.size());
  for (const NamedParameter& parameter : parameters) pointers.push_back(parameter.tensor);
  return pointers;
}

std::vector<Tensor> Handles(std::span<const NamedParameter> parameters) {
  std::vector<Tensor> handles;
  handles.reserve(parameters.size());
  for (const NamedParameter& parameter : parameters) handles.push_back(*parameter.tensor);
  return handles;
}

int64_t CountElements(std::span<const NamedParameter> parameters) {
  int64_t count = 0;
  for (const NamedParameter& parameter : parameters) count += parameter.tensor->elements();
  return count;
}

TensorMap CopyState(std::span<const NamedParameter> parameters) {
  TensorMap state;
  for (const NamedParameter& parameter : parameters) {
    state.Set(parameter.name, parameter.tensor->Clone());
  }
  return state;
}

TensorMap ShareState(std::span<const NamedParameter> parameters) {
  TensorMap state;
  for (const NamedParameter& parameter : parameters) state.Set(parameter.name, *parameter.tensor);
  return state;
}

void HaveAlone(Tensor& tensor) {
  if (!tensor.unique()) tensor = tensor.Clone();
}

void LoadState(std::span<const NamedParameter> parameters, const TensorMap& state) {
  CheckFits(parameters, state);
  CheckFinite(state, ErrorCode::kCorrupt);
  for (const NamedParameter& parameter : parameters) {
    Tensor& target = *parameter.tensor;
    target.CopyFrom(state.At(parameter.name.text()).ToLayout(target.layout()));
  }
}

void CheckFinite(const TensorMap& tensors, ErrorCode code) {
  for (const auto& [name, tensor] : tensors) {
    if (tensor.dtype() != DType::kFloat32) continue;
    const int64_t element = kernels::FirstNonFinite(CurrentContext(), tensor.stored_elements(),
                                                    tensor.data<float>().data());
    if (element >= 0) {
      throw Error(code, std::string(name.text()) + " " + tensor.shape().ToString() +
                            " holds a value that is not finite");
    }
  }
}

void CopyParameters(std::span<const NamedParameter> from, std::span<const NamedParameter> to) {
  WEFT_CHECK_EQ(from.size(), to.size()) << "parameters to copy";
  for (size_t i = 0; i < from.size(); ++i) {
    WEFT_CHECK_EQ(from[i].tensor->shape(), to[i].tensor->shape()) << to[i].name.text();
    to[i].tensor->CopyFrom(*from[i].tensor);
  }
}

void LerpParameters(float tau, std::span<const NamedParameter> from,
                    std::span<const NamedParameter> to) {
  WEFT_CHECK_EQ(from.size(), to.size()) << "parameters to average";
  const Context& context = CurrentContext();
  for (size_t i = 0; i < from.size(); ++i) {
    const Tensor& source = *from[i].tensor;
    Tensor& target = *to[i].tensor;
    WEFT_CHECK(source.shape() == target.shape() && source.layout() == target.layout())
        << to[i].name.text() << " is " << target.shape() << ", its source " << source.shape();
    kernels::Lerp(context, target.stored_elements(), tau, source.data<float>().data(),
                  target.data<float>().data());
    target.MarkWritten();
  }
}

void AdoptSnapshot(std::span<const NamedParameter> parameters, const TensorMap& snapshot) {
  bool same = parameters.size() == snapshot.size();
  for (size_t i = 0; same && i < parameters.size(); ++i) {
    const auto& [name, source] = snapshot.entry(i);
    same = name == parameters[i].name && SameKind(source, *parameters[i].tensor);
  }
  if (!same) CheckFits(parameters, snapshot);
  WEFT_CHECK(same) << "the snapshot's parameters stand in another order";
  for (size_t i = 0; i < parameters.size(); ++i) {
    Tensor& target = *parameters[i].tensor;
    WEFT_CHECK_LT(target.node(), 0) << parameters[i].name.text() << " is trained on a tape";
    target = snapshot.entry(i).second.ToLayout(target.layout());
  }
}

SnapshotPool::SnapshotPool(std::vector<NamedParameter> parameters)
    : parameters_(std::move(parameters)) {}

TensorMap SnapshotPool::Take() {
  for (TensorMap& snapshot : snapshots_) {
    const bool free = std::all_of(snapshot.begin(), snapshot.end(),
                                  [](const auto& entry) { return entry.second.unique(); });
    if (!free) continue;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      snapshot.entry(i).second.CopyFrom(*parameters_[i].tensor);
    }
    return snapshot;
  }
  snapshots_.push_back(CopyState(parameters_));
  return snapshots_.back();
}

}  // namespace weft
