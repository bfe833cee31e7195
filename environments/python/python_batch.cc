#include "environments/python/python_batch.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/config.h"
#include "base/log.h"

namespace weft {
namespace {

// Of agent rows.
BatchOptions RowOptions(BatchOptions options, const EnvironmentSpec& spec) {
  options.rows *= spec.agent_count();
  options.first_row *= spec.agent_count();
  return options;
}

}  // namespace

PythonBatch::PythonBatch(const PythonTarget& target, int64_t workers, const EnvironmentSpec& spec,
                         const BatchOptions& options)
    : target_(target),
      worker_count_(workers),
      layout_(spec, RowOptions(options, spec)),
      agents_(static_cast<size_t>(spec.agent_count())),
      step_limit_(options.time_limit > 0 ? options.time_limit
                                         : std::numeric_limits<int64_t>::max()),
      action_bytes_(static_cast<size_t>(spec.action.shape().elements()) *
                    SizeOf(spec.action.dtype())),
      types_(static_cast<size_t>(rows()), StepType::kLast),
      absent_(static_cast<size_t>(rows())) {
  if (target.vector && options.action_repeat > 1)
    throw ConfigProblem("environment.wrappers", "a vector environment repeats no actions");
  // Evaluations cut endless episodes off and look no further.
  if (target.vector && options.time_limit >= 0 && options.purpose != Purpose::kEvaluation)
    throw ConfigProblem("environment.time_limit", "a vector environment keeps its own");
  for (int64_t world = 0; world < options.rows; ++world) {
    const Rng rng(options.seed, options.purpose, static_cast<uint64_t>(options.first_row + world));
    worlds_.push_back({.progress = {.rng = rng}});
  }
}

bool PythonBatch::Over(int64_t world) const {
  const auto types = std::span(types_).subspan(static_cast<size_t>(world) * agents_, agents_);
  return std::ranges::all_of(types, [](StepType type) { return type == StepType::kLast; });
}

uint64_t PythonBatch::Repeats(int64_t steps) const {
  return static_cast<uint64_t>(std::min(layout_.options().action_repeat, step_limit_ - steps));
}

std::span<std::byte> PythonBatch::Observation(Worker& worker, int64_t index, size_t leaf,
                                              size_t agent) {
  const std::span<std::byte> all = worker.worker->shared().leaves[leaf];
  const size_t bytes = all.size() / worker.worker->shared().present.size();
  return all.subspan((static_cast<size_t>(index) * agents_ + agent) * bytes, bytes);
}

// At the first step: many batches are made for their spec alone.
void PythonBatch::Start() {
  if (!workers_.empty()) return;
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  const int64_t worlds = std::ssize(worlds_);
  const int64_t count = std::clamp<int64_t>(worker_count_ ? worker_count_ : cores, 1, worlds);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = worlds * i / count, end = worlds * (i + 1) / count;
    workers_.push_back({begin, std::make_unique<PythonWorker>(target_, end - begin)});
  }
  for (Worker& worker : workers_)  // which have started side by side
    worker.worker->Attach(layout_.spec());
}

void PythonBatch::Reset(TimeStep& out) {
  std::ranges::fill(types_, StepType::kLast);
  Run(layout_.Open(out));
}

void PythonBatch::Step(const Tensor& action, TimeStep& out) {
  const BatchLayout::View view = layout_.Open(action, out);
  layout_.CheckActions(view, types_, 0, rows());
  Run(view);
}

void PythonBatch::Run(const BatchLayout::View& view) {
  Start();
  for (Worker& worker : workers_) {
    for (int64_t i = 0; i < worker.worker->environments(); ++i) Command(view, worker, i);
    worker.fresh = false;
    worker.worker->Begin();
  }
  for (Worker& worker : workers_) {
    Await(worker, false);
    for (int64_t i = 0; i < worker.worker->environments(); ++i) Collect(view, worker, i);
  }
  const auto steps = [&](int64_t row) {
    return worlds_[static_cast<size_t>(row) / agents_].progress.steps;
  };
  layout_.Finish(view, 0, rows(), steps);
  for (int64_t row = 0; row < rows(); ++row) {
    if (!absent_[static_cast<size_t>(row)]) layout_.CheckBounds(view, row, row + 1, steps);
  }
}

