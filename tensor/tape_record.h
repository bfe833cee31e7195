// What a tape writes down while it records: one node per op, its structure apart from its numbers.
// The structure (op, attributes that choose code, shapes, which values go in) decides the backward
// pass and is compared byte by byte before a compiled one is used again; numbers (tensors, scale
// factors) are read from the node of the day.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "tensor/kernels.h"
#include "tensor/tensor.h"

namespace weft {

enum class Op : uint8_t {
  kParameter,  // dims: stored elements
  kDense,      // kind: Activation; inputs x w b; dims: rows in out; saved y x w
  kUnary,      // kind: Unary; input x; dims: count; saved y x
  kBinary,   // kind: Binary; broadcast; inputs a b; dims: rows columns; saved y, and a b unless sum
             // or difference
  kAffine,   // kind: 1 when the scale is 1; input x; dims: count; numbers: scale shift; saved y
  kClamp,    // input x; dims: count; numbers: low high; saved y x
  kSelect,   // inputs a b; dims: count; saved y mask
  kSum,      // input x; dims: count; saved y
  kMean,     // as kSum
  kSumLast,  // input x; dims: rows columns; saved y
  kSoftmax,  // as kSumLast
  kLogSoftmax,  // as kSumLast
  kGatherLast,  // input x; dims: rows columns; saved y index
  kConcat,      // inputs, behind them their widths; dims: rows columns; saved y
  kSlice,       // input x; dims: rows columns begin end (columns); saved y
  kView,        // reshape, cast: the gradient passes as it is; input x; dims: count; saved y
  kLayerNorm,   // inputs x gamma beta; dims: rows columns; saved y x gamma mean rstd
  kLstmCell,    // inputs gates c; dims: rows hidden; outputs h c; saved h c activated (old c)
  kGruCell,     // inputs x_gates h_gates h; dims: rows hidden; saved y activated h
  kIm2Col,      // input x; dims: batch channels height width kernel stride pad; saved y
  kSwap,        // input x; dims: batch a b; saved y
};

struct Node {
  Op op = Op::kParameter;
  uint8_t kind = 0;
  Broadcasting broadcast = Broadcasting::kNone;
  uint8_t outputs = 0;
  int32_t inputs = 0;
  int32_t first_input = 0;  // in TapeRecord::inputs
  int32_t first_saved = 0;  // in TapeRecord::saved; the outputs come first
  std::array<int64_t, 7> dims{};
};
static_assert(sizeof(Node) == 72 && std::has_unique_object_representations_v<Node>);

// As errors and the search for NaN call it: "Dense", "Log", "Multiply".
const char* Name(const Node& node);

// The number of a value on the tape: node * 2 + which output.
constexpr int32_t kNoValue = -1;
constexpr int32_t NodeOf(int32_t value) {
  return value / 2;
}

// A number never given before in this process; 0 is given to nobody.
uint64_t NewTapeNumber();

class TapeRecord {
 public:
  TapeRecord() : tape_(NewTapeNumber()), recording_(NewTapeNumber()) {}

  // Parameters come before the first recording. Marks the handle.
  void AddParameter(Tensor& parameter);
  // Forgets all but the parameters; handles of earlier recordings are constants from here on.
  void Clear();

  bool Tracks(const Tensor& tensor) const {
    return tensor.tape() == recording_ || tensor.tape() == tape_;
  }
  int32_t ValueOf(const Tensor& tensor) const { return Tracks(tensor) ? tensor.node() : kNoValue; }
  // The parameter that the handle stands for, -1 when none.
  int32_t ParameterOf(const Tensor& tensor) const {
    return tensor.tape() == tape_ ? NodeOf(tensor.node()) : -1;
  }

  // Appends a node: Begin, then its inputs (undefined or untracked ones are constants), integers
  // that belong to its structure, outputs (marked), and what else its gradient reads.
  void Begin(const Node& node, std::array<float, 2> numbers) {
    nodes_.push_back(node);
    nodes_.back().first_input = static_cast<int32_t>(inputs_.size());
    nodes_.back().first_saved = static_cast<int32_t>(saved_.size());
    numbers_.push_back(numbers);
    Mix(static_cast<uint64_t>(node.op) | uint64_t{node.kind} << 8 |
        static_cast<uint64_t>(node.broadcast) << 16);
    Mix(static_cast<uint64_t>(node.dims[0]) +
        static_cast<uint64_t>(node.dims[1]) * 0xff51afd7ed558ccdULL +
        static_cast<uint64_t>(node.dims[2]) * 0xc4ceb9fe1a85ec53ULL +
        static_cast<uint64_t>(node.dims[3]) * 0x9ddfea08eb382d69ULL);
  }
  void AddInput(const Tensor& input) {
    AddExtra(ValueOf(input));
    ++nodes_.back().inputs;
  }
  void AddExtra(int32_t word) {
    inputs_.push_back(word);
    Mix(static_cast<uint64_t>(word));
  }
  void AddOutput(Tensor& output) {
    output.SetNode(recording_, (size() - 1) * 2 + nodes_.back().outputs++);
    saved_.push_back(output);
  }
  void AddSaved(const Tensor& tensor) { saved_.push_back(tensor); }

  int32_t size() const { return static_cast<int32_t>(nodes_.size()); }
  int32_t parameters() const { return parameters_; }
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const int32_t> inputs() const { return inputs_; }
  std::span<const int32_t> InputsOf(const Node& node) const {
    return std::span(inputs_).subspan(static_cast<size_t>(node.first_input),
                                      static_cast<size_t>(node.inputs));
  }
  int32_t saved_count() const { return static_cast<int32_t>(saved_.size()); }
  const Tensor& saved(int32_t index) const { return saved_[static_cast<size_t>(index)]; }
  const std::array<float, 2>& numbers(int32_t node) const {
    return numbers_[static_cast<size_t>(node)];
  }
  const Tensor& ValueTensor(int32_t value) const {
    return saved(nodes_[static_cast<size_t>(NodeOf(value))].first_saved + value % 2);
  }
  // Over the structure of all nodes so far.
  uint64_t hash() const { return hash_; }

  // The record that ops on this thread append to, null when none.
  static TapeRecord* Current() { return current_; }
  static TapeRecord* Exchange(TapeRecord* record) {
    TapeRecord* previous = current_;
    current_ = record;
    return previous;
  }

 private:
  void Mix(uint64_t word) { hash_ = (hash_ ^ word) * 0x9e3779b97f4a7c15ULL + (hash_ >> 29); }

  static thread_local constinit TapeRecord* current_ [[gnu::tls_model("initial-exec")]];

  uint64_t tape_;
  uint64_t recording_;
  int32_t parameters_ = 0;
  uint64_t hash_ = 0;
  std::vector<Node> nodes_;
  std::vector<std::array<float, 2>> numbers_;
  std::vector<int32_t> inputs_;
  std::vector<Tensor> saved_;
};

}  // namespace weft
