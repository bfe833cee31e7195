#include "environments/multi_agent_batch.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/thread_pool.h"

namespace weft {
namespace {

// Of agent rows.
BatchOptions RowOptions(BatchOptions options, const EnvironmentSpec& spec) {
  WEFT_CHECK(!spec.agents.empty()) << spec.id << " names no agents";
  options.rows *= spec.agent_count();
  options.first_row *= spec.agent_count();
  return options;
}

bool Over(std::span<const StepType> types) {
  return std::ranges::all_of(types, [](StepType type) { return type == StepType::kLast; });
}

}  // namespace

MultiAgentBatch::MultiAgentBatch(const Make& make, const BatchOptions& options,
                                 double step_nanoseconds)
    : MultiAgentBatch(make(), make, options, step_nanoseconds) {}

MultiAgentBatch::MultiAgentBatch(std::unique_ptr<MultiAgentEnvironment> first, const Make& make,
                                 const BatchOptions& options, double step_nanoseconds)
    : layout_(first->spec(), RowOptions(options, first->spec())),
      agents_(first->spec().agents.size()),
      step_limit_(spec().time_limit > 0 ? spec().time_limit : std::numeric_limits<int64_t>::max()),
      types_(static_cast<size_t>(rows()), StepType::kLast),
      activity_(options.activity != nullptr ? *options.activity : own_activity_) {
  activity_.Watch(spec().id, layout_.options().first_row, rows(), options.seed);
  for (int64_t world = 0; world < options.rows; ++world) {
    const Rng rng(options.seed, options.purpose, static_cast<uint64_t>(options.first_row + world));
    worlds_.push_back({.environment = world == 0 ? std::move(first) : make(),
                       .progress = {.rng = rng},
                       .reward = std::vector<double>(agents_),
                       .discount = std::vector<double>(agents_),
                       .sum = std::vector<double>(agents_),
                       .absent = std::vector<uint8_t>(agents_)});
  }
  if (const auto* all = spec().action.As<Discrete>()) {
    for (const AgentSpec& agent : spec().agents) {
      const auto* own = agent.action.As<Discrete>();
      WEFT_CHECK(own != nullptr && own->n <= all->n && all->start == 0)
          << spec().id << " gives its agent " << agent.name << " the actions "
          << agent.action.ToString();
      own_limits_.push_back(own->n);
    }
    if (std::ranges::all_of(own_limits_, [&](int64_t n) { return n == all->n; }))
      own_limits_.clear();
  }
  // As in BatchOf.
  constexpr double kClaimNanoseconds = 20000;
  const double step = step_nanoseconds * static_cast<double>(options.action_repeat);
  grain_ = std::max<int64_t>(1, static_cast<int64_t>(kClaimNanoseconds / step));
  inline_ = options.pool == nullptr || options.pool->threads() == 1 || options.rows < 2 * grain_;
}

void MultiAgentBatch::Reset(TimeStep& out) {
  std::ranges::fill(types_, StepType::kLast);
  Run(layout_.Open(out));
}

void MultiAgentBatch::Step(const Tensor& action, TimeStep& out) {
  Run(layout_.Open(action, out));
}

void MultiAgentBatch::Run(const BatchLayout::View& view) {
  auto range = [&](int64_t begin, int64_t end) { StepRange(view, begin, end); };
  const auto worlds = static_cast<int64_t>(worlds_.size());
  if (inline_) return range(0, worlds);
  layout_.options().pool->ParallelForDynamic(worlds, grain_, range);
}

void MultiAgentBatch::StepRange(const BatchLayout::View& view, int64_t begin, int64_t end) {
  const auto agents = static_cast<int64_t>(agents_);
  if (view.action != nullptr) layout_.CheckActions(view, types_, begin * agents, end * agents);
  const auto steps = [this](int64_t of) { return worlds_[static_cast<size_t>(of)].progress.steps; };
  int64_t world = begin;
  bool resets = false;
  const auto name = [&] { return layout_.StepName(world * agents, resets ? 0 : steps(world) + 1); };
  try {
    for (; world < end; ++world) {
      resets = Over(TypesOf(static_cast<size_t>(world)));
      Advance(view, world);
    }
  } catch (Error& error) {
    error.AddContext(name());
    throw;
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kInternal, name() + ": " + error.what());
  }
  const auto steps_of_row = [&](int64_t row) { return steps(row / agents); };
  layout_.Finish(view, begin * agents, end * agents, steps_of_row);
  for (world = begin; world < end; ++world) {
    const std::vector<uint8_t>& absent = worlds_[static_cast<size_t>(world)].absent;
    for (int64_t agent = 0; agent < agents; ++agent) {
      const int64_t row = world * agents + agent;
      if (!absent[static_cast<size_t>(agent)] || view.type[row] != uint8_t(StepType::kLast))
        layout_.CheckBounds(view, row, row + 1, steps_of_row);
    }
  }
}

