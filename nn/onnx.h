// Builds ONNX models (onnx.proto3, operator set 17) without the onnx library, so that a trained
// network runs in other programs. Values are names; the order of nodes is the order of the calls,
// which is a valid execution order.
//
//   OnnxGraph graph("policy");
//   const std::string x = graph.Input("observation", DType::kFloat32, {OnnxGraph::kBatch, 17});
//   const std::string y = graph.Node("Tanh", {graph.Node("MatMul", {x, graph.Constant("w", w)})});
//   graph.Output("action", y, DType::kFloat32, {OnnxGraph::kBatch, 64});
//   WriteFileAtomic(path, graph.ToBytes());
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/protobuf.h"
#include "tensor/tensor.h"

namespace weft {

class OnnxGraph {
 public:
  static constexpr int64_t kBatch = -1;  // a dimension that is free, "batch" in the file

  using AttributeValue = std::variant<int64_t, float, std::string, std::vector<int64_t>>;
  struct Attribute {
    std::string name;
    AttributeValue value;
  };

  explicit OnnxGraph(std::string name) : name_(std::move(name)) {}

  // Each name may be used once; using a name that no call made throws Error(kInvalidArgument).
  std::string Input(const std::string& name, DType dtype, const std::vector<int64_t>& shape);
  // An initialiser: a copy of the elements, row-major.
  std::string Constant(const std::string& name, const Tensor& value);
  // A scalar f32 initialiser with a name of its own.
  std::string Scalar(float value);
  // Returns the name of the node's only output. An input may be "" where the operator allows it to
  // be absent.
  std::string Node(std::string_view op, const std::vector<std::string>& inputs,
                   const std::vector<Attribute>& attributes = {});
  // As Node with several outputs.
  std::vector<std::string> Nodes(std::string_view op, const std::vector<std::string>& inputs,
                                 size_t outputs, const std::vector<Attribute>& attributes = {});
  // Makes value an output of the model under this name.
  void Output(const std::string& name, const std::string& value, DType dtype,
              const std::vector<int64_t>& shape);
  // A pair of the model's metadata_props.
  void Metadata(const std::string& key, const std::string& value);

  // The serialised ModelProto.
  std::string ToBytes() const;

 private:
  void Declare(const std::string& name);
  void Require(const std::string& name) const;
  std::string FreshName(std::string_view op);

  std::string name_;
  ProtobufWriter nodes_, initialisers_, inputs_, outputs_;  // fields of GraphProto
  ProtobufWriter metadata_;                                 // fields of ModelProto
  std::set<std::string> names_;
  int64_t fresh_ = 0;
};

}  // namespace weft
