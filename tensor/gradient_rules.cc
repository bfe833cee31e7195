#include "tensor/gradient_rules.h"

#include <array>

namespace weft {

GradientRules::GradientRules(const TapeRecord& record, int32_t loss,
                             std::span<const int32_t> parameters)
    : record_(record), loss_(loss) {
  const auto count = static_cast<size_t>(NodeOf(loss)) + 1;
  needed_.resize(std::max(count, static_cast<size_t>(record.parameters())));
  slot_of_.assign(needed_.size() * 2, -1);
  slots_.push_back({.kind = GradientSlot::Kind::kOne, .elements = 1});
  written_.push_back(1);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int32_t value = parameters[i] * 2;
    needed_[static_cast<size_t>(parameters[i])] = 1;
    slot_of_[static_cast<size_t>(value)] = static_cast<int32_t>(slots_.size());
    slots_.push_back({.kind = GradientSlot::Kind::kParameter,
                      .parameter = static_cast<int32_t>(i),
                      .elements = ElementsOf(value)});
    written_.push_back(0);
  }
  for (size_t n = static_cast<size_t>(record.parameters()); n < count; ++n) {
    for (const int32_t value : record.InputsOf(record.nodes()[n])) {
      if (Wants(value)) needed_[n] = 1;
    }
  }
  if (last_node() >= record.parameters()) {
    slot_of_[static_cast<size_t>(loss)] = 0;
  } else if (Wants(loss)) {
    Pass(loss, 0);  // the loss is a parameter itself
  }
}

int32_t GradientRules::Temporary(int64_t elements) {
  slots_.push_back({.elements = elements});
  written_.push_back(0);
  return static_cast<int32_t>(slots_.size()) - 1;
}

GradientRules::Target GradientRules::Into(int32_t value) {
  int32_t& slot = slot_of_[static_cast<size_t>(value)];
  if (slot < 0) slot = Temporary(ElementsOf(value));
  const bool accumulate = written_[static_cast<size_t>(slot)] != 0;
  written_[static_cast<size_t>(slot)] = 1;
  return {slot, accumulate};
}

GradientRules::Written GradientRules::Write(int32_t value, int64_t elements) {
  if (!Wants(value)) return {Temporary(elements), kNoOperand};
  const Target target = Into(value);
  return target.accumulate ? Written{Temporary(elements), target.slot}
                           : Written{target.slot, kNoOperand};
}

void GradientRules::Finish(const Written& written) {
  if (written.into == kNoOperand) return;
  Emit({.kind = StepKind::kAdd,
        .accumulate = {true},
        .in = {written.slot, kNoOperand, kNoOperand, kNoOperand, kNoOperand},
        .out = {written.into, kNoOperand, kNoOperand},
        .dims = {slots_[static_cast<size_t>(written.slot)].elements}});
}

void GradientRules::Emit(GradientStep step) {
  step.node = current_;
  steps_.push_back(step);
}

void GradientRules::EmitInto(GradientStep step, int32_t value) {
  const Target target = Into(value);
  step.out[0] = target.slot;
  step.accumulate[0] = target.accumulate;
  Emit(step);
}

void GradientRules::Pass(int32_t value, int32_t d_y) {
  const Target target = Into(value);
  Emit({.kind = target.accumulate ? StepKind::kAdd : StepKind::kCopy,
        .accumulate = {target.accumulate},
        .in = {d_y, kNoOperand, kNoOperand, kNoOperand, kNoOperand},
        .out = {target.slot, kNoOperand, kNoOperand},
        .dims = {ElementsOf(value)}});
}

int32_t GradientRules::GradientOrZero(int32_t value) {
  const int32_t slot = slot_of_[static_cast<size_t>(value)];
  if (slot >= 0) return slot;
  const int32_t zero = Temporary(ElementsOf(value));
  Emit({.kind = StepKind::kZero,
        .out = {zero, kNoOperand, kNoOperand},
        .dims = {ElementsOf(value)}});
  return zero;
}

void GradientRules::EmitUnreached() {
  for (size_t slot = 1; slot < slots_.size() && slots_[slot].kind == GradientSlot::Kind::kParameter;
       ++slot) {
    if (written_[slot] != 0) continue;
    Emit({.kind = StepKind::kZero,
          .out = {static_cast<int32_t>(slot), kNoOperand, kNoOperand},
          .dims = {slots_[slot].elements}});
  }
}

