#include "nn/onnx.h"

#include "base/check.h"

namespace weft {
namespace {

// Field numbers of onnx.proto3.
namespace model {
constexpr int kIrVersion = 1, kProducerName = 2, kGraph = 7, kOpsetImport = 8, kMetadataProps = 14;
}
namespace graph {
constexpr int kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12;
}
namespace node {
constexpr int kInput = 1, kOutput = 2, kName = 3, kOpType = 4, kAttribute = 5;
}
namespace attribute {
constexpr int kName = 1, kFloat = 2, kInt = 3, kString = 4, kInts = 8, kType = 20;
constexpr int64_t kTypeFloat = 1, kTypeInt = 2, kTypeString = 3, kTypeInts = 7;
}  // namespace attribute
namespace tensor {
constexpr int kDims = 1, kDataType = 2, kName = 8, kRawData = 9;
}
constexpr int kIrVersion = 8, kOpset = 17;  // the pair of ONNX 1.12

int64_t ElementType(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 1;
    case DType::kUInt8:
      return 2;
    case DType::kInt32:
      return 6;
    case DType::kInt64:
      return 7;
    case DType::kFloat64:
      return 11;
    case DType::kBFloat16:
      return 16;
  }
  return 0;
}

// ValueInfoProto: name = 1, type = 2 of a TypeProto: tensor_type = 1 with elem_type = 1, shape = 2
// of dim = 1 with dim_value = 1 or dim_param = 2.
ProtobufWriter ValueInfo(const std::string& name, DType dtype, const std::vector<int64_t>& shape) {
  ProtobufWriter dims;
  for (const int64_t size : shape) {
    ProtobufWriter dim;
    if (size == OnnxGraph::kBatch) {
      dim.Bytes(2, "batch");
    } else {
      dim.Varint(1, size);
    }
    dims.Message(1, dim);
  }
  ProtobufWriter tensor_type;
  tensor_type.Varint(1, ElementType(dtype));
  tensor_type.Message(2, dims);
  ProtobufWriter type;
  type.Message(1, tensor_type);
  ProtobufWriter info;
  info.Bytes(1, name);
  info.Message(2, type);
  return info;
}

ProtobufWriter AttributeMessage(const OnnxGraph::Attribute& source) {
  ProtobufWriter message;
  message.Bytes(attribute::kName, source.name);
  if (const auto* i = std::get_if<int64_t>(&source.value)) {
    message.Varint(attribute::kInt, *i);
    message.Varint(attribute::kType, attribute::kTypeInt);
  } else if (const auto* f = std::get_if<float>(&source.value)) {
    message.Float(attribute::kFloat, *f);
    message.Varint(attribute::kType, attribute::kTypeFloat);
  } else if (const auto* s = std::get_if<std::string>(&source.value)) {
    message.Bytes(attribute::kString, *s);
    message.Varint(attribute::kType, attribute::kTypeString);
  } else {
    message.PackedVarints(attribute::kInts, std::get<std::vector<int64_t>>(source.value));
    message.Varint(attribute::kType, attribute::kTypeInts);
  }
  return message;
}

}  // namespace

void OnnxGraph::Declare(const std::string& name) {
  WEFT_CHECK(!name.empty() && names_.insert(name).second)
      << "the ONNX graph " << name_ << " has two values called \"" << name << "\"";
}

void OnnxGraph::Require(const std::string& name) const {
  WEFT_CHECK(names_.contains(name))
      << "the ONNX graph " << name_ << " has no value called \"" << name << "\"";
}

std::string OnnxGraph::FreshName(std::string_view op) {
  return std::string(op) + "_" + std::to_string(fresh_++);
}

std::string OnnxGraph::Input(const std::string& name, DType dtype,
                             const std::vector<int64_t>& shape) {
  Declare(name);
  inputs_.Message(graph::kInput, ValueInfo(name, dtype, shape));
  return name;
}

std::string OnnxGraph::Constant(const std::string& name, const Tensor& value) {
  Declare(name);
  const Tensor rows = value.ToLayout(Layout::kRowMajor);
  ProtobufWriter message;
  message.PackedVarints(tensor::kDims, rows.shape().dims());
  message.Varint(tensor::kDataType, ElementType(rows.dtype()));
  message.Bytes(tensor::kName, name);
  message.Bytes(tensor::kRawData, {reinterpret_cast<const char*>(rows.raw()), rows.bytes()});
  initialisers_.Message(graph::kInitializer, message);
  return name;
}

std::string OnnxGraph::Scalar(float value) {
  return Constant(FreshName("scalar"), Tensor::From<float>({}, {value}));
}

std::string OnnxGraph::Node(std::string_view op, const std::vector<std::string>& inputs,
                            const std::vector<Attribute>& attributes) {
  return Nodes(op, inputs, 1, attributes).front();
}

std::vector<std::string> OnnxGraph::Nodes(std::string_view op,
                                          const std::vector<std::string>& inputs, size_t outputs,
                                          const std::vector<Attribute>& attributes) {
  ProtobufWriter message;
  for (const std::string& input : inputs) {
    if (!input.empty()) Require(input);
    message.Bytes(node::kInput, input);
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < outputs; ++i) {
    names.push_back(FreshName(op));
    Declare(names.back());
    message.Bytes(node::kOutput, names.back());
  }
  message.Bytes(node::kName, names.front());
  message.Bytes(node::kOpType, op);
  for (const Attribute& source : attributes) {
    message.Message(node::kAttribute, AttributeMessage(source));
  }
  nodes_.Message(graph::kNode, message);
  return names;
}

void OnnxGraph::Output(const std::string& name, const std::string& value, DType dtype,
                       const std::vector<int64_t>& shape) {
  Require(value);
  Declare(name);
  ProtobufWriter message;
  message.Bytes(node::kInput, value);
  message.Bytes(node::kOutput, name);
  message.Bytes(node::kName, name);
  message.Bytes(node::kOpType, "Identity");
  nodes_.Message(graph::kNode, message);
  outputs_.Message(graph::kOutput, ValueInfo(name, dtype, shape));
}

void OnnxGraph::Metadata(const std::string& key, const std::string& value) {
  ProtobufWriter entry;  // StringStringEntryProto
  entry.Bytes(1, key);
  entry.Bytes(2, value);
  metadata_.Message(model::kMetadataProps, entry);
}

std::string OnnxGraph::ToBytes() const {
  ProtobufWriter name;
  name.Bytes(graph::kName, name_);
  ProtobufWriter opset;  // OperatorSetIdProto: domain = 1 ("" is ONNX itself), version = 2
  opset.Bytes(1, "");
  opset.Varint(2, kOpset);
  ProtobufWriter message;
  message.Varint(model::kIrVersion, kIrVersion);
  message.Bytes(model::kProducerName, "weft");
  message.Bytes(model::kGraph, name.bytes() + nodes_.bytes() + initialisers_.bytes() +
                                   inputs_.bytes() + outputs_.bytes());
  message.Message(model::kOpsetImport, opset);
  return message.bytes() + metadata_.bytes();
}

}  // namespace weft
