#include "tensor/gradient_plan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <sstream>

#include "tensor/gradient_passes.h"

namespace weft {
namespace {

constexpr size_t kTile = 1024;  // elements of a tile: a few operands of 4 KiB stay in the L1 cache
constexpr size_t kTileBuffers = 6;               // for slots that live in a tile only
constexpr int64_t kSmallestTiled = 16 * kTile;   // below, whole operands stay in the L2 cache
constexpr int64_t kSmallestShared = 64 * kTile;  // from here on the tiles are shared among threads

constexpr float kOne = 1;

template <class T>
bool SameBytes(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

// The dims of a node without zeros behind them.
std::string DimsText(const Node& node) {
  size_t count = node.dims.size();
  while (count > 0 && node.dims[count - 1] == 0) --count;
  std::string text = "[";
  for (size_t d = 0; d < count; ++d) text += (d > 0 ? ", " : "") + std::to_string(node.dims[d]);
  return text + "]";
}

}  // namespace

GradientPlan::GradientPlan(const TapeRecord& record, int32_t loss, const GradientSet& set)
    : hash_(record.hash()),
      loss_(loss),
      set_(&set),
      nodes_(record.nodes().begin(), record.nodes().end()),
      inputs_(record.inputs().begin(), record.inputs().end()) {
  GradientRules rules(record, loss, set.parameters);
  for (int32_t node = rules.last_node(); node >= record.parameters(); --node) rules.EmitNode(node);
  rules.EmitUnreached();
  steps_ = std::move(rules.steps());
  slots_ = rules.slots();
  RemoveCopies(steps_, slots_);
  FuseActivations(steps_, slots_);
  memory_.resize(slots_.size());
  Group();
  std::vector<Life> lives = Lives();
  PlaceInTiles(lives);
  PlaceInArena(std::move(lives));
}

bool GradientPlan::Matches(const TapeRecord& record, int32_t loss, const GradientSet& set) const {
  return hash_ == record.hash() && loss_ == loss && set_ == &set &&
         SameBytes<Node>(nodes_, record.nodes()) && SameBytes<int32_t>(inputs_, record.inputs());
}

std::string GradientPlan::Difference(const TapeRecord& record) const {
  const auto others = record.nodes();
  const auto first = static_cast<size_t>(record.parameters());
  for (size_t n = first; n < std::min(nodes_.size(), others.size()); ++n) {
    const Node& was = nodes_[n];
    const Node& is = others[n];
    const auto inputs = [&](std::span<const int32_t> all, const Node& node) {
      return all.subspan(static_cast<size_t>(node.first_input), static_cast<size_t>(node.inputs));
    };
    std::ostringstream text;
    text << "node " << n - first << " " << Name(was);
    if (std::strcmp(Name(was), Name(is)) != 0) {
      text << " became " << Name(is);
    } else if (was.dims != is.dims) {
      text << ": " << DimsText(was) << " became " << DimsText(is);
    } else if (!SameBytes<int32_t>(inputs(inputs_, was), inputs(record.inputs(), is))) {
      text << ": other inputs";
    } else if (!SameBytes<Node>({&was, 1}, {&is, 1})) {
      text << ": other attributes";
    } else {
      continue;
    }
    return text.str();
  }
  return std::to_string(nodes_.size() - first) + " nodes became " +
         std::to_string(others.size() - first);
}

int64_t GradientPlan::tiled_runs() const {
  return std::count_if(units_.begin(), units_.end(),
                       [](const Unit& unit) { return unit.end - unit.begin > 1; });
}

void GradientPlan::Group() {
  for (size_t i = 0; i < steps_.size(); ++i) {
    const bool tiled = IsElementwise(steps_[i].kind) && steps_[i].dims[0] >= kSmallestTiled;
    const bool joins = tiled && !units_.empty() &&
                       IsElementwise(steps_[units_.back().begin].kind) &&
                       steps_[units_.back().begin].dims[0] == steps_[i].dims[0];
    if (joins) {
      units_.back().end = i + 1;
    } else {
      units_.push_back({i, i + 1});
    }
  }
}

std::vector<GradientPlan::Life> GradientPlan::Lives() const {
  std::vector<Life> lives(slots_.size());
  for (size_t s = 0; s < slots_.size(); ++s) {
    lives[s].slot = s;
    lives[s].elements = (slots_[s].elements + 15) / 16 * 16;
  }
  for (size_t u = 0; u < units_.size(); ++u) {
    const auto touch = [&](int32_t slot) {
      if (slot < 0) return;
      Life& life = lives[static_cast<size_t>(slot)];
      if (life.begin < 0) life.begin = static_cast<int64_t>(u);
      life.end = static_cast<int64_t>(u);
    };
    for (size_t i = units_[u].begin; i < units_[u].end; ++i) {
      for (const int32_t slot : steps_[i].in) touch(slot);
      for (const int32_t slot : steps_[i].out) touch(slot);
    }
  }
  std::erase_if(lives, [&](const Life& life) {
    return life.begin < 0 || slots_[life.slot].kind != GradientSlot::Kind::kTemporary;
  });
  return lives;
}

// Slots that begin and end inside one run of tiled steps need no more than a tile, as long as there
// are buffers.
void GradientPlan::PlaceInTiles(std::vector<Life>& lives) {
  std::vector<size_t> last_step(slots_.size(), 0);
  for (size_t i = 0; i < steps_.size(); ++i) {
    for (const int32_t slot : steps_[i].in) {
      if (slot >= 0) last_step[static_cast<size_t>(slot)] = i;
    }
    for (const int32_t slot : steps_[i].out) {
      if (slot >= 0) last_step[static_cast<size_t>(slot)] = i;
    }
  }
  std::vector<bool> local(slots_.size(), false);
  for (const Life& life : lives) {
    const Unit& unit = units_[static_cast<size_t>(life.begin)];
    local[life.slot] = life.begin == life.end && unit.end - unit.begin > 1;
  }
  for (const Unit& unit : units_) {
    std::array<size_t, kTileBuffers> free_from{};  // the step from which a buffer may be written
    for (size_t i = unit.begin; i < unit.end; ++i) {
      for (const int32_t operand : steps_[i].out) {
        if (operand < 0 || !local[static_cast<size_t>(operand)]) continue;
        const auto slot = static_cast<size_t>(operand);
        if (memory_[slot].tile >= 0) continue;
        const auto buffer = std::find_if(free_from.begin(), free_from.end(),
                                         [&](size_t from) { return from <= i; });
        if (buffer == free_from.end()) {
          local[slot] = false;
          continue;
        }
        memory_[slot].tile = static_cast<int32_t>(buffer - free_from.begin());
        *buffer = last_step[slot] + 1;
      }
    }
  }
  std::erase_if(lives, [&](const Life& life) { return local[life.slot]; });
}

// Offsets such that slots that live at the same time do not overlap, large ones first. A run of
// tiled steps is one moment, as its steps interleave.
void GradientPlan::PlaceInArena(std::vector<Life> lives) {
  std::stable_sort(lives.begin(), lives.end(),
                   [](const Life& a, const Life& b) { return a.elements > b.elements; });
  offsets_.assign(slots_.size(), 0);
  std::vector<Life> placed;  // by offset
  for (const Life& life : lives) {
    int64_t offset = 0;
    for (const Life& other : placed) {
      if (other.end < life.begin || life.end < other.begin) continue;
      if (offset + life.elements <= offsets_[other.slot]) break;
      offset = std::max(offset, offsets_[other.slot] + other.elements);
    }
    offsets_[life.slot] = offset;
    arena_elements_ = std::max(arena_elements_, offset + life.elements);
    const auto after = std::upper_bound(
        placed.begin(), placed.end(), offset,
        [&](int64_t value, const Life& other) { return value < offsets_[other.slot]; });
    placed.insert(after, life);
  }
}

void GradientPlan::RunTiles(const Context& context, const TapeRecord& record,
                            const Unit& unit) const {
  const Context serial{.pool = nullptr, .isa = context.isa, .plan = context.plan};
  const int64_t count = steps_[unit.begin].dims[0];
  auto run = [&](int64_t first, int64_t last) {
    alignas(64) std::array<std::array<float, kTile>, kTileBuffers> memory;
    std::array<float*, kTileBuffers> buffers;
    for (size_t b = 0; b < kTileBuffers; ++b) buffers[b] = memory[b].data();
    for (int64_t begin = first; begin < last; begin += static_cast<int64_t>(kTile)) {
      for (size_t i = unit.begin; i < unit.end; ++i) {
        RunStep(serial, steps_[i], record, memory_,
                {begin, std::min(begin + static_cast<int64_t>(kTile), last), buffers});
      }
    }
  };
  if (context.pool != nullptr && count >= kSmallestShared) {
    context.pool->ParallelFor(count, kTile, run);
  } else {
    run(0, count);
  }
}

void GradientPlan::Run(const Context& context, const TapeRecord& record, float* arena) {
  if (arena_ != arena) {
    for (size_t s = 0; s < slots_.size(); ++s) {
      switch (slots_[s].kind) {
        case GradientSlot::Kind::kOne:
          memory_[s].data = const_cast<float*>(&kOne);  // never written
          break;
        case GradientSlot::Kind::kParameter: {
          Tensor gradient = set_->gradients[static_cast<size_t>(slots_[s].parameter)];
          memory_[s].data = gradient.data<float>().data();
          break;
        }
        case GradientSlot::Kind::kTemporary:
          memory_[s].data = arena + offsets_[s];
          break;
      }
    }
    arena_ = arena;
  }
  for (const Unit& unit : units_) {
    if (unit.end - unit.begin == 1) {
      RunStep(context, steps_[unit.begin], record, memory_);
    } else {
      RunTiles(context, record, unit);
    }
  }
}

void InterpretGradient(const Context& context, const TapeRecord& record, int32_t loss,
                       const GradientSet& set) {
  GradientRules rules(record, loss, set.parameters);
  std::vector<Tensor> storage;
  std::vector<SlotMemory> memory;
  const auto run = [&] {
    for (size_t s = memory.size(); s < rules.slots().size(); ++s) {
      const GradientSlot& slot = rules.slots()[s];
      Tensor tensor = slot.kind == GradientSlot::Kind::kOne ? Tensor::Scalar(1)
                      : slot.kind == GradientSlot::Kind::kParameter
                          ? set.gradients[static_cast<size_t>(slot.parameter)]
                          : Tensor::Empty({slot.elements});
      memory.push_back({tensor.data<float>().data()});
      storage.push_back(std::move(tensor));
    }
    for (const GradientStep& step : rules.steps()) RunStep(context, step, record, memory);
    rules.steps().clear();
  };
  for (int32_t node = rules.last_node(); node >= record.parameters(); --node) {
    rules.EmitNode(node);
    run();
  }
  rules.EmitUnreached();
  run();
}

}  // namespace weft