void PythonBatch::Command(const BatchLayout::View& view, Worker& worker, int64_t index) {
  PythonRows& shared = worker.worker->shared();
  const auto i = static_cast<size_t>(index);
  World& world = worlds_[static_cast<size_t>(worker.first + index)];
  if (Over(worker.first + index)) {
    world.seed = world.progress.rng.NextU32() >> 1;
    ++world.progress.episode;
    world.progress.steps = 0;
    world.actions.clear();
    shared.command[i] = PythonCommand::kReset;
    shared.seed[i] = world.seed;
    return;
  }
  if (target_.vector && worker.fresh) return Lose(worker, index);
  shared.command[i] = PythonCommand::kStep;
  shared.steps[i] = Repeats(world.progress.steps);
  for (size_t agent = 0; agent < agents_; ++agent) {
    std::byte* to = shared.action.data() + (i * agents_ + agent) * action_bytes_;
    const int64_t row =
        (worker.first + index) * static_cast<int64_t>(agents_) + static_cast<int64_t>(agent);
    const ActionRow action = BatchLayout::Action(view, row);
    if (action.dtype() == DType::kFloat64) {
      for (size_t a = 0; a < action_bytes_ / sizeof(float); ++a) {
        const auto value = static_cast<float>(action.real(static_cast<int64_t>(a)));
        std::memcpy(to + a * sizeof(float), &value, sizeof(float));
      }
    } else {
      std::memcpy(to, view.action + row * view.action_bytes, action_bytes_);
    }
    if (!target_.vector) world.actions.insert(world.actions.end(), to, to + action_bytes_);
  }
}

// Ends the open episode where it stands. A vector environment begins anew as a whole, so it wants
// seeds for all.
void PythonBatch::Lose(Worker& worker, int64_t index) {
  PythonRows& shared = worker.worker->shared();
  const auto i = static_cast<size_t>(index);
  shared.command[i] = PythonCommand::kSkip;
  shared.steps[i] = 0;
  if (target_.vector) {
    Rng& rng = worlds_[static_cast<size_t>(worker.first + index)].progress.rng;
    shared.seed[i] = rng.NextU32() >> 1;
  }
  const auto types = TypesOf(worker.first + index);
  for (size_t agent = 0; agent < agents_; ++agent) {
    const size_t row = i * agents_ + agent;
    const bool there = types[agent] != StepType::kLast;
    shared.present[row] = there ? PythonPresence::kStepped : PythonPresence::kAbsent;
    shared.reward[row] = 0;
    shared.terminated[row] = 0;
    shared.truncated[row] = 1;
  }
}

// Waits for a worker. One that was lost is started again: what it should have stepped is truncated
// where it stood, what it should have reset is reset.
void PythonBatch::Await(Worker& worker, bool replays) {
  constexpr int kMostLosses = 3;
  PythonRows& shared = worker.worker->shared();
  const auto name = [&](int64_t index) {
    const int64_t world = worker.first + index;
    const bool resets = shared.command[static_cast<size_t>(index)] == PythonCommand::kReset;
    return layout_.StepName(world * static_cast<int64_t>(agents_),
                            resets ? 0 : worlds_[static_cast<size_t>(world)].progress.steps + 1);
  };
  std::string lost;
  for (int losses = 1; !worker.worker->Finish(name, &lost); ++losses) {
    if (losses == kMostLosses || replays) {
      throw Error(ErrorCode::kUnavailable,
                  layout_.spec().id + ": its Python process was lost " +
                      (replays ? "while it repeated the open episodes"
                               : std::to_string(losses) + " times in a row") +
                      " (" + lost + ")");
    }
    LogWarn(layout_.spec().id + ": a Python process was lost (" + lost +
            ") and is started again; its open episodes are truncated");
    worker.worker->Restart();
    for (int64_t i = 0; i < worker.worker->environments(); ++i) {
      if (shared.command[static_cast<size_t>(i)] == PythonCommand::kStep) Lose(worker, i);
    }
    worker.worker->Begin();
  }
}

void PythonBatch::Collect(const BatchLayout::View& view, Worker& worker, int64_t index) {
  const PythonRows& shared = worker.worker->shared();
  const auto i = static_cast<size_t>(index);
  const int64_t world_index = worker.first + index;
  World& world = worlds_[static_cast<size_t>(world_index)];
  const bool resets = shared.command[i] == PythonCommand::kReset;
  world.progress.steps += static_cast<int64_t>(resets ? 0 : shared.steps[i]);
  const bool cut_off = world.progress.steps >= step_limit_;
  const auto types = TypesOf(world_index);
  for (size_t agent = 0; agent < agents_; ++agent) {
    const size_t at = i * agents_ + agent;
    const int64_t row = world_index * static_cast<int64_t>(agents_) + static_cast<int64_t>(agent);
    const auto leaves = layout_.Leaves(view, row);
    const bool absent = shared.present[at] == PythonPresence::kAbsent;
    const bool first = shared.present[at] == PythonPresence::kFirst;
    for (size_t leaf = 0; leaf < shared.leaves.size(); ++leaf) {
      const auto from = Observation(worker, index, leaf, agent);
      if (absent) {
        std::memset(leaves[leaf], 0, from.size());
      } else {
        std::memcpy(leaves[leaf], from.data(), from.size());
      }
    }
    const bool ended = shared.terminated[at] || shared.truncated[at] || cut_off;
    types[agent] = absent || (ended && !first) ? StepType::kLast
                   : first                     ? StepType::kFirst
                                               : StepType::kMid;
    absent_[static_cast<size_t>(row)] = absent;
    view.reward[row] = absent || first ? 0 : static_cast<float>(shared.reward[at]);
    view.discount[row] = !absent && !first && shared.terminated[at] ? 0.0f : 1.0f;
    view.type[row] = static_cast<uint8_t>(types[agent]);
    view.episode_id[row] = world.progress.episode;
  }
  WEFT_CHECK(!resets || !Over(world_index)) << spec().id << " began an episode without agents";
}

