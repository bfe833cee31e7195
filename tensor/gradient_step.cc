#include "tensor/gradient_step.h"

#include <algorithm>

namespace weft {
namespace {

// Resolves the operands of one step; a missing operand is null.
class Operands {
 public:
  Operands(const GradientStep& step, const TapeRecord& record, std::span<const SlotMemory> slots,
           const Tile& tile)
      : step_(step), record_(record), slots_(slots), tile_(tile) {}

  const float* In(size_t index) const {
    const int32_t operand = step_.in[index];
    return operand >= 0 ? Slot(operand) : InAs<float>(index);
  }
  // Of a saved tensor.
  template <class T>
  const T* InAs(size_t index) const {
    const int32_t operand = step_.in[index];
    return operand == kNoOperand ? nullptr
                                 : reinterpret_cast<const T*>(Saved(index).raw()) + tile_.begin;
  }
  const Tensor& Saved(size_t index) const { return record_.saved(-1 - step_.in[index]); }
  float* Out(size_t index) const {
    const int32_t operand = step_.out[index];
    return operand == kNoOperand ? nullptr : Slot(operand);
  }
  bool Accumulates(size_t index) const { return step_.accumulate[index]; }

 private:
  float* Slot(int32_t operand) const {
    const SlotMemory& slot = slots_[static_cast<size_t>(operand)];
    return slot.tile < 0 ? slot.data + tile_.begin : tile_.buffers[static_cast<size_t>(slot.tile)];
  }

