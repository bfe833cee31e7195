#include "environments/verify/conformance.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <sstream>
#include <utility>

#include "base/check.h"
#include "base/thread_pool.h"
#include "environments/environment_row.h"
#include "environments/multi_agent_row.h"
#include "environments/verify/conformance_agents.h"
#include "environments/verify/conformance_driver.h"
#include "environments/verify/conformance_vector.h"

namespace weft {
namespace {

// Calls test with what makes instances with default arguments: EnvironmentRow or MultiAgentRow.
template <class Test>
std::string OnInstances(const EnvironmentEntry& entry, Test test) {
  const auto arguments = entry.make_arguments();
  if (entry.make_multi_agent)
    return test([&] { return MultiAgentRow(entry.make_multi_agent(*arguments)); });
  return test([&] { return EnvironmentRow(entry.make(*arguments)); });
}

std::string SpecIsSound(const std::string& id, const EnvironmentSpec& spec) {
  if (spec.id != id) return "spec().id is " + spec.id;
  std::set<std::string> names;
  for (const Leaf& leaf : spec.observation) {
    if (!names.insert(leaf.name).second) return "two leaves are called " + leaf.name;
    const auto elements = static_cast<size_t>(leaf.shape.elements());
    for (const auto* bound : {&leaf.low, &leaf.high}) {
      if (bound->size() > 1 && bound->size() != elements) return "bounds of " + leaf.name;
    }
  }
  if (const std::string problem = AgentsAreSound(spec); !problem.empty()) return problem;
  const auto* box = spec.action.As<Box>();
  if (box == nullptr) return spec.action.shape().elements() > 0 ? "" : "the action is empty";
  if (box->low.empty() || box->low.size() != box->high.size()) return "bounds of the action";
  for (size_t i = 0; i < box->low.size(); ++i) {
    if (!(box->low[i] < box->high[i])) return "bounds of the action: " + spec.action.ToString();
  }
  return "";
}

// The first value of a floating or integer leaf that lies outside its bounds (of floats: rounded to
// f32, as the values are).
template <class T>
std::string OutOfBounds(const Leaf& leaf, std::span<const T> values) {
  const auto elements = static_cast<size_t>(leaf.shape.elements());
  for (size_t i = 0; i < values.size(); ++i) {
    const auto bound = [&](const std::vector<double>& bounds) {
      return static_cast<T>(bounds.size() == 1 ? bounds[0] : bounds[i % elements]);
    };
    if (values[i] < bound(leaf.low) || values[i] > bound(leaf.high)) {
      std::ostringstream out;
      out << leaf.name << "[" << i % elements << "] is " << values[i] << ", outside "
          << bound(leaf.low) << " .. " << bound(leaf.high);
      return out.str();
    }
  }
  return "";
}

std::string OutOfBounds(const EnvironmentSpec& spec, const TensorMap& observation) {
  for (const Leaf& leaf : spec.observation) {
    const Tensor& tensor = observation.At(leaf.name);
    if (leaf.nominal || leaf.low.empty() || leaf.high.empty()) continue;
    std::string problem;
    if (tensor.dtype() == DType::kFloat32) {
      problem = OutOfBounds<float>(leaf, tensor.data<float>());
    } else if (tensor.dtype() == DType::kInt64) {
      problem = OutOfBounds<int64_t>(leaf, tensor.data<int64_t>());
    }
    if (!problem.empty()) return problem;
  }
  return "";
}

// Rewards, discounts, types and episode numbers of a random walk follow dm_env, and of several
// agents multi_agent.h; observations keep their bounds.
std::string StepsAreSound(ConformanceDriver& driver, int steps) {
  const int64_t rows = driver.batch().rows(), agents = driver.spec().agent_count();
  driver.Reset();
  std::vector<StepType> before(static_cast<size_t>(rows), StepType::kLast);
  std::vector<int64_t> episode(static_cast<size_t>(rows), -1);
  for (int t = 0; t <= steps; ++t) {
    if (t > 0) driver.Act();
    if (const std::string problem = OutOfBounds(driver.spec(), driver.step().observation);
        !problem.empty()) {
      return problem;
    }
    const std::vector<StepType> old = before;
    for (int64_t row = 0; row < rows; ++row) {
      const auto i = static_cast<size_t>(row);
      const auto world = std::span(old).subspan(static_cast<size_t>(row / agents * agents),
                                                static_cast<size_t>(agents));
      const bool begins =
          std::ranges::all_of(world, [](StepType last) { return last == StepType::kLast; });
      const StepType type = driver.type(row);
      const float reward = driver.step().reward.data<float>()[i];
      const float discount = driver.step().discount.data<float>()[i];
      const int64_t id = driver.step().episode_id.data<int64_t>()[i];
      const bool first = type == StepType::kFirst;
      if (first && before[i] != StepType::kLast) return "kFirst does not follow kLast";
      if (!first && before[i] == StepType::kLast) {
        if (agents == 1) return "kFirst does not follow kLast";
        if (type != StepType::kLast || reward != 0 || discount != 1) return "an absent agent acts";
      }
      if (first && (reward != 0 || discount != 1)) return "kFirst with reward or discount";
      if (discount != 1 && !(discount == 0 && type == StepType::kLast))
        return "discount inside an episode";
      if (id != episode[i] + (begins ? 1 : 0)) return "episode numbers skip";
      before[i] = type;
      episode[i] = id;
    }
  }
  return "";
}

// Environments that draw random numbers at reset must begin in different states.
std::string ResetsSpread(const EnvironmentEntry& entry) {
  return OnInstances(entry, [](const auto& make) -> std::string {
    auto row = make();
    std::set<std::vector<double>> observations;
    bool random = false;
    for (uint64_t index = 0; index < 32; ++index) {
      Rng rng(kConformanceSeed, Purpose::kEnvironment, index);
      row.Reset(rng);
      random |= rng.state().position > 0;
      observations.insert(row.Observation());
    }
    return random && observations.size() < 2 ? "32 random resets give one observation" : "";
  });
}

// Of environments elsewhere it is not known whether they draw anything at a reset.
std::string OneFirstObservation(const EnvironmentEntry& entry) {
  constexpr int64_t kRows = 32;
  ConformanceDriver driver(entry, {.rows = kRows, .seed = kConformanceSeed});
  driver.Reset();
  const int64_t agents = driver.spec().agent_count();
  for (const auto& [name, leaf] : driver.step().observation) {
    const Tensor first = leaf.Slice(0, agents);
    for (int64_t i = 1; i < kRows; ++i) {
      const Tensor other = leaf.Slice(i * agents, (i + 1) * agents);
      if (std::memcmp(first.raw(), other.raw(), first.bytes()) != 0) return "";
    }
  }
  return "32 seeds give one first observation: is the seed of reset used?";
}

std::string StateRoundTrips(const EnvironmentEntry& entry) {
  return OnInstances(entry, [](const auto& make) -> std::string {
    auto row = make(), other = make();
    Rng rng(kConformanceSeed, Purpose::kEnvironment);
    row.Reset(rng);
    const std::vector<double> state = row.State();
    other.SetState(state);
    if (other.State() != state) return "GetState after SetState differs";
    return other.Observation() == row.Observation()
               ? ""
               : "Observe after SetState differs from the reset";
  });
}

std::string TimeLimitIsExact(const EnvironmentEntry& entry) {
  constexpr int64_t kLimit = 7;
  ConformanceDriver driver(entry, {.rows = 4, .seed = kConformanceSeed, .time_limit = kLimit});
  driver.Reset();
  const int64_t rows = driver.batch().rows();
  std::vector<int64_t> steps(static_cast<size_t>(rows));
  std::vector<StepType> before(static_cast<size_t>(rows), StepType::kFirst);
  for (int t = 0; t < 40; ++t) {
    driver.Act();
    for (int64_t row = 0; row < rows; ++row) {
      int64_t& count = steps[static_cast<size_t>(row)];
      const StepType type = driver.type(row);
      const StepType last = std::exchange(before[static_cast<size_t>(row)], type);
      if (last == StepType::kLast && type == StepType::kLast) continue;  // an absent agent
      count = type == StepType::kFirst ? 0 : count + 1;
      if (count > kLimit || (count == kLimit && type != StepType::kLast))
        return "an episode runs on";
      const float discount = driver.step().discount.data<float>()[static_cast<size_t>(row)];
      // Of environments elsewhere it is not known whether they have a limit of their own.
      if (entry.make && type == StepType::kLast && count < kLimit && discount == 1)
        return "truncated too early";
    }
  }
  return "";
}

std::string LoadContinues(const EnvironmentEntry& entry) {
  ConformanceDriver driver(entry, {.rows = 3, .seed = kConformanceSeed});
  driver.Reset();
  for (int i = 0; i < 5; ++i) driver.Act();
  ConformanceDriver copy(entry, {.rows = 3, .seed = kConformanceSeed + 1}, kConformanceSeed + 1);
  copy.Reset();
  copy.batch().Load(driver.batch().Save());
  Rng rng(kConformanceSeed, Purpose::kTest, 2);
  const Space& space = driver.spec().action;
  Tensor action = Tensor::Zeros(space.shape().Prepend(driver.batch().rows()), space.dtype());
  TimeStep step = driver.step(), copy_step = copy.batch().MakeTimeStep();
  for (int i = 0; i < 60; ++i) {
    SampleActions(space, step, {&rng, 1}, action);
    driver.batch().Step(action, step);
    copy.batch().Step(action, copy_step);
    if (HashOf(step) != HashOf(copy_step))
      return "step " + std::to_string(i) + " after Load differs";
  }
  return "";
}

// As many rows as it takes for the batch to use its pool, going by what a step costs.
int64_t ParallelRows(const EnvironmentEntry& entry) {
  ConformanceDriver driver(entry, {.rows = 4, .seed = kConformanceSeed});
  driver.Reset();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) driver.Act();
  const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
  const double step = spent.count() / 80;
  return step < 0.5 ? 6000 : step < 2 ? 400 : 6;
}

std::string ThreadsDoNotMatter(const EnvironmentEntry& entry) {
  const int64_t rows = ParallelRows(entry);
  const int steps = rows > 1000 ? 10 : 30;
  std::vector<uint64_t> hashes;
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    ConformanceDriver driver(entry, {.rows = rows, .seed = kConformanceSeed, .pool = &pool});
    driver.Reset();
    hashes.push_back(driver.Run(steps));
  }
  return hashes[1] == hashes[0] && hashes[2] == hashes[0] ? "" : "2 or 3 threads differ from one";
}

