#include "environments/observation_input.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "nn/onnx.h"
#include "tensor/ops.h"

namespace weft {
namespace {

constexpr double kMostColumns = 1 << 20;  // of a one-hot leaf: an input of 4 MiB a row
constexpr float kForbidden = 1e30f;       // taken off what an illegal action is chosen by

[[noreturn]] void Refuse(const EnvironmentSpec& spec, const Leaf& leaf, const std::string& why) {
  throw ConfigProblem(
      "environment.id",
      spec.id + ": networks cannot read its integer observation " + leaf.name + ", which " + why);
}

// Whether all bounds on this side are `bound`.
bool All(const std::vector<double>& bounds, double bound) {
  return !bounds.empty() && std::ranges::all_of(bounds, [=](double b) { return b == bound; });
}

// Whether a leaf of bytes is of something else than pixels, and of nothing but 0 and 1.
bool HoldsCodes(const Leaf& leaf) {
  return leaf.dtype == DType::kUInt8 && !leaf.high.empty() && !All(leaf.high, 255);
}
bool HoldsBits(const Leaf& leaf) {
  return All(leaf.low, 0) && All(leaf.high, 1);
}

}  // namespace

// All leaves but the mask and the state. One leaf of real numbers or pixels keeps its shape,
// everything else becomes flat.
std::vector<ObservationInput::Part> ObservationInput::ReadableParts(const EnvironmentSpec& spec) {
  std::vector<Part> parts;
  for (const Leaf& leaf : spec.observation) {
    if (leaf.name == "action_mask" || leaf.name == "state") continue;
    Part part{.leaf = leaf, .width = leaf.shape.elements()};
    part.whole = leaf.dtype != DType::kInt64 && !HoldsCodes(leaf);
    if (leaf.dtype == DType::kInt64 || (HoldsCodes(leaf) && !HoldsBits(leaf)))
      ReadIntegers(spec, part);
    parts.push_back(std::move(part));
  }
  if (parts.empty()) throw ConfigProblem("environment.id", spec.id + " has no observation");
  return parts;
}

void ObservationInput::ReadIntegers(const EnvironmentSpec& spec, Part& part) {
  const Leaf& leaf = part.leaf;
  double columns = 0;
  for (size_t i = 0; i < static_cast<size_t>(leaf.shape.elements()); ++i) {
    if (leaf.low.empty() || leaf.high.empty()) Refuse(spec, leaf, "has no bounds");
    const double low = leaf.low[i % leaf.low.size()], high = leaf.high[i % leaf.high.size()];
    columns += high - low + 1;
    if (!(low <= high) || !(columns <= kMostColumns) || !(std::abs(low) < 0x1p53))
      Refuse(spec, leaf, "has too many values for one number each");
    part.low.push_back(static_cast<int64_t>(low));
    part.count.push_back(static_cast<int64_t>(high - low) + 1);
  }
  part.width = static_cast<int64_t>(columns);
}

Shape ObservationInput::InputShape(const std::vector<Part>& parts) {
  if (parts.size() == 1 && parts[0].whole) return parts[0].leaf.shape;
  int64_t size = 0;
  for (const Part& part : parts) size += part.width;
  return {size};
}

template <class T>
Tensor ObservationInput::OneHot(const Part& part, const Tensor& values) {
  const size_t elements = part.count.size();
  const auto from = values.data<T>();
  Tensor x = Tensor::Zeros({static_cast<int64_t>(from.size() / elements), part.width});
  auto* to = x.data<float>().data();
  for (size_t i = 0; i < from.size(); ++i) {
    const size_t element = i % elements;
    // Unsigned, so that values below the bounds are large and nothing overflows.
    const uint64_t column =
        static_cast<uint64_t>(from[i]) - static_cast<uint64_t>(part.low[element]);
    WEFT_CHECK(column < static_cast<uint64_t>(part.count[element]))
        << "observation " << part.leaf.name << " is " << static_cast<int64_t>(from[i])
        << ", outside its bounds";
    to[column] = 1;
    to += part.count[element];
  }
  return x;
}

std::string ObservationInput::ExportOneHot(const Part& part, const std::string& values,
                                           OnnxGraph& graph) {
  // A column is 1 when its element of the observation equals its value.
  std::vector<int64_t> element_of, value_of;
  for (size_t element = 0; element < part.count.size(); ++element) {
    for (int64_t k = 0; k < part.count[element]; ++k) {
      element_of.push_back(static_cast<int64_t>(element));
      value_of.push_back(part.low[element] + k);
    }
  }
  const std::string& name = part.leaf.name;
  const auto constant = [&](const char* what, const std::vector<int64_t>& numbers) {
    return graph.Constant(name + what,
                          Tensor::From<int64_t>({static_cast<int64_t>(numbers.size())}, numbers));
  };
  const std::string rows = constant(".rows", {-1, static_cast<int64_t>(part.count.size())});
  const std::string spread = graph.Node(
      "Gather", {graph.Node("Reshape", {values, rows}), constant(".element", element_of)},
      {{"axis", int64_t{1}}});
  return graph.Node("Cast", {graph.Node("Equal", {spread, constant(".value", value_of)})},
                    {{"to", int64_t{1}}});
}

ObservationInput::ObservationInput(const EnvironmentSpec& spec, const NormaliserConfig& normaliser)
    : parts_(ReadableParts(spec)),
      mask_size_(spec.Has("action_mask") ? spec.leaf("action_mask").shape.elements() : 0),
      normaliser_(normaliser),
      shape_(InputShape(parts_)),
      statistics_(normaliser.enabled ? shape_.elements() : 1) {}

Tensor ObservationInput::Raw(const TensorMap& leaves, int leading,
                             const std::string& prefix) const {
  const auto leaf = [&](const Part& part) {
    return leaves.At(prefix.empty() ? part.leaf.name : prefix + part.leaf.name);
  };
  if (whole()) return leaf(parts_[0]);
  std::vector<Tensor> inputs;
  for (const Part& part : parts_) {
    Tensor input = leaf(part);
    const auto lead = input.shape().dims().first(static_cast<size_t>(leading));
    std::vector<int64_t> dims(lead.begin(), lead.end());
    dims.push_back(part.width);
    if (part.one_hot()) {
      input = part.leaf.dtype == DType::kInt64 ? OneHot<int64_t>(part, input)
                                               : OneHot<uint8_t>(part, input);
    } else if (input.dtype() != DType::kFloat32) {
      input = Cast(input, DType::kFloat32);
    }
    inputs.push_back(input.Reshape(Shape(dims)));
  }
  return inputs.size() == 1 ? inputs[0] : ConcatLast(inputs);
}

Tensor ObservationInput::operator()(const TensorMap& leaves, int leading,
                                    const std::string& prefix) const {
  const Tensor raw = Raw(leaves, leading, prefix);
  return normaliser_.enabled ? statistics_.Normalise(raw, normaliser_.clip, normaliser_.epsilon)
                             : raw;
}

Tensor ObservationInput::Mask(const TensorMap& leaves, const std::string& prefix) const {
  return mask_size_ > 0 ? leaves.At(prefix + "action_mask") : Tensor();
}

std::string ObservationInput::ExportMask(OnnxGraph& graph) const {
  if (mask_size_ == 0) return "";
  const std::string mask =
      graph.Input("action_mask", DType::kUInt8, {OnnxGraph::kBatch, mask_size_});
  const std::string allowed = graph.Node("Cast", {mask}, {{"to", int64_t{1}}});
  return graph.Node("Mul",
                    {graph.Node("Sub", {allowed, graph.Scalar(1)}), graph.Scalar(kForbidden)});
}

std::string ObservationInput::Export(OnnxGraph& graph) const {
  std::vector<std::string> parts;
  for (const Part& readable : parts_) {
    const Leaf& leaf = readable.leaf;
    const DType dtype = leaf.dtype == DType::kFloat64 ? DType::kFloat32 : leaf.dtype;
    std::vector<int64_t> shape = {OnnxGraph::kBatch};
    shape.insert(shape.end(), leaf.shape.dims().begin(), leaf.shape.dims().end());
    std::string part = graph.Input(leaf.name, dtype, shape);
    if (readable.one_hot()) {
      if (dtype != DType::kInt64) part = graph.Node("Cast", {part}, {{"to", int64_t{7}}});
      part = ExportOneHot(readable, part, graph);
    } else if (!whole()) {
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
