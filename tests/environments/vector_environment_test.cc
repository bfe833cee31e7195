#include "environments/vector_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>

#include "environments/register_environment.h"
#include "environments/verify/conformance_driver.h"
#include "environments/verify/conformance_vector.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kSeed = 5;

EnvironmentConfig Parse(const std::string& yaml) {
  EnvironmentConfig config;
  ConfigSource::Text(yaml, "test.yaml").Parse(config);
  return config;
}

std::vector<int64_t> AllOf(int64_t count) {
  std::vector<int64_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

// One number for rows [begin, end) of a step.
uint64_t HashOf(const TimeStep& step, int64_t begin, int64_t end) {
  TensorMap leaves;
  for (const auto& [name, leaf] : step.Leaves()) leaves.Set(name, leaf.Slice(begin, end).Clone());
  return Hash(leaves);
}

// Random actions, of each environment from a stream of its own.
class Actors {
 public:
  Actors(const EnvironmentSpec& spec, int64_t environments) : spec_(spec) {
    for (int64_t id = 0; id < environments; ++id)
      rngs_.emplace_back(kSeed, Purpose::kTest, static_cast<uint64_t>(id));
  }
  Tensor Act(std::span<const int64_t> ids) {
    const int64_t agents = spec_.agent_count();
    Tensor action =
        Tensor::Zeros(spec_.action.shape().Prepend(std::ssize(ids) * agents), spec_.action.dtype());
    const size_t bytes = action.bytes() / static_cast<size_t>(action.dim(0));
    for (size_t i = 0; i < ids.size(); ++i) {
      for (size_t agent = 0; agent < static_cast<size_t>(agents); ++agent) {
        spec_.action.Sample(rngs_[static_cast<size_t>(ids[i])],
                            action.raw() + (i * static_cast<size_t>(agents) + agent) * bytes);
      }
    }
    return action;
  }

 private:
  const EnvironmentSpec& spec_;
  std::vector<Rng> rngs_;
};

using Stories = std::vector<std::vector<uint64_t>>;  // of each environment, the steps it showed

Stories BatchStories(const EnvironmentConfig& config, int64_t environments, int steps) {
  const auto batch = MakeBatchEnvironment(config, {.rows = environments, .seed = kSeed});
  Actors actors(batch->spec(), environments);
  TimeStep step = batch->MakeTimeStep();
  Stories stories(static_cast<size_t>(environments));
  const int64_t agents = batch->spec().agent_count();
  for (int t = 0; t <= steps; ++t) {
    if (t == 0) {
      batch->Reset(step);
    } else {
      batch->Step(actors.Act(AllOf(environments)), step);
    }
    for (int64_t id = 0; id < environments; ++id)
      stories[static_cast<size_t>(id)].push_back(HashOf(step, id * agents, (id + 1) * agents));
  }
  return stories;
}

const char* const kConfigs[] = {
    "id: CartPole-v1",
    "{id: Pendulum-v1, time_limit: 9, wrappers: [{name: sticky_actions, probability: 0.5}, "
    "{name: frame_stack, count: 3}]}",
    "{id: simple_tag_v3, time_limit: 7, wrappers: [agent_id]}"};

TEST(VectorEnvironment, TellsOfEachEnvironmentWhatABatchDoes) {
  constexpr int64_t kEnvironments = 5;
  constexpr int kSteps = 60;
  for (const char* yaml : kConfigs) {
    const EnvironmentConfig config = Parse(yaml);
    const Stories expected = BatchStories(config, kEnvironments, kSteps);
    for (const int64_t ready : {1, 2, 5}) {
      for (const int threads : {1, 3}) {
        VectorEnvironment vector(
            config, {.environments = kEnvironments, .seed = kSeed, .threads = threads});
        Actors actors(vector.spec(), kEnvironments);
        VectorStep step = vector.MakeStep(ready);
        Stories stories(kEnvironments);
        std::vector<int64_t> ids(static_cast<size_t>(ready));
        const int64_t agents = vector.spec().agent_count();
        vector.Reset();
        for (int received = 0; received < kSteps * kEnvironments / ready; ++received) {
          vector.Receive(ids, step);
          EXPECT_TRUE(std::ranges::is_sorted(ids));
          for (size_t i = 0; i < ids.size(); ++i) {
            const auto at = static_cast<int64_t>(i);
            stories[static_cast<size_t>(ids[i])].push_back(
                HashOf(step.now, at * agents, (at + 1) * agents));
          }
          vector.Send(ids, actors.Act(ids));
        }
        size_t told = 0;
        for (size_t id = 0; id < stories.size(); ++id) {
          const size_t common = std::min(stories[id].size(), expected[id].size());
          for (size_t t = 0; t < common; ++t)
            ASSERT_EQ(stories[id][t], expected[id][t]) << yaml << " " << id << ", step " << t;
          told += stories[id].size();
        }
        EXPECT_EQ(told, static_cast<size_t>(kSteps * kEnvironments / ready * ready));
      }
    }
  }
}

// Waits in Step with action 1 until it is let go.
class Gate final : public Environment {
 public:
  using Arguments = NoArguments;
  static inline std::mutex mutex;
  static inline std::condition_variable opened;
  static inline bool open = false;

  explicit Gate(const Arguments&) : spec_(std::make_unique<EnvironmentSpec>()) {
    *spec_ = {.id = "Gate-v0",
              .observation = {{.name = "observation", .shape = {1}}},
              .action = Discrete{.n = 2}};
  }
  const EnvironmentSpec& spec() const override { return *spec_; }
  void Reset(Rng&, StepRow out) override {
    Observe(out.observation);
    out.First();
  }
  void Step(ActionRow action, Rng&, StepRow out) override {
    if (action.index() == 1) {
      std::unique_lock lock(mutex);
      opened.wait(lock, [] { return open; });
    }
    Observe(out.observation);
    out.Next(1, false);
  }
  void GetState(std::vector<double>& state) const override { state = {}; }
  void SetState(std::span<const double>) override {}
  void Observe(ObservationRow out) override { *out.Leaf<float>() = 0; }

 private:
  std::unique_ptr<EnvironmentSpec> spec_;
};

TEST(VectorEnvironment, ReturnsTheFirstThatAreReady) {
  Environments().Add("Gate-v0", MakeEnvironmentEntry<Gate>("waits"));
  VectorEnvironment vector(Parse("id: Gate-v0"), {.environments = 3, .threads = 2});
  std::vector<int64_t> all = AllOf(3), two(2), one(1);
  VectorStep step = vector.MakeStep(3), of_two = vector.MakeStep(2), of_one = vector.MakeStep(1);
  vector.Reset();
  vector.Receive(all, step);
  vector.Send(all, Tensor::From<int64_t>({3}, {1, 0, 0}));  // the first of them waits
  vector.Receive(two, of_two);
  EXPECT_THAT(two, ElementsAre(1, 2));
  {
    const std::scoped_lock lock(Gate::mutex);
    Gate::open = true;
  }
  Gate::opened.notify_all();
  vector.Receive(one, of_one);
  EXPECT_THAT(one, ElementsAre(0));
}

TEST(VectorEnvironment, TellsTheSameEpisodesInEveryMode) {
  for (const char* yaml : kConfigs) EXPECT_EQ(ModesAgree(Parse(yaml)), "") << yaml;
}

TEST(VectorEnvironment, SameStepShowsTheEndAndTheBeginning) {
  VectorEnvironment vector(Parse("{id: Pendulum-v1, time_limit: 2}"),
                           {.environments = 2, .autoreset = Autoreset::kSameStep});
  std::vector<int64_t> ids = AllOf(2);
  VectorStep step = vector.MakeStep(2);
  vector.Reset();
  vector.Receive(ids, step);
  const Tensor action = Tensor::Full({2, 1}, 1);
  vector.Send(ids, action);
  vector.Receive(ids, step);
  EXPECT_THAT(step.ended, ElementsAre(0, 0));
  vector.Send(ids, action);
  vector.Receive(ids, step);
  EXPECT_THAT(step.ended, ElementsAre(1, 1));
  EXPECT_THAT(step.last.type.data<uint8_t>(), ElementsAre(2, 2));
  EXPECT_LT(step.last.reward.data<float>()[1], 0);
  EXPECT_EQ(step.last.discount.data<float>()[1], 1);
  EXPECT_THAT(step.now.type.data<uint8_t>(), ElementsAre(0, 0));
  EXPECT_THAT(step.now.reward.data<float>(), ElementsAre(0, 0));
  EXPECT_EQ(step.last.episode_id.data<int64_t>()[1], 0);
  EXPECT_EQ(step.now.episode_id.data<int64_t>()[1], 1);
}

TEST(VectorEnvironment, DisabledWaitsForItsReset) {
  const EnvironmentConfig config = Parse("{id: Pendulum-v1, time_limit: 1}");
  VectorEnvironment vector(config, {.environments = 3, .autoreset = Autoreset::kDisabled});
  std::vector<int64_t> ids = AllOf(3), middle = {1};
  VectorStep step = vector.MakeStep(3), of_one = vector.MakeStep(1);
  const auto message = [&](std::span<const int64_t> to) -> std::string {
    try {
      vector.Send(to, Tensor::Zeros({std::ssize(to), 1}));
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  };
  EXPECT_THAT(message(ids), HasSubstr("environment 0: its episode has ended")) << "not begun";
  vector.Reset();
  EXPECT_THAT(message(middle), HasSubstr("environment 1 is under way"));
  vector.Receive(ids, step);
  EXPECT_EQ(message(ids), "");
  vector.Receive(ids, step);
  EXPECT_THAT(step.now.type.data<uint8_t>(), ElementsAre(2, 2, 2));
  vector.Reset(middle);
  vector.Receive(middle, of_one);
  EXPECT_EQ(message(middle), "");
  vector.Receive(middle, of_one);
  EXPECT_THAT(message(ids), HasSubstr("environment 0: its episode has ended"));
  EXPECT_THROW(vector.Receive(middle, of_one), Error) << "nothing is under way";
}

TEST(VectorEnvironment, GoesOnAsBeforeAfterLoad) {
  for (const Autoreset mode : {Autoreset::kNextStep, Autoreset::kSameStep}) {
    const EnvironmentConfig config = Parse(kConfigs[1]);
    const auto make = [&](uint64_t seed) {
      return std::make_unique<VectorEnvironment>(
          config, VectorOptions{.environments = 3, .seed = seed, .autoreset = mode, .threads = 2});
    };
    const auto vector = make(kSeed), copy = make(kSeed + 1);
    std::vector<int64_t> ids = AllOf(3);
    VectorStep step = vector->MakeStep(3), copied = copy->MakeStep(3);
    Actors actors(vector->spec(), 3);
    vector->Reset();
    copy->Reset();  // which Load forgets
    EXPECT_THROW(vector->Save(), Error);
    for (int t = 0; t < 40; ++t) {
      vector->Receive(ids, step);
      if (t >= 12) {
        copy->Receive(ids, copied);
        EXPECT_EQ(HashOf(step.now, 0, 3), HashOf(copied.now, 0, 3)) << t;
        EXPECT_EQ(step.ended, copied.ended) << t;
      }
      if (t == 11) copy->Load(vector->Save());
      const Tensor action = actors.Act(ids);
      vector->Send(ids, action);
      if (t >= 11) copy->Send(ids, action);
    }
  }
}

TEST(VectorEnvironment, ThrowsWhatAnEnvironmentThrew) {
  VectorEnvironment vector(Parse("id: CartPole-v1"), {.environments = 2, .first = 6});
  std::vector<int64_t> ids = AllOf(2);
  VectorStep step = vector.MakeStep(2);
  vector.Reset();
  vector.Receive(ids, step);
  vector.Send(ids, Tensor::From<int64_t>({2}, {0, 7}));
  try {
    vector.Receive(ids, step);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("CartPole-v1, row 7"));
  }
}

}  // namespace
}  // namespace weft