// Row 2 of a batch of three against the environment itself, stepped by hand with the same random
// stream.
std::string RowsAreAlone(const EnvironmentEntry& entry) {
  if (entry.make_multi_agent) return WorldsAreAlone(entry);
  ConformanceDriver driver(entry, {.rows = 3, .seed = kConformanceSeed, .time_limit = 0});
  EnvironmentRow alone(entry.make(*entry.make_arguments()));
  const EnvironmentSpec& spec = alone.spec();
  if (spec.action.As<MultiDiscrete>() != nullptr)
    return "";  // may start anywhere: the batch shifts it
  Rng rng(kConformanceSeed, Purpose::kEnvironment, 2);
  driver.Reset();
  alone.Reset(rng);
  for (int t = 0; t <= 60; ++t) {
    const std::vector<double> all = alone.Observation();
    std::vector<double> observed, expected;
    auto next = all.begin();
    for (const auto& [name, tensor] : driver.step().observation) {
      const Tensor row = tensor.Row(2);
      const auto leaf = next;
      next += row.elements();
      // Batches complete the mask of an end.
      if (name.text() == "action_mask" && alone.type() == StepType::kLast) continue;
      for (int64_t i = 0; i < row.elements(); ++i) {
        observed.push_back(row.Reshape({row.elements()}).Row(i).Item());
        expected.push_back(static_cast<float>(leaf[i]));
      }
    }
    const float reward = driver.step().reward.data<float>()[2];
    if (observed != expected || reward != static_cast<float>(alone.reward()) ||
        driver.type(2) != alone.type()) {
      return "step " + std::to_string(t) + " differs from the environment alone";
    }
    driver.Act();
    if (alone.type() == StepType::kLast) {
      alone.Reset(rng);
    } else {
      Tensor action = driver.action().Row(2).Clone();
      if (const auto* discrete = spec.action.As<Discrete>())
        action.data<int64_t>()[0] += discrete->start;
      alone.Step({action.raw(), action.dtype()}, rng);
    }
  }
  return "";
}