  const GradientStep& step_;
  const TapeRecord& record_;
  std::span<const SlotMemory> slots_;
  const Tile& tile_;
};

void AddInto(const Context& context, Broadcasting broadcast, int64_t rows, int64_t columns,
             const float* x, float* y) {
  kernels::BinaryForward(context, Binary::kAdd, broadcast, rows, columns, y, x, y);
}

void RunColumns(const GradientStep& step, const Operands& at) {
  const auto [rows, width, out_stride, out_offset, in_stride, in_offset] = step.dims;
  const float* from = at.In(0) + in_offset;
  float* to = at.Out(0) + out_offset;
  for (int64_t row = 0; row < rows; ++row, from += in_stride, to += out_stride) {
    if (at.Accumulates(0)) {
      for (int64_t i = 0; i < width; ++i) to[i] += from[i];
    } else {
      std::copy_n(from, width, to);
    }
  }
}

void RunScatter(const GradientStep& step, const Operands& at) {
  const int64_t rows = step.dims[0], columns = step.dims[1];
  const auto* index = at.InAs<int64_t>(0);
  const float* from = at.In(1);
  float* to = at.Out(0);
  if (!at.Accumulates(0)) std::fill_n(to, rows * columns, 0.0f);
  for (int64_t row = 0; row < rows; ++row) to[row * columns + index[row]] += from[row];
}

void RunMask(const GradientStep& step, const Operands& at, int64_t count) {
  const auto* mask = at.InAs<uint8_t>(0);
  const float* from = at.In(1);
  float* to = at.Out(0);
  const bool wanted = step.detail != 0;
  for (int64_t i = 0; i < count; ++i) {
    const float passed = (mask[i] != 0) == wanted ? from[i] : 0.0f;
    to[i] = at.Accumulates(0) ? to[i] + passed : passed;
  }
}

void RunFill(const Context& context, const GradientStep& step, const Operands& at) {
  const float value = at.In(0)[0] / static_cast<float>(step.dims[1]);
  if (at.Accumulates(0)) {
    AddInto(context, Broadcasting::kScalar, 1, step.dims[0], &value, at.Out(0));
  } else {
    std::fill_n(at.Out(0), step.dims[0], value);
  }
}

void RunRepeat(const Context& context, const GradientStep& step, const Operands& at) {
  const int64_t rows = step.dims[0], columns = step.dims[1];
  if (at.Accumulates(0)) {
    AddInto(context, Broadcasting::kColumn, rows, columns, at.In(0), at.Out(0));
    return;
  }
  for (int64_t row = 0; row < rows; ++row)
    std::fill_n(at.Out(0) + row * columns, columns, at.In(0)[row]);
}

void RunDenseWeight(const Context& context, const GradientStep& step, const Operands& at) {
  const auto [rows, in, out, a, b, c] = step.dims;
  float* const d_w = at.Out(0);
  float* const d_b = at.Out(1);
  const bool together = d_b != nullptr && d_w != nullptr && at.Accumulates(0) == at.Accumulates(1);
  if (d_w != nullptr) {
    kernels::DenseWeightGradient(context, rows, in, out, at.In(0), at.In(1), at.Accumulates(0), d_w,
                                 together ? d_b : nullptr);
  }
  if (d_b != nullptr && !together)
    kernels::SumRows(context, rows, out, at.In(1), at.Accumulates(1), d_b);
}

}  // namespace

void RunStep(const Context& context, const GradientStep& step, const TapeRecord& record,
             std::span<const SlotMemory> slots, const Tile& tile) {
  const Operands at(step, record, slots, tile);
  const int64_t count = tile.end - tile.begin;
  const bool add = step.accumulate[0];
  const auto& dims = step.dims;
  switch (step.kind) {
    case StepKind::kZero:
      std::fill_n(at.Out(0), count, 0.0f);
      break;
    case StepKind::kCopy:
      std::copy_n(at.In(0), count, at.Out(0));
      break;
    case StepKind::kAdd:
      AddInto(context, Broadcasting::kNone, 1, count, at.In(0), at.Out(0));
      break;
    case StepKind::kScale:
      kernels::Affine(context, count, record.numbers(step.node)[0], 0, at.In(0), at.Out(0));
      break;
    case StepKind::kActivation:
      kernels::ActivationGradient(context, count, static_cast<Activation>(step.detail), at.In(0),
                                  at.In(1), at.Out(0));
      break;
    case StepKind::kUnary:
      kernels::UnaryGradient(context, static_cast<Unary>(step.detail), count, at.In(0), at.In(1),
                             at.In(2), add, at.Out(0));
      break;
    case StepKind::kClamp: {
      const auto [low, high] = record.numbers(step.node);
      kernels::ClampGradient(context, count, low, high, at.In(0), at.In(1), add, at.Out(0));
      break;
    }
    case StepKind::kMask:
      RunMask(step, at, count);
      break;
    case StepKind::kBinary:
      kernels::BinaryGradient(context, static_cast<Binary>(step.detail), Broadcasting::kNone, 1,
                              count, at.In(0), at.In(1), at.In(2), add, at.Out(0),
                              at.Accumulates(1), at.Out(1));
      break;
    case StepKind::kBroadcast:
      kernels::BinaryGradient(context, static_cast<Binary>(step.detail), step.broadcast, dims[0],
                              dims[1], at.In(0), at.In(1), at.In(2), add, at.Out(0),
                              at.Accumulates(1), at.Out(1));
      break;
    case StepKind::kFill:
      RunFill(context, step, at);
      break;
    case StepKind::kRepeat:
      RunRepeat(context, step, at);
      break;
    case StepKind::kColumns:
      RunColumns(step, at);
      break;
    case StepKind::kScatter:
      RunScatter(step, at);
      break;
    case StepKind::kDenseInput:
      kernels::DenseInputGradient(context, dims[0], dims[1], dims[2], at.In(0),
                                  at.Saved(1).TransposedPanels().data<float>().data(),
                                  static_cast<Activation>(step.detail), at.In(2), add, at.Out(0));
      break;
    case StepKind::kDenseWeight:
      RunDenseWeight(context, step, at);
      break;
    case StepKind::kSoftmax:
      kernels::SoftmaxGradient(context, dims[0], dims[1], at.In(0), at.In(1), add, at.Out(0));
      break;
    case StepKind::kLogSoftmax:
      kernels::LogSoftmaxGradient(context, dims[0], dims[1], at.In(0), at.In(1), add, at.Out(0));
      break;
    case StepKind::kLayerNorm:
      kernels::LayerNormGradient(context, dims[0], dims[1], at.In(0), at.In(1), at.In(2), at.In(3),
                                 at.In(4), add, at.Out(0), at.Out(1), at.Out(2));
      break;
    case StepKind::kLstmCell:
      kernels::LstmCellGradient(context, dims[0], dims[1], at.In(0), at.In(1), at.In(2), at.In(3),
                                at.Out(0), at.Out(1));
      break;
    case StepKind::kGruCell:
      kernels::GruCellGradient(context, dims[0], dims[1], at.In(0), at.In(1), at.In(2), at.Out(0),
                               at.Out(1), at.Out(2));
      break;
    case StepKind::kCol2Im: {
      const auto& [batch, channels, height, width, kernel, stride, pad] =
          record.nodes()[static_cast<size_t>(step.node)].dims;
      kernels::Col2Im(context, batch, channels, height, width, kernel, stride, pad, at.In(0), add,
                      at.Out(0));
      break;
    }
    case StepKind::kSwap:
      kernels::SwapLastTwo(context, dims[0], dims[1], dims[2], at.In(0), at.Out(0));
      break;
  }
}

}  // namespace weft