void GradientRules::EmitNode(int32_t n) {
  const Node& node = record_.nodes()[static_cast<size_t>(n)];
  const int32_t d_y = slot_of_[static_cast<size_t>(n) * 2];
  const bool reached =
      d_y >= 0 || (node.outputs == 2 && slot_of_[static_cast<size_t>(n) * 2 + 1] >= 0);
  if (needed_[static_cast<size_t>(n)] == 0 || !reached) return;
  current_ = n;
  const auto inputs = record_.InputsOf(node);
  const auto saved = [&](int32_t index) { return SavedOperand(node.first_saved + index); };
  const auto& dims = node.dims;
  const auto with = [&](StepKind kind, std::array<int32_t, 5> in) {
    return GradientStep{
        .kind = kind, .detail = node.kind, .in = in, .dims = {dims[0], dims[1], dims[2]}};
  };
  constexpr int32_t no = kNoOperand;
  switch (node.op) {
    case Op::kParameter:
      break;
    case Op::kDense:
      EmitDense(node, d_y);
      break;
    case Op::kUnary:
      EmitInto(with(StepKind::kUnary, {saved(1), saved(0), d_y, no, no}), inputs[0]);
      break;
    case Op::kBinary:
      EmitBinary(node, d_y);
      break;
    case Op::kAffine:
      if (node.kind == 1) {
        Pass(inputs[0], d_y);
      } else {
        const Written d_x = Write(inputs[0], dims[0]);
        GradientStep step = with(StepKind::kScale, {d_y, no, no, no, no});
        step.out[0] = d_x.slot;
        Emit(step);
        Finish(d_x);
      }
      break;
    case Op::kClamp:
      EmitInto(with(StepKind::kClamp, {saved(1), d_y, no, no, no}), inputs[0]);
      break;
    case Op::kSelect:
      for (size_t i = 0; i < 2; ++i) {
        if (!Wants(inputs[i])) continue;
        GradientStep step = with(StepKind::kMask, {saved(1), d_y, no, no, no});
        step.detail = i == 0 ? 1 : 0;
        EmitInto(step, inputs[i]);
      }
      break;
    case Op::kSum:
    case Op::kMean: {
      GradientStep step = with(StepKind::kFill, {d_y, no, no, no, no});
      step.dims[1] = node.op == Op::kMean ? dims[0] : 1;
      EmitInto(step, inputs[0]);
      break;
    }
    case Op::kSumLast:
      EmitInto(with(StepKind::kRepeat, {d_y, no, no, no, no}), inputs[0]);
      break;
    case Op::kSoftmax:
      EmitInto(with(StepKind::kSoftmax, {saved(0), d_y, no, no, no}), inputs[0]);
      break;
    case Op::kLogSoftmax:
      EmitInto(with(StepKind::kLogSoftmax, {saved(0), d_y, no, no, no}), inputs[0]);
      break;
    case Op::kGatherLast:
      EmitInto(with(StepKind::kScatter, {saved(1), d_y, no, no, no}), inputs[0]);
      break;
    case Op::kConcat:
      EmitConcat(node, d_y);
      break;
    case Op::kSlice:
      EmitSlice(node, d_y);
      break;
    case Op::kView:
      Pass(inputs[0], d_y);
      break;
    case Op::kLayerNorm:
      EmitLayerNorm(node, d_y);
      break;
    case Op::kLstmCell:
      EmitLstmCell(node, n * 2);
      break;
    case Op::kGruCell:
      EmitGruCell(node, d_y);
      break;
    case Op::kIm2Col:
      EmitInto(with(StepKind::kCol2Im, {d_y, no, no, no, no}), inputs[0]);
      break;
    case Op::kSwap: {
      const Written d_x = Write(inputs[0], dims[0] * dims[1] * dims[2]);
      Emit({.kind = StepKind::kSwap,
            .in = {d_y, no, no, no, no},
            .out = {d_x.slot, no, no},
            .dims = {dims[0], dims[2], dims[1]}});
      Finish(d_x);
      break;
    }
  }
}

void GradientRules::EmitDense(const Node& node, int32_t d_y) {
  constexpr int32_t no = kNoOperand;
  const auto inputs = record_.InputsOf(node);
  const auto [rows, in, out, a, b, c, d] = node.dims;
  int32_t d_z = d_y;
  if (static_cast<Activation>(node.kind) != Activation::kNone) {
    d_z = Temporary(rows * out);
    Emit({.kind = StepKind::kActivation,
          .detail = node.kind,
          .in = {SavedOperand(node.first_saved), d_y, no, no, no},
          .out = {d_z, no, no},
          .dims = {rows * out}});
  }
  if (Wants(inputs[1]) || Wants(inputs[2])) {
    GradientStep step{.kind = StepKind::kDenseWeight,
                      .in = {SavedOperand(node.first_saved + 1), d_z, no, no, no},
                      .dims = {rows, in, out}};
    for (size_t i = 0; i < 2; ++i) {
      if (!Wants(inputs[i + 1])) continue;
      const Target target = Into(inputs[i + 1]);
      step.out[i] = target.slot;
      step.accumulate[i] = target.accumulate;
    }
    Emit(step);
  }
  if (Wants(inputs[0])) {
    EmitInto({.kind = StepKind::kDenseInput,
              .in = {d_z, SavedOperand(node.first_saved + 2), no, no, no},
              .dims = {rows, in, out}},
             inputs[0]);
  }
}