// Row 2 of a batch of three against itself alone in a batch, under the same actions; and a batch
// shared by other numbers of workers.
std::string PartsDoNotMatter(const EnvironmentEntry& entry) {
  ConformanceDriver driver(entry, {.rows = 3, .seed = kConformanceSeed});
  const auto alone = entry.make_batch(*entry.make_arguments(),
                                      {.rows = 1, .first_row = 2, .seed = kConformanceSeed});
  const int64_t first = 2 * driver.spec().agent_count(), end = driver.batch().rows();
  TimeStep step = alone->MakeTimeStep();
  driver.Reset();
  alone->Reset(step);
  for (int t = 0; t <= 60; ++t) {
    const TensorMap together = driver.step().Leaves();
    for (const auto& [name, leaf] : step.Leaves()) {
      const Tensor mine = together.At(name.text()).Slice(first, end);
      if (std::memcmp(mine.raw(), leaf.raw(), leaf.bytes()) != 0)
        return "step " + std::to_string(t) + " differs from the environment alone";
    }
    driver.Act();
    alone->Step(driver.action().Slice(first, end), step);
  }
  return "";
}

std::string WorkersDoNotMatter(const EnvironmentEntry& entry) {
  std::vector<uint64_t> hashes;
  for (const char* workers : {"workers: 1", "workers: 3"}) {
    const auto arguments = entry.make_arguments();
    ConfigSource::Text(workers, "conformance").Parse(*arguments);
    ConformanceDriver driver(entry.make_batch(*arguments, {.rows = 3, .seed = kConformanceSeed}));
    driver.Reset();
    hashes.push_back(driver.Run(60));
  }
  return hashes[0] == hashes[1] ? "" : "one worker and three differ";
}

