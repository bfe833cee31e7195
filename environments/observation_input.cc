#include "environments/observation_input.h"

#include "nn/onnx.h"
#include "tensor/ops.h"

namespace weft {
namespace {

// The leaves that networks read: all but the mask. One leaf keeps its shape, several must be flat
// numbers.
std::vector<Leaf> ReadableLeaves(const EnvironmentSpec& spec) {
  std::vector<Leaf> leaves;
  for (const Leaf& leaf : spec.observation) {
    if (leaf.name == "action_mask") continue;
    if (leaf.dtype == DType::kInt64) {
      throw ConfigProblem("environment.id",
                          spec.id + ": networks cannot read its integer observation " + leaf.name);
    }
    leaves.push_back(leaf);
  }
  if (leaves.empty()) throw ConfigProblem("environment.id", spec.id + " has no observation");
  return leaves;
}

Shape InputShape(const std::vector<Leaf>& leaves) {
  if (leaves.size() == 1) return leaves[0].shape;
  int64_t size = 0;
  for (const Leaf& leaf : leaves) size += leaf.shape.elements();
  return {size};
}

}  // namespace

ObservationInput::ObservationInput(const EnvironmentSpec& spec, const NormaliserConfig& normaliser)
    : leaves_(ReadableLeaves(spec)),
      normaliser_(normaliser),
      shape_(InputShape(leaves_)),
      statistics_(normaliser.enabled ? shape_.elements() : 1) {}

Tensor ObservationInput::Raw(const TensorMap& leaves, int leading,
                             const std::string& prefix) const {
  if (leaves_.size() == 1)
    return leaves.At(prefix.empty() ? leaves_[0].name : prefix + leaves_[0].name);
  std::vector<Tensor> parts;
  for (const Leaf& leaf : leaves_) {
    Tensor part = leaves.At(prefix + leaf.name);
    Shape flat(part.shape().dims().first(static_cast<size_t>(leading)));
    int64_t size = 1;
    for (int d = leading; d < part.shape().rank(); ++d) size *= part.dim(d);
    std::vector<int64_t> dims(flat.dims().begin(), flat.dims().end());
    dims.push_back(size);
    if (part.dtype() != DType::kFloat32) part = Cast(part, DType::kFloat32);
    parts.push_back(part.Reshape(Shape(dims)));
  }
  return ConcatLast(parts);
}

Tensor ObservationInput::operator()(const TensorMap& leaves, int leading,
                                    const std::string& prefix) const {
  const Tensor raw = Raw(leaves, leading, prefix);
  return normaliser_.enabled ? statistics_.Normalise(raw, normaliser_.clip, normaliser_.epsilon)
                             : raw;
}

Tensor ObservationInput::Mask(const TensorMap& leaves) const {
  const Tensor* mask = leaves.Find("action_mask");
  return mask ? *mask : Tensor();
}

std::string ObservationInput::Export(OnnxGraph& graph) const {
  std::vector<std::string> parts;
  for (const Leaf& leaf : leaves_) {
    const DType dtype = leaf.dtype == DType::kFloat64 ? DType::kFloat32 : leaf.dtype;
    std::vector<int64_t> shape = {OnnxGraph::kBatch};
    shape.insert(shape.end(), leaf.shape.dims().begin(), leaf.shape.dims().end());
    std::string part = graph.Input(leaf.name, dtype, shape);
    if (leaves_.size() > 1) {
      if (dtype != DType::kFloat32) part = graph.Node("Cast", {part}, {{"to", int64_t{1}}});
      part = graph.Node("Flatten", {part}, {{"axis", int64_t{1}}});
    }
    parts.push_back(part);
  }
  const std::string x =
      parts.size() == 1 ? parts[0] : graph.Node("Concat", parts, {{"axis", int64_t{1}}});
  return normaliser_.enabled ? statistics_.ExportNormalise(graph, "observation.", x,
                                                           normaliser_.clip, normaliser_.epsilon)
                             : x;
}

void ObservationInput::AddTo(TensorMap& snapshot) const {
  if (normaliser_.enabled) snapshot.Merge("observation", statistics_.Save());
}

void ObservationInput::TakeFrom(const TensorMap& snapshot) {
  if (normaliser_.enabled) statistics_.Load(snapshot.Extract("observation"));
}

}  // namespace weft
