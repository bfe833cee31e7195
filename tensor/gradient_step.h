// One step of a backward pass: a kernel with its shape and the slots it reads and writes. The
// gradient rules emit steps; a plan is a list of them, the interpreter runs each as it comes.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "tensor/context.h"
#include "tensor/kernels.h"
#include "tensor/tape_record.h"

namespace weft {

enum class StepKind : uint8_t {
  // Element-wise over dims[0] elements.
  kZero,        // out0 = 0
  kCopy,        // out0 = in0
  kAdd,         // out0 += in0
  kScale,       // out0 = in0 * first number of the node
  kActivation,  // in: h d_h; out0 = d_z; detail: Activation
  kUnary,       // in: x y d_y; out0 = d_x; detail: Unary
  kClamp,       // in: x d_y; out0 = d_x
  kMask,        // in: mask (u8) d_y; out0 = (mask != 0) == detail ? d_y : 0
  kBinary,      // operands of equal size; in: a b d_y; out: d_a d_b (each or none); detail: Binary
  // The rest.
  kBroadcast,  // kBinary with a smaller b; dims: rows columns
  kFill,       // out0 = in0[0] / dims[1], dims[0] elements
  kRepeat,     // out0 [rows, columns] = in0 [rows]
  kColumns,  // out0 [dims0 rows, dims1 width] at stride dims2, offset dims3 = in0 at stride dims4,
             // offset dims5
  kScatter,  // in: index (i64) d_y; out0 [rows, columns] at the index
  kDenseInput,   // in: d_z w h (or none); out0 = d_x; dims: rows in out; detail: Activation
  kDenseWeight,  // in: x d_z; out: d_w d_b (each or none); dims: rows in out
  kSoftmax,      // in: y d_y; out0 = d_x; dims: rows columns
  kLogSoftmax,
  kLayerNorm,  // in: x gamma mean rstd d_y; out: d_x d_gamma d_beta (each or none)
  kLstmCell,   // in: activated c d_c d_h; out: d_gates d_c
  kGruCell,    // in: activated h d_h; out: d_x_gates d_h_gates d_h
  kCol2Im,     // in0 = d_patches; out0 = d_x
  kSwap,       // in0 [batch, b, a], out0 [batch, a, b]
};
constexpr bool IsElementwise(StepKind kind) {
  return kind <= StepKind::kBinary;
}

// Which memory an operand is: a gradient slot when >= 0, else a saved tensor of the recording.
constexpr int32_t kNoOperand = INT32_MIN;
constexpr int32_t SavedOperand(int32_t index) {
  return -1 - index;
}
constexpr bool IsSaved(int32_t operand) {
  return operand < 0 && operand != kNoOperand;
}

struct GradientStep {
  StepKind kind;
  uint8_t detail = 0;  // Activation, Unary, Binary or the truth of a mask
  Broadcasting broadcast = Broadcasting::kNone;
  std::array<bool, 3> accumulate{};  // add to the output in place of writing it
  int32_t node = 0;                  // whose numbers and kernel shape are read
  std::array<int32_t, 5> in = {kNoOperand, kNoOperand, kNoOperand, kNoOperand, kNoOperand};
  std::array<int32_t, 3> out = {kNoOperand, kNoOperand, kNoOperand};
  std::array<int64_t, 6> dims{};
};

// The memory of a gradient slot: all its elements, or, when tile >= 0, those of the current tile
// only.
struct SlotMemory {
  float* data = nullptr;
  int32_t tile = -1;
};

// What an element-wise step does of itself: elements [begin, end), with the memory of slots that
// live in the tile only.
struct Tile {
  int64_t begin, end;
  std::span<float* const> buffers = {};
};

// Runs the step; slots are the gradient slots.
void RunStep(const Context& context, const GradientStep& step, const TapeRecord& record,
             std::span<const SlotMemory> slots, const Tile& tile);
inline void RunStep(const Context& context, const GradientStep& step, const TapeRecord& record,
                    std::span<const SlotMemory> slots) {
  RunStep(context, step, record, slots, {0, step.dims[0]});
}

}  // namespace weft