void GradientRules::EmitBinary(const Node& node, int32_t d_y) {
  const auto inputs = record_.InputsOf(node);
  const auto op = static_cast<Binary>(node.kind);
  const bool linear = op == Binary::kAdd || op == Binary::kSubtract;
  const bool equal = node.broadcast == Broadcasting::kNone;
  // Sums and differences read no operand; d_y stands in for both.
  GradientStep step{
      .kind = equal ? StepKind::kBinary : StepKind::kBroadcast,
      .detail = node.kind,
      .broadcast = node.broadcast,
      .in = {linear ? d_y : SavedOperand(node.first_saved + 1),
             linear ? d_y : SavedOperand(node.first_saved + 2), d_y, kNoOperand, kNoOperand}};
  step.dims[0] = equal ? node.dims[1] : node.dims[0];
  step.dims[1] = node.dims[1];
  bool emit = false;
  for (size_t i = 0; i < 2; ++i) {
    if (!Wants(inputs[i])) continue;
    if (linear && (i == 0 || (op == Binary::kAdd && equal))) {
      Pass(inputs[i], d_y);
      continue;
    }
    if (emit && inputs[0] == inputs[1]) {  // two contributions to one slot are two steps
      Emit(step);
      step.out[0] = kNoOperand;
    }
    const Target target = Into(inputs[i]);
    step.out[i] = target.slot;
    step.accumulate[i] = target.accumulate;
    emit = true;
  }
  if (emit) Emit(step);
}

void GradientRules::EmitConcat(const Node& node, int32_t d_y) {
  const int64_t rows = node.dims[0], columns = node.dims[1];
  const auto words = record_.inputs().subspan(static_cast<size_t>(node.first_input),
                                              2 * static_cast<size_t>(node.inputs));
  const auto count = static_cast<size_t>(node.inputs);
  int64_t offset = 0;
  for (size_t i = 0; i < count; ++i) {
    const int64_t width = words[count + i];
    if (Wants(words[i])) {
      EmitInto({.kind = StepKind::kColumns,
                .in = {d_y, kNoOperand, kNoOperand, kNoOperand, kNoOperand},
                .dims = {rows, width, width, 0, columns, offset}},
               words[i]);
    }
    offset += width;
  }
}

void GradientRules::EmitSlice(const Node& node, int32_t d_y) {
  const int32_t value = record_.InputsOf(node)[0];
  const auto [rows, columns, begin, end, a, b, c] = node.dims;
  const Target target = Into(value);
  if (!target.accumulate) {
    Emit({.kind = StepKind::kZero,
          .out = {target.slot, kNoOperand, kNoOperand},
          .dims = {rows * columns}});
  }
  Emit({.kind = StepKind::kColumns,
        .accumulate = {true},
        .in = {d_y, kNoOperand, kNoOperand, kNoOperand, kNoOperand},
        .out = {target.slot, kNoOperand, kNoOperand},
        .dims = {rows, end - begin, columns, begin, end - begin, 0}});
}

void GradientRules::EmitLayerNorm(const Node& node, int32_t d_y) {
  const auto inputs = record_.InputsOf(node);
  const auto saved = [&](int32_t index) { return SavedOperand(node.first_saved + index); };
  GradientStep step{.kind = StepKind::kLayerNorm,
                    .in = {saved(1), saved(2), saved(3), saved(4), d_y},
                    .dims = {node.dims[0], node.dims[1]}};
  if (Wants(inputs[0])) {
    const Target d_x = Into(inputs[0]);
    step.out[0] = d_x.slot;
    step.accumulate[0] = d_x.accumulate;
  }
  std::array<Written, 2> written = {{{kNoOperand, kNoOperand}, {kNoOperand, kNoOperand}}};
  for (size_t i = 0; i < 2; ++i) {
    if (!Wants(inputs[i + 1])) continue;
    written[i] = Write(inputs[i + 1], node.dims[1]);
    step.out[i + 1] = written[i].slot;
  }
  Emit(step);
  for (const Written& each : written) Finish(each);
}

void GradientRules::EmitLstmCell(const Node& node, int32_t value) {
  const auto inputs = record_.InputsOf(node);
  const int64_t rows = node.dims[0], hidden = node.dims[1];
  const int32_t d_h = GradientOrZero(value), d_c = GradientOrZero(value + 1);
  const Written d_gates = Write(inputs[0], rows * 4 * hidden);
  const Written d_old_c = Write(inputs[1], rows * hidden);
  Emit({.kind = StepKind::kLstmCell,
        .in = {SavedOperand(node.first_saved + 2), SavedOperand(node.first_saved + 3), d_c, d_h,
               kNoOperand},
        .out = {d_gates.slot, d_old_c.slot, kNoOperand},
        .dims = {rows, hidden}});
  Finish(d_gates);
  Finish(d_old_c);
}

void GradientRules::EmitGruCell(const Node& node, int32_t d_y) {
  const auto inputs = record_.InputsOf(node);
  const int64_t rows = node.dims[0], hidden = node.dims[1];
  const std::array<Written, 3> written = {Write(inputs[0], rows * 3 * hidden),
                                          Write(inputs[1], rows * 3 * hidden),
                                          Write(inputs[2], rows * hidden)};
  Emit({.kind = StepKind::kGruCell,
        .in = {SavedOperand(node.first_saved + 1), SavedOperand(node.first_saved + 2), d_y,
               kNoOperand, kNoOperand},
        .out = {written[0].slot, written[1].slot, written[2].slot},
        .dims = {rows, hidden}});
  for (const Written& each : written) Finish(each);
}

}  // namespace weft
