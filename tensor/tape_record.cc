#include "tensor/tape_record.h"

#include <atomic>
#include <iterator>

namespace weft {
namespace {

constinit std::atomic<uint64_t> next_tape_number{1};

constexpr const char* kUnaryNames[] = {
    "Neg",      "Exp", "Log",  "Sqrt",    "Square", "Abs",        "Tanh", "Relu", "Sigmoid",
    "Softplus", "Elu", "Gelu", "GeluErf", "Silu",   "Reciprocal", "Sin",  "Cos"};
static_assert(std::size(kUnaryNames) == static_cast<size_t>(Unary::kCos) + 1);
constexpr const char* kBinaryNames[] = {"Add", "Sub", "Mul", "Div", "Minimum", "Maximum"};
static_assert(std::size(kBinaryNames) == static_cast<size_t>(Binary::kMaximum) + 1);

}  // namespace

thread_local constinit TapeRecord* TapeRecord::current_ = nullptr;

uint64_t NewTapeNumber() {
  return next_tape_number.fetch_add(1, std::memory_order_relaxed);
}

const char* Name(const Node& node) {
  switch (node.op) {
    case Op::kParameter:
      return "parameter";
    case Op::kDense:
      return "Dense";
    case Op::kUnary:
      return kUnaryNames[node.kind];
    case Op::kBinary:
      return kBinaryNames[node.kind];
    case Op::kAffine:
      return "Affine";
    case Op::kClamp:
      return "Clamp";
    case Op::kSelect:
      return "Select";
    case Op::kSum:
      return "Sum";
    case Op::kMean:
      return "Mean";
    case Op::kSumLast:
      return "SumLast";
    case Op::kSoftmax:
      return "Softmax";
    case Op::kLogSoftmax:
      return "LogSoftmax";
    case Op::kGatherLast:
      return "GatherLast";
    case Op::kConcat:
      return "Concat";
    case Op::kSlice:
      return "Slice";
    case Op::kView:
      return "Reshape";
    case Op::kLayerNorm:
      return "LayerNorm";
    case Op::kLstmCell:
      return "LstmCell";
    case Op::kGruCell:
      return "GruCell";
    case Op::kIm2Col:
      return "Im2Col";
    case Op::kSwap:
      return "SwapLastTwo";
  }
  return "?";
}

void TapeRecord::AddParameter(Tensor& parameter) {
  WEFT_CHECK(parameter.defined() && parameter.dtype() == DType::kFloat32)
      << "a parameter has to be an f32 tensor";
  WEFT_CHECK_EQ(parameters_, size()) << "parameters come before the first recording";
  Node node;
  node.first_saved = static_cast<int32_t>(saved_.size());
  node.outputs = 1;
  node.dims[0] = parameter.stored_elements();
  parameter.SetNode(tape_, size() * 2);
  nodes_.push_back(node);
  numbers_.push_back({});
  saved_.push_back(parameter);
  ++parameters_;
}

void TapeRecord::Clear() {
  const auto kept = static_cast<size_t>(parameters_);
  nodes_.resize(kept);
  numbers_.resize(kept);
  saved_.resize(kept);
  inputs_.clear();
  hash_ = 0;
  recording_ = NewTapeNumber();
}

}  // namespace weft
