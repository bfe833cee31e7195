// The gradient rule of every op, as steps on slots. A slot is one gradient: of a value, or a
// temporary. The first contribution to a slot writes, later ones add, in the order of the nodes
// from last to first; so the sum of several paths has one order whoever runs the steps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/gradient_step.h"
#include "tensor/tape_record.h"

namespace weft {

struct GradientSlot {
  enum class Kind : uint8_t { kOne, kParameter, kTemporary };
  Kind kind = Kind::kTemporary;
  int32_t parameter = -1;  // position among the parameters asked for
  int64_t elements = 0;
};

class GradientRules {
 public:
  // loss: a value with one element; parameters: numbers of the parameters asked for, without
  // duplicates. Slot 0 is the gradient of the loss, 1; slots 1.. are those of the parameters.
  GradientRules(const TapeRecord& record, int32_t loss, std::span<const int32_t> parameters);

  // The last node that can contribute; nodes are emitted from there down to the first that is no
  // parameter.
  int32_t last_node() const { return NodeOf(loss_); }
  // Appends the steps of one node: nothing when no gradient reaches it or it reaches no parameter
  // asked for.
  void EmitNode(int32_t node);
  // Appends what is left: zeros for parameters that the loss does not reach.
  void EmitUnreached();

  std::vector<GradientStep>& steps() { return steps_; }
  const std::vector<GradientSlot>& slots() const { return slots_; }

 private:
  struct Target {
    int32_t slot;
    bool accumulate;
  };
  // A slot that a kernel without accumulation writes; Finish adds it to `into` when that is another
  // one.
  struct Written {
    int32_t slot, into;
  };

  bool Wants(int32_t value) const {
    return value != kNoValue && needed_[static_cast<size_t>(NodeOf(value))] != 0;
  }
  int64_t ElementsOf(int32_t value) const { return record_.ValueTensor(value).stored_elements(); }
  int32_t Temporary(int64_t elements);
  Target Into(int32_t value);
  Written Write(int32_t value, int64_t elements);
  void Finish(const Written& written);
  void Emit(GradientStep step);
  void EmitInto(GradientStep step, int32_t value);
  void Pass(int32_t value, int32_t d_y);
  int32_t GradientOrZero(int32_t value);

  void EmitDense(const Node& node, int32_t d_y);
  void EmitBinary(const Node& node, int32_t d_y);
  void EmitConcat(const Node& node, int32_t d_y);
  void EmitSlice(const Node& node, int32_t d_y);
  void EmitLayerNorm(const Node& node, int32_t d_y);
  void EmitLstmCell(const Node& node, int32_t value);
  void EmitGruCell(const Node& node, int32_t d_y);

  const TapeRecord& record_;
  int32_t loss_;
  int32_t current_ = 0;           // the node being emitted
  std::vector<uint8_t> needed_;   // per node: a parameter asked for lies below it
  std::vector<int32_t> slot_of_;  // per value, -1 while nothing reached it
  std::vector<GradientSlot> slots_;
  std::vector<uint8_t> written_;  // per slot
  std::vector<GradientStep> steps_;
};

}  // namespace weft
