// A compiled backward pass: the steps of a recording's gradient rules, with copies removed,
// activation derivatives fused into the matrix product in front, element-wise runs made tile by
// tile, and all temporaries at fixed offsets of one arena. It does the same operations on every
// element in the same order as the interpreter, so both give equal bits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor/gradient_rules.h"
#include "tensor/gradient_step.h"
#include "tensor/tape_record.h"
#include "tensor/tensor.h"

namespace weft {

// Gradients of one set of parameters: one block that the tensors are parts of.
struct GradientSet {
  std::vector<int32_t> parameters;  // their numbers on the tape
  Tensor block;                     // f32, tensors at multiples of 16 elements, zero between them
  std::vector<Tensor> gradients;
};

class GradientPlan {
 public:
  // set must outlive the plan.
  GradientPlan(const TapeRecord& record, int32_t loss, const GradientSet& set);

  // True when it was made for this structure, loss and set.
  bool Matches(const TapeRecord& record, int32_t loss, const GradientSet& set) const;
  // The first difference from another structure: "node 3 Dense: [64, 17, 64] became [63, 17, 64]".
  std::string Difference(const TapeRecord& record) const;
  // Elements of f32 that Run needs.
  int64_t arena_elements() const { return arena_elements_; }
  void Run(const Context& context, const TapeRecord& record, float* arena);

  // Steps after optimisation, and runs of element-wise steps done by tiles: for tests.
  int64_t steps() const { return static_cast<int64_t>(steps_.size()); }
  int64_t tiled_runs() const;

  uint64_t last_used = 0;  // the tape's clock, for least recently used

 private:
  struct Unit {  // steps [begin, end); more than one are run tile by tile
    size_t begin, end;
  };

  // The units between which a temporary lives.
  struct Life {
    size_t slot;
    int64_t begin = -1, end = -1;
    int64_t elements = 0;
  };

  void Group();
  std::vector<Life> Lives() const;
  void PlaceInTiles(std::vector<Life>& lives);
  void PlaceInArena(std::vector<Life> lives);
  void RunTiles(const Context& context, const TapeRecord& record, const Unit& unit) const;

  uint64_t hash_;
  int32_t loss_;
  const GradientSet* set_;
  std::vector<Node> nodes_;
  std::vector<int32_t> inputs_;

  std::vector<GradientStep> steps_;
  std::vector<GradientSlot> slots_;
  std::vector<Unit> units_;
  std::vector<int64_t> offsets_;  // per slot, of temporaries in the arena
  int64_t arena_elements_ = 0;
  const float* arena_ = nullptr;    // that memory_ points into
  std::vector<SlotMemory> memory_;  // per slot
};

// The same gradients node by node, each in a tensor of its own.
void InterpretGradient(const Context& context, const TapeRecord& record, int32_t loss,
                       const GradientSet& set);

}  // namespace weft
