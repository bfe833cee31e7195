#include "environments/verify/conformance_vector.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "environments/vector_environment.h"
#include "environments/verify/conformance_driver.h"

namespace weft {
namespace {

constexpr int64_t kEnvironments = 2;
constexpr size_t kSteps = 50;  // that are compared of each environment, resets included

using Stories = std::vector<std::vector<uint64_t>>;  // of each environment, the steps it showed

// One environment's rows of a step.
TimeStep Part(const TimeStep& step, int64_t begin, int64_t end) {
  TimeStep part{.observation = {},
                .reward = step.reward.Slice(begin, end),
                .discount = step.discount.Slice(begin, end),
                .type = step.type.Slice(begin, end),
                .episode_id = step.episode_id.Slice(begin, end)};
  for (const auto& [name, leaf] : step.observation)
    part.observation.Set(name, leaf.Slice(begin, end));
  return part;
}

bool Over(const TimeStep& step) {
  return std::ranges::all_of(step.type.data<uint8_t>(), [](uint8_t type) {
    return type == static_cast<uint8_t>(StepType::kLast);
  });
}

// Random actions, of each row from a stream of its own. Those that a reset ignores are zeros and
// draw nothing, so that modes with and without such actions take the same.
class Actor {
 public:
  explicit Actor(const EnvironmentSpec& spec) : space_(spec.action), agents_(spec.agent_count()) {
    for (int64_t row = 0; row < kEnvironments * agents_; ++row)
      rngs_.emplace_back(kConformanceSeed, Purpose::kTest, static_cast<uint64_t>(row));
  }
  Tensor Act(int64_t environment, const TimeStep& step) {
    Tensor action = Tensor::Zeros(space_.shape().Prepend(agents_), space_.dtype());
    const auto first = static_cast<size_t>(environment * agents_);
    if (!Over(step)) {
      SampleActions(space_, step, std::span(rngs_).subspan(first, static_cast<size_t>(agents_)),
                    action);
    }
    return action;
  }

 private:
  const Space space_;
  const int64_t agents_;
  std::vector<Rng> rngs_;
};

Stories InABatch(const EnvironmentConfig& config) {
  const auto batch =
      MakeBatchEnvironment(config, {.rows = kEnvironments, .seed = kConformanceSeed});
  const int64_t agents = batch->spec().agent_count();
  Actor actor(batch->spec());
  TimeStep step = batch->MakeTimeStep();
  const Space& space = batch->spec().action;
  Tensor action = Tensor::Zeros(space.shape().Prepend(batch->rows()), space.dtype());
  Stories stories(kEnvironments);
  batch->Reset(step);
  for (size_t t = 0; t < kSteps; ++t) {
    for (int64_t id = 0; id < kEnvironments; ++id) {
      const TimeStep part = Part(step, id * agents, (id + 1) * agents);
      stories[static_cast<size_t>(id)].push_back(HashOf(part));
      action.Slice(id * agents, (id + 1) * agents).CopyFrom(actor.Act(id, part));
    }
    batch->Step(action, step);
  }
  return stories;
}

Stories OneByOne(const EnvironmentConfig& config, Autoreset mode) {
  VectorEnvironment vector(
      config,
      {.environments = kEnvironments, .seed = kConformanceSeed, .autoreset = mode, .threads = 2});
  Actor actor(vector.spec());
  VectorStep step = vector.MakeStep(1);
  Stories stories(kEnvironments);
  std::vector<int64_t> id(1);
  vector.Reset();
  for (int64_t running = kEnvironments; running > 0;) {
    vector.Receive(id, step);
    auto& story = stories[static_cast<size_t>(id[0])];
    if (step.ended[0]) story.push_back(HashOf(step.last));
    story.push_back(HashOf(step.now));
    if (story.size() >= kSteps) {
      story.resize(kSteps);
      --running;
    } else if (mode == Autoreset::kDisabled && Over(step.now)) {
      vector.Reset(id);
    } else {
      vector.Send(id, actor.Act(id[0], step.now));
    }
  }
  return stories;
}

}  // namespace

std::string ModesAgree(const EnvironmentConfig& config) {
  const Stories expected = InABatch(config);
  constexpr std::pair<Autoreset, const char*> kModes[] = {{Autoreset::kNextStep, "kNextStep"},
                                                          {Autoreset::kSameStep, "kSameStep"},
                                                          {Autoreset::kDisabled, "kDisabled"}};
  for (const auto& [mode, name] : kModes) {
    const Stories stories = OneByOne(config, mode);
    for (size_t id = 0; id < kEnvironments; ++id) {
      const auto [a, b] = std::ranges::mismatch(stories[id], expected[id]);
      if (a == stories[id].end()) continue;
      return "step " + std::to_string(a - stories[id].begin()) + " of environment " +
             std::to_string(id) + " differs from a batch in the mode " + name;
    }
  }
  return "";
}

}  // namespace weft