std::string SeedsReplay(const EnvironmentEntry& entry) {
  std::vector<uint64_t> hashes;
  for (int run = 0; run < 2; ++run) {
    ConformanceDriver driver(entry, {.rows = 3, .seed = kConformanceSeed});
    driver.Reset();
    hashes.push_back(driver.Run(60));
  }
  return hashes[0] == hashes[1] ? "" : "the same seed and actions differ";
}

std::string StepsAllocateNothing(const EnvironmentEntry& entry,
                                 const std::function<int64_t()>& allocations) {
  ConformanceDriver driver(entry, {.rows = 3, .seed = kConformanceSeed, .time_limit = 10});
  driver.Reset();
  for (int i = 0; i < 30; ++i) driver.Act();  // resets and steps have been seen
  const int64_t before = allocations();
  for (int i = 0; i < 30; ++i) driver.Act();
  const int64_t made = allocations() - before;
  return made == 0 ? "" : std::to_string(made) + " allocations in 30 steps";
}

}  // namespace

std::vector<ConformanceCheck> CheckConformance(const std::string& id,
                                               const std::function<int64_t()>& allocations) {
  const EnvironmentEntry entry = FindEnvironment(id);
  std::vector<ConformanceCheck> checks;
  const auto check = [&](const char* claim, const auto& test) {
    std::string problem;
    try {
      problem = test();
    } catch (const Error& error) {
      problem = error.message();
    }
    checks.push_back({claim, problem});
  };
  const bool elsewhere = !entry.make && !entry.make_multi_agent;
  check("the spec is sound", [&] { return SpecIsSound(id, entry.Spec(*entry.make_arguments())); });
  check("steps follow the contract and observations keep their bounds", [&] {
    ConformanceDriver driver(entry, {.rows = 4, .seed = kConformanceSeed});
    return StepsAreSound(driver, 200);
  });
  if (elsewhere) {
    std::string remark;
    check("resets spread", [&] { return remark = OneFirstObservation(entry), ""; });
    checks.back().remark = remark;
  } else {
    check("resets spread", [&] { return ResetsSpread(entry); });
    check("states can be read and set", [&] { return StateRoundTrips(entry); });
  }
  check("a seed replays", [&] { return SeedsReplay(entry); });
  check("the time limit is exact", [&] { return TimeLimitIsExact(entry); });
  check("a saved state continues bit for bit", [&] { return LoadContinues(entry); });
  check("a row does not depend on its batch",
        [&] { return elsewhere ? PartsDoNotMatter(entry) : RowsAreAlone(entry); });
  if (elsewhere) {
    check("results do not depend on workers", [&] { return WorkersDoNotMatter(entry); });
  } else {
    check("results do not depend on threads", [&] { return ThreadsDoNotMatter(entry); });
  }
  check("stepped each for itself, in every autoreset mode, it does the same", [&] {
    EnvironmentConfig config;
    config.SetId(id);
    config.time_limit = 20;
    return ModesAgree(config);
  });
  if (allocations && !elsewhere)
    check("a step allocates nothing", [&] { return StepsAllocateNothing(entry, allocations); });
  return checks;
}

}  // namespace weft