TensorMap PythonBatch::Save() const {
  std::vector<StepType> world_types;
  for (int64_t world = 0; world < std::ssize(worlds_); ++world)
    world_types.push_back(Over(world) ? StepType::kLast : StepType::kMid);
  TensorMap state = layout_.SaveRows(
      world_types, [&](size_t world) -> const RowProgress& { return worlds_[world].progress; },
      [&](size_t world, Writer& out) {
        out.Write(std::span(types_).subspan(world * agents_, agents_));
        out.Write(worlds_[world].seed);
        out.Write(std::span<const std::byte>(worlds_[world].actions));
      });
  // A vector environment cannot be brought back: its episodes end with what they showed last.
  if (!target_.vector) return state;
  Writer shown;
  for (const Worker& worker : workers_) {
    for (const auto& leaf : worker.worker->shared().leaves)
      shown.Write(std::span<const std::byte>(leaf));
  }
  state.Set("shown", Tensor::From<uint8_t>({std::ssize(shown.bytes())}, shown.bytes()));
  return state;
}

void PythonBatch::Load(const TensorMap& state) {
  std::vector<StepType> world_types(worlds_.size());
  layout_.LoadRows(
      state, world_types, [&](size_t world) -> RowProgress& { return worlds_[world].progress; },
      [&](size_t world, Reader& in) {
        const auto types = in.ReadVector<StepType>();
        World& of = worlds_[world];
        of.seed = in.Read<uint64_t>();
        of.actions = in.ReadVector<std::byte>();
        const auto bad = [](StepType type) { return type > StepType::kLast; };
        if (types.size() != agents_ || std::ranges::any_of(types, bad) ||
            of.actions.size() % (action_bytes_ * agents_) != 0) {
          throw Error(ErrorCode::kCorrupt, "the saved state of environment " +
                                               std::to_string(world) + " of " + spec().id +
                                               " is not that of " + std::to_string(agents_) +
                                               " agents and their actions");
        }
        std::ranges::copy(types, TypesOf(static_cast<int64_t>(world)).begin());
      });
  if (!target_.vector) return Replay();
  const bool running = !workers_.empty();
  Start();
  Reader shown(state.At("shown").data<uint8_t>());
  for (Worker& worker : workers_) {
    if (running) worker.worker->Restart();
    worker.fresh = true;
    for (auto& leaf : worker.worker->shared().leaves) {
      if (shown.AtEnd()) break;  // nothing had begun
      const auto bytes = shown.ReadVector<std::byte>();
      if (bytes.size() != leaf.size()) {
        throw Error(ErrorCode::kCorrupt,
                    "the saved state of " + spec().id + " is that of another number of workers");
      }
      std::ranges::copy(bytes, leaf.begin());
    }
  }
}

// Brings the environments to where they stood: each open episode from its seed and actions.
void PythonBatch::Replay() {
  Start();
  const size_t block = action_bytes_ * agents_;
  std::vector<int64_t> done(worlds_.size());  // steps
  for (size_t step = 0;; ++step) {
    bool any = false;
    for (Worker& worker : workers_) {
      PythonRows& shared = worker.worker->shared();
      worker.fresh = false;
      for (size_t i = 0; i < shared.command.size(); ++i) {
        const size_t index = static_cast<size_t>(worker.first) + i;
        const World& world = worlds_[index];
        const bool skip = Over(static_cast<int64_t>(index)) || step > world.actions.size() / block;
        shared.command[i] = skip        ? PythonCommand::kSkip
                            : step == 0 ? PythonCommand::kReset
                                        : PythonCommand::kStep;
        any = any || !skip;
        if (skip) continue;
        shared.seed[i] = world.seed;
        shared.steps[i] = Repeats(done[index]);
        if (step > 0) {
          std::memcpy(shared.action.data() + i * block, world.actions.data() + (step - 1) * block,
                      block);
        }
      }
    }
    if (!any) return;
    for (Worker& worker : workers_) worker.worker->Begin();
    for (Worker& worker : workers_) {
      Await(worker, true);
      const PythonRows& shared = worker.worker->shared();
      for (size_t i = 0; i < shared.command.size(); ++i) {
        if (shared.command[i] == PythonCommand::kStep)
          done[static_cast<size_t>(worker.first) + i] += static_cast<int64_t>(shared.steps[i]);
      }
    }
  }
}

}  // namespace weft