void MultiAgentBatch::CheckAgentActions(const BatchLayout::View& view, int64_t world) {
  const int64_t first = world * static_cast<int64_t>(agents_);
  for (size_t agent = 0; agent < own_limits_.size(); ++agent) {
    if (TypesOf(static_cast<size_t>(world))[agent] == StepType::kLast) continue;
    const int64_t action = BatchLayout::Action(view, first + static_cast<int64_t>(agent)).index();
    WEFT_CHECK_LT(action, own_limits_[agent])
        << "action of " << spec().agents[agent].name << ", which has "
        << spec().agents[agent].action.ToString();
  }
}

void MultiAgentBatch::Advance(const BatchLayout::View& view, int64_t index) {
  const RowActivity::Busy busy(activity_, index * static_cast<int64_t>(agents_));
  World& world = worlds_[static_cast<size_t>(index)];
  const auto types = TypesOf(static_cast<size_t>(index));
  const int64_t first = index * static_cast<int64_t>(agents_);
  const auto leaves = layout_.Leaves(view, first);
  const AgentRows out{leaves.data(), layout_.leaf_bytes(), world.reward, world.discount, types};
  for (size_t agent = 0; agent < agents_; ++agent)
    world.absent[agent] = types[agent] == StepType::kLast;
  std::ranges::fill(world.reward, 0.0);
  std::ranges::fill(world.discount, 1.0);
  if (Over(types)) {
    world.environment->Reset(world.progress.rng, out);
    WEFT_CHECK(!Over(types)) << spec().id << " began an episode without agents";
    ++world.progress.episode;
    world.progress.steps = 0;
  } else {
    CheckAgentActions(view, index);
    StepWorld(view, index, out);
  }
  for (size_t agent = 0; agent < agents_; ++agent) {
    const auto row = first + static_cast<int64_t>(agent);
    const bool absent = world.absent[agent] && types[agent] == StepType::kLast;
    if (absent) {
      for (size_t leaf = 0; leaf < spec().observation.size(); ++leaf) {
        std::memset(out.Leaf<std::byte>(static_cast<int64_t>(agent), leaf), 0,
                    static_cast<size_t>(out.leaf_bytes[leaf]));
      }
    }
    view.reward[row] = absent ? 0 : static_cast<float>(world.reward[agent]);
    view.discount[row] = absent ? 1 : static_cast<float>(world.discount[agent]);
    view.type[row] = static_cast<uint8_t>(types[agent]);
    view.episode_id[row] = world.progress.episode;
  }
}

void MultiAgentBatch::StepWorld(const BatchLayout::View& view, int64_t index, AgentRows out) {
  World& world = worlds_[static_cast<size_t>(index)];
  const AgentActions actions(
      view.action + index * static_cast<int64_t>(agents_) * view.action_bytes, view.action_bytes,
      view.action_dtype);
  const auto step = [&] {
    world.environment->Step(actions, world.progress.rng, out);
    if (++world.progress.steps >= step_limit_) std::ranges::fill(out.type, StepType::kLast);
  };
  step();
  const int64_t repeats = layout_.options().action_repeat;
  if (repeats == 1) return;
  // An agent that left keeps what it got and how it ended.
  world.sum = world.reward;
  for (int64_t repeat = 1; repeat < repeats && !Over(out.type); ++repeat) {
    std::ranges::fill(world.reward, 0.0);
    step();
    for (size_t agent = 0; agent < agents_; ++agent) world.sum[agent] += world.reward[agent];
  }
  world.reward = world.sum;
}

std::vector<StepType> MultiAgentBatch::WorldTypes() const {
  std::vector<StepType> types;
  for (size_t first = 0; first < types_.size(); first += agents_) {
    types.push_back(Over(std::span(types_).subspan(first, agents_)) ? StepType::kLast
                                                                    : StepType::kMid);
  }
  return types;
}

TensorMap MultiAgentBatch::Save() const {
  return layout_.SaveRows(
      WorldTypes(), [&](size_t world) -> const RowProgress& { return worlds_[world].progress; },
      [&](size_t world, Writer& out) {
        out.Write(std::span(types_).subspan(world * agents_, agents_));
        worlds_[world].environment->Save(out);
      });
}

void MultiAgentBatch::Load(const TensorMap& state) {
  std::vector<StepType> types(worlds_.size());
  layout_.LoadRows(
      state, types, [&](size_t world) -> RowProgress& { return worlds_[world].progress; },
      [&](size_t world, Reader& in) {
        const auto saved = in.ReadVector<StepType>();
        const auto bad = [](StepType type) { return type > StepType::kLast; };
        if (saved.size() != agents_ || std::ranges::any_of(saved, bad)) {
          throw Error(ErrorCode::kCorrupt, "the saved state of " + spec().id + " is not that of " +
                                               std::to_string(agents_) + " agents");
        }
        std::ranges::copy(saved, TypesOf(world).begin());
        worlds_[world].environment->Load(in);
      });
}

}  // namespace weft
