#include "tensor/gradient_passes.h"

#include <algorithm>
#include <cstdint>

namespace weft {
namespace {

constexpr int64_t kNever = -1;

// Slots that share memory form a class, known by its root.
class Aliases {
 public:
  Aliases(const std::vector<GradientStep>& steps, const std::vector<GradientSlot>& slots)
      : slots_(slots),
        root_(slots.size()),
        last_read_(slots.size(), kNever),
        last_write_(slots.size(), kNever) {
    for (size_t s = 0; s < slots.size(); ++s) root_[s] = static_cast<int32_t>(s);
    for (size_t i = 0; i < steps.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      for (const int32_t slot : steps[i].in) {
        if (slot >= 0) last_read_[static_cast<size_t>(slot)] = at;
      }
      for (size_t o = 0; o < steps[i].out.size(); ++o) {
        const int32_t slot = steps[i].out[o];
        if (slot < 0) continue;
        last_write_[static_cast<size_t>(slot)] = at;
        if (steps[i].accumulate[o]) last_read_[static_cast<size_t>(slot)] = at;
      }
    }
  }

  int32_t Root(int32_t slot) const {
    while (root_[static_cast<size_t>(slot)] != slot) slot = root_[static_cast<size_t>(slot)];
    return slot;
  }

  // Lets both share memory from step `at` on, which reads source and writes target for the first
  // time; false when a later reader would see a wrong value. target_equals_source: the step copies,
  // so both may be read until one is written.
  bool Join(int64_t at, int32_t source, int32_t target, bool target_equals_source) {
    const auto from = static_cast<size_t>(Root(source)), to = static_cast<size_t>(Root(target));
    if (from == to || !IsTemporary(from) || !IsTemporary(to)) return false;
    if (last_write_[from] > at) return false;
    const bool source_is_read_later = last_read_[from] > at;
    const bool target_is_written_later = last_write_[to] > at;
    if (source_is_read_later && (!target_equals_source || target_is_written_later)) return false;
    root_[to] = static_cast<int32_t>(from);
    last_read_[from] = std::max(last_read_[from], last_read_[to]);
    last_write_[from] = std::max(last_write_[from], last_write_[to]);
    return true;
  }

 private:
  bool IsTemporary(size_t slot) const {
    return slots_[slot].kind == GradientSlot::Kind::kTemporary;
  }

  const std::vector<GradientSlot>& slots_;
  std::vector<int32_t> root_;
  std::vector<int64_t> last_read_, last_write_;
};

void Erase(std::vector<GradientStep>& steps, const std::vector<bool>& removed) {
  size_t kept = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!removed[i]) steps[kept++] = steps[i];
  }
  steps.resize(kept);
}

}  // namespace

void RemoveCopies(std::vector<GradientStep>& steps, const std::vector<GradientSlot>& slots) {
  Aliases aliases(steps, slots);
  std::vector<bool> removed(steps.size(), false);
  for (size_t i = 0; i < steps.size(); ++i) {
    const GradientStep& step = steps[i];
    const auto at = static_cast<int64_t>(i);
    switch (step.kind) {
      case StepKind::kCopy:
        removed[i] = aliases.Join(at, step.in[0], step.out[0], true);
        break;
      case StepKind::kScale:
        aliases.Join(at, step.in[0], step.out[0], false);
        break;
      case StepKind::kActivation:
        aliases.Join(at, step.in[1], step.out[0], false);
        break;
      default:
        break;
    }
  }
  Erase(steps, removed);
  for (GradientStep& step : steps) {
    for (int32_t& slot : step.in) slot = slot >= 0 ? aliases.Root(slot) : slot;
    for (int32_t& slot : step.out) slot = slot >= 0 ? aliases.Root(slot) : slot;
  }
}

void FuseActivations(std::vector<GradientStep>& steps, const std::vector<GradientSlot>& slots) {
  // Per slot: its reads and writes so far, and the step of the last write.
  std::vector<int32_t> reads(slots.size(), 0), writes(slots.size(), 0);
  std::vector<size_t> writer(slots.size(), 0);
  std::vector<bool> removed(steps.size(), false);
  for (size_t i = 0; i < steps.size(); ++i) {
    GradientStep& step = steps[i];
    // In place since RemoveCopies: nobody reads d_h later; nobody may have read it before either.
    if (step.kind == StepKind::kActivation && step.in[1] == step.out[0] &&
        writes[static_cast<size_t>(step.out[0])] == 1 &&
        reads[static_cast<size_t>(step.out[0])] == 0) {
      GradientStep& product = steps[writer[static_cast<size_t>(step.out[0])]];
      if (product.kind == StepKind::kDenseInput && !product.accumulate[0] &&
          product.in[2] == kNoOperand) {
        product.detail = step.detail;
        product.in[2] = step.in[0];
        removed[i] = true;
        continue;
      }
    }
    for (const int32_t slot : step.in) {
      if (slot >= 0) ++reads[static_cast<size_t>(slot)];
    }
    for (const int32_t slot : step.out) {
      if (slot < 0) continue;
      ++writes[static_cast<size_t>(slot)];
      writer[static_cast<size_t>(slot)] = i;
    }
  }
  Erase(steps, removed);
}

}  // namespace weft
