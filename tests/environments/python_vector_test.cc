// Several agents and vector environments that live in Python. Needs an interpreter with pyzmq,
// numpy and gymnasium in WEFT_PYTHON; the comparison with MPE2 needs mpe2, too.
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "environments/environment_config.h"
#include "environments/multi_agent_row.h"
#include "environments/verify/conformance_driver.h"
#include "tests/base/temporary_folder.h"

namespace weft {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint8_t kFirst = 0, kMid = 1, kLast = 2;

class PythonVector : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("WEFT_PYTHON") == nullptr) {
      GTEST_SKIP() << "WEFT_PYTHON names no interpreter with pyzmq, numpy and gymnasium";
    }
    setenv("PYTHONPATH", "tests/data", 1);
  }
};
using PythonAgents = PythonVector;

EnvironmentConfig Config(const std::string& target, const std::string& more = "") {
  EnvironmentConfig config;
  ConfigSource::Text("{python: '" + target + "'" + (more.empty() ? "" : ", " + more) + "}", "test")
      .Parse(config);
  return config;
}

std::unique_ptr<BatchEnvironment> Make(const std::string& name, const BatchOptions& options,
                                       const std::string& more = "") {
  return MakeBatchEnvironment(Config("python_environments:" + name, more), options);
}

Tensor Actions(const std::vector<int64_t>& actions) {
  return Tensor::From<int64_t>({std::ssize(actions)}, actions);
}

// What `steps` steps of the same actions show.
std::vector<uint64_t> Trace(BatchEnvironment& batch, TimeStep& out, int steps) {
  std::vector<uint64_t> trace;
  for (int t = 0; t < steps; ++t) {
    Tensor action = Tensor::Zeros({batch.rows()}, DType::kInt64);
    int64_t next = t;
    for (int64_t& value : action.data<int64_t>()) value = next++ % 2;
    batch.Step(action, out);
    trace.push_back(HashOf(out));
  }
  return trace;
}

std::string MessageOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.message();
  } catch (const ConfigProblem& problem) {
    return problem.key() + ": " + problem.reason();
  }
  return "";
}

// A state of simple_spread_v3 with these positions, velocities and landmarks, each x, y.
std::vector<double> SpreadState(const MultiAgentRow& row, const std::vector<double>& positions,
                                const std::vector<double>& velocities,
                                const std::vector<double>& landmarks) {
  std::vector<double> state = row.State();
  std::ranges::copy(positions, state.begin());
  std::ranges::copy(velocities, state.begin() + std::ssize(positions));
  // Behind them a goal of each agent and the key.
  const int64_t behind = std::ssize(positions) / 2 + 1;
  std::ranges::copy(landmarks, state.end() - behind - std::ssize(landmarks));
  return state;
}

TEST_F(PythonAgents, HaveARowEachAsWideAsTheWidest) {
  const EnvironmentConfig config = Config("python_environments:Relay", "rows: 4");
  const EnvironmentSpec spec = config.Spec();
  EXPECT_EQ(config.AgentRows(), 12);
  ASSERT_EQ(spec.agents.size(), 3u);
  EXPECT_EQ(spec.agents[2].name, "anchor_0");
  EXPECT_EQ(spec.agents[2].observation_size, 2);
  EXPECT_EQ(spec.agents[0].action.ToString(), "Discrete(2)");
  EXPECT_EQ(spec.action.ToString(), "Discrete(3)");
  EXPECT_EQ(spec.leaf("observation").shape, Shape({3}));
  EXPECT_EQ(spec.leaf("action_mask").shape, Shape({3})) << "the first runner has fewer actions";
}

TEST_F(PythonAgents, ComeAndLeaveAndTheLastOneEndsTheEpisode) {
  const auto batch = Make("Relay", {});
  TimeStep out = batch->MakeTimeStep();
  const auto type = out.type.data<uint8_t>();
  const auto reward = out.reward.data<float>(), discount = out.discount.data<float>();
  const auto mask = out.observation.At("action_mask").data<uint8_t>();
  const auto seen = [&](size_t agent) {
    const auto all = out.observation.At("observation").data<float>();
    return std::vector<float>{all[3 * agent], all[3 * agent + 2]};
  };
  batch->Reset(out);
  EXPECT_THAT(type, ElementsAre(kFirst, kFirst, kLast));
  EXPECT_THAT(mask, ElementsAre(1, 1, 0, 1, 1, 1, 1, 1, 1)) << "an absent agent's is completed";
  EXPECT_THAT(seen(0), ElementsAre(0, 7));
  EXPECT_THAT(seen(2), ElementsAre(0, 0));
  batch->Step(Actions({1, 2, -9}), out);  // the anchor comes; its action was ignored
  EXPECT_THAT(type, ElementsAre(kMid, kMid, kFirst));
  EXPECT_THAT(reward, ElementsAre(1, 2, 0));
  EXPECT_THAT(seen(2), ElementsAre(1, 0)) << "its observation is shorter";
  batch->Step(Actions({1, 2, 1}), out);  // runner 0 leaves
  EXPECT_THAT(type, ElementsAre(kLast, kMid, kMid));
  EXPECT_THAT(reward, ElementsAre(1, 2, 6)) << "the anchor's actions start at 5";
  EXPECT_THAT(discount, ElementsAre(0, 1, 1));
  batch->Step(Actions({-77, 1, 1}), out);  // runner 1 leaves, cut off
  EXPECT_THAT(type, ElementsAre(kLast, kLast, kMid));
  EXPECT_THAT(reward, ElementsAre(0, 1, 6));
  EXPECT_THAT(discount, ElementsAre(1, 1, 1));
  EXPECT_THAT(seen(0), ElementsAre(0, 0));
  batch->Step(Actions({0, 0, 0}), out);
  EXPECT_THAT(type, ElementsAre(kLast, kLast, kLast));
  EXPECT_EQ(discount[2], 0);
  EXPECT_THAT(out.episode_id.data<int64_t>(), ElementsAre(0, 0, 0));
  batch->Step(Actions({0, 0, 0}), out);
  EXPECT_THAT(type, ElementsAre(kFirst, kFirst, kLast));
  EXPECT_THAT(out.episode_id.data<int64_t>(), ElementsAre(1, 1, 1));
}

TEST_F(PythonAgents, RepeatActionsUntilSomebodyComesOrAllHaveLeft) {
  const auto batch = Make("Relay", {}, "wrappers: [{name: action_repeat, count: 5}]");
  TimeStep out = batch->MakeTimeStep();
  batch->Reset(out);
  batch->Step(Actions({1, 1, 0}), out);
  EXPECT_THAT(out.type.data<uint8_t>(), ElementsAre(kMid, kMid, kFirst)) << "after one step";
  batch->Step(Actions({1, 1, 0}), out);  // steps 2, 3 and 4
  EXPECT_THAT(out.type.data<uint8_t>(), ElementsAre(kLast, kLast, kLast));
  EXPECT_THAT(out.reward.data<float>(), ElementsAre(1, 2, 15));
  EXPECT_THAT(out.discount.data<float>(), ElementsAre(0, 1, 0));
}

TEST_F(PythonAgents, AreTruncatedByTheTimeLimit) {
  const auto batch = Make("Relay", {}, "time_limit: 2");
  TimeStep out = batch->MakeTimeStep();
  batch->Reset(out);
  batch->Step(Actions({1, 1, 0}), out);
  batch->Step(Actions({1, 1, 0}), out);
  EXPECT_THAT(out.type.data<uint8_t>(), ElementsAre(kLast, kLast, kLast));
  EXPECT_THAT(out.discount.data<float>(), ElementsAre(0, 1, 1)) << "the first ended by itself";
}

TEST_F(PythonAgents, DependNeitherOnWorkersNorOnTheSplitAndGoOnAfterLoad) {
  const auto one = Make("Relay", {.rows = 3, .seed = 5}, "arguments: {workers: 1}");
  const auto three = Make("Relay", {.rows = 3, .seed = 5}, "arguments: {workers: 3}");
  const auto last = Make("Relay", {.rows = 1, .first_row = 2, .seed = 5});
  TimeStep a = one->MakeTimeStep(), b = three->MakeTimeStep(), c = last->MakeTimeStep();
  one->Reset(a);
  three->Reset(b);
  last->Reset(c);
  EXPECT_EQ(Trace(*one, a, 7), Trace(*three, b, 7));
  Trace(*last, c, 7);
  EXPECT_EQ(a.observation.At("observation").Row(7).data<float>()[1],
            c.observation.At("observation").Row(1).data<float>()[1]);
  const auto again = Make("Relay", {.rows = 3, .seed = 9});
  again->Load(one->Save());
  EXPECT_EQ(Trace(*again, b, 12), Trace(*one, a, 12));
}

TEST_F(PythonAgents, NameAgentAndFieldOfWhatTheyBreak) {
  const auto message = [](const std::string& fault) {
    const auto batch =
        Make("Relay(fault=\"" + fault + "\")", {.rows = 2}, "arguments: {workers: 1}");
    TimeStep out = batch->MakeTimeStep();
    return MessageOf([&] {
      batch->Reset(out);
      Trace(*batch, out, 3);
    });
  };
  EXPECT_THAT(message("bounds"), AllOf(HasSubstr("row 2 (anchor_0 of environment 0"),
                                       HasSubstr("step 2: observation[1] is 10")));
  EXPECT_THAT(message("forgets"),
              AllOf(HasSubstr("step 2"), HasSubstr("gave runner_1"), HasSubstr("no reward")));
  const auto batch = Make("Relay", {});
  TimeStep out = batch->MakeTimeStep();
  batch->Reset(out);
  EXPECT_THAT(MessageOf([&] {
                batch->Step(Actions({2, 0, 0}), out);
              }),
              HasSubstr("the action of runner_0, which has 2, is 2"));
}

TEST_F(PythonAgents, OfALostProcessAreTruncatedWhereTheyStood) {
  const auto batch = Make("Relay(fault=\"exit\")", {}, "arguments: {workers: 1}");
  TimeStep out = batch->MakeTimeStep();
  batch->Reset(out);
  Trace(*batch, out, 2);
  EXPECT_THAT(out.type.data<uint8_t>(), ElementsAre(kLast, kMid, kMid));
  batch->Step(Actions({0, 1, 1}), out);
  EXPECT_THAT(out.type.data<uint8_t>(), ElementsAre(kLast, kLast, kLast));
  EXPECT_THAT(out.discount.data<float>(), ElementsAre(1, 1, 1));
  EXPECT_EQ(out.observation.At("observation").Row(1).data<float>()[0], 2);
  EXPECT_EQ(out.observation.At("observation").Row(0).data<float>()[2], 0) << "had left before";
  batch->Step(Actions({0, 1, 1}), out);
  EXPECT_THAT(out.type.data<uint8_t>(), ElementsAre(kFirst, kFirst, kLast));
}

// MPE2's simple_spread through Python against weft's own: observations tell the state, from which
// both make the same step.
TEST_F(PythonAgents, StepMpe2sSimpleSpreadAsWeftsOwn) {
  constexpr int64_t kAgents = 3, kWidth = 18;
  std::unique_ptr<BatchEnvironment> batch;
  try {
    batch = MakeBatchEnvironment(Config("mpe2.simple_spread_v3:parallel_env(N=3)"), {.seed = 4});
  } catch (const Error& error) {
    if (error.message().find("no module mpe2") == std::string::npos) throw;
    GTEST_SKIP() << "WEFT_PYTHON has no mpe2";
  }
  const EnvironmentEntry& entry = Environments().At("simple_spread_v3");
  MultiAgentRow own(entry.make_multi_agent(*entry.make_arguments()));
  const EnvironmentSpec& spec = batch->spec();
  EXPECT_EQ(spec.action.ToString(), own.spec().action.ToString());
  EXPECT_EQ(spec.leaf("observation").shape, own.spec().observation.at(0).shape);
  EXPECT_EQ(spec.leaf("state").shape, Shape({kAgents * kWidth}));
  for (size_t agent = 0; agent < kAgents; ++agent)
    EXPECT_EQ(spec.agents[agent].name, own.spec().agents[agent].name);

  TimeStep out = batch->MakeTimeStep();
  batch->Reset(out);
  Rng rng(1, Purpose::kTest);
  own.Reset(rng);
  for (int t = 1; t <= 25; ++t) {
    // Of each agent: velocity, position, then landmarks relative to it.
    const auto seen = out.observation.At("observation").data<float>();
    std::vector<double> positions, velocities, landmarks;
    for (size_t agent = 0; agent < kAgents; ++agent) {
      const auto of = seen.subspan(agent * kWidth, kWidth);
      velocities.insert(velocities.end(), {of[0], of[1]});
      positions.insert(positions.end(), {of[2], of[3]});
    }
    for (size_t i = 0; i < 6; ++i)
      landmarks.push_back(double(seen[4 + i]) + double(seen[2 + i % 2]));
    own.SetState(SpreadState(own, positions, velocities, landmarks));
    Tensor action = Tensor::Zeros({kAgents}, DType::kInt64);
    for (int64_t& value : action.data<int64_t>()) value = static_cast<int64_t>(rng.Below(5));
    own.Step(action, rng);
    batch->Step(action, out);
    for (int64_t agent = 0; agent < kAgents; ++agent) {
      const std::vector<double> expected = own.Observation(agent);
      const Tensor got = out.observation.At("observation").Row(agent);
      for (size_t i = 0; i < kWidth; ++i)
        EXPECT_NEAR(got.data<float>()[i], expected[i], 2e-6) << t << " " << agent << " " << i;
      EXPECT_NEAR(out.reward.data<float>()[static_cast<size_t>(agent)], own.reward(agent), 1e-5);
      EXPECT_EQ(out.type.data<uint8_t>()[static_cast<size_t>(agent)], t == 25 ? kLast : kMid);
      EXPECT_EQ(out.discount.data<float>()[static_cast<size_t>(agent)], 1);
    }
  }
}

TEST_F(PythonVector, TakesSeedsForEachRowOfSyncVectors) {
  const auto single = Make("Walk", {.rows = 3, .seed = 5});
  const auto vector =
      Make("walks", {.rows = 3, .seed = 5}, "arguments: {vector: true, workers: 2}");
  TimeStep a = single->MakeTimeStep(), b = vector->MakeTimeStep();
  single->Reset(a);
  vector->Reset(b);
  EXPECT_EQ(HashOf(a), HashOf(b));
  // Episodes of one length all end at once, and so all begin with seeds of their own.
  EXPECT_EQ(Trace(*single, a, 13), Trace(*vector, b, 13));
}

TEST_F(PythonVector, BeginsEpisodesRowByRow) {
  const auto batch = Make("Steady(length=2)", {.rows = 2}, "arguments: {vector: true, workers: 1}");
  TimeStep out = batch->MakeTimeStep();
  const auto type = out.type.data<uint8_t>();
  batch->Reset(out);
  const auto times = [&] {
    const auto seen = out.observation.At("observation").data<float>();
    return std::vector<float>{seen[1], seen[3]};
  };
  batch->Step(Actions({1, 2}), out);
  EXPECT_THAT(type, ElementsAre(kMid, kMid));
  EXPECT_THAT(out.reward.data<float>(), ElementsAre(1, 2));
  batch->Step(Actions({1, 2}), out);
  EXPECT_THAT(type, ElementsAre(kLast, kMid));
  EXPECT_THAT(out.discount.data<float>(), ElementsAre(0, 1));
  batch->Step(Actions({1, 2}), out);
  EXPECT_THAT(type, ElementsAre(kFirst, kLast));
  EXPECT_THAT(out.reward.data<float>(), ElementsAre(0, 2));
  EXPECT_THAT(times(), ElementsAre(0, 3));
  batch->Step(Actions({1, 2}), out);
  EXPECT_THAT(type, ElementsAre(kMid, kFirst));
  EXPECT_THAT(times(), ElementsAre(1, 0));
  EXPECT_THAT(out.episode_id.data<int64_t>(), ElementsAre(1, 1));
}

TEST_F(PythonVector, CutsItsEpisodesOffAtLoadAndAtALoss) {
  const TemporaryFolder folder;
  for (const bool loads : {true, false}) {
    const std::string marker = loads ? "" : ", marker=\"" + folder.path() + "/once\"";
    const std::string arguments = "arguments: {vector: true, workers: 1}";
    const auto batch = Make("Steady(length=3" + marker + ")", {.rows = 2}, arguments);
    TimeStep out = batch->MakeTimeStep();
    batch->Reset(out);
    Trace(*batch, out, 1);
    const auto times = [&] {
      const auto seen = out.observation.At("observation").data<float>();
      return std::vector<float>{seen[1], seen[3]};
    };
    const auto other = Make("Steady(length=3)", {.rows = 2, .seed = 7}, arguments);
    if (loads) other->Load(batch->Save());
    BatchEnvironment& used = loads ? *other : *batch;
    Trace(used, out, 1);
    EXPECT_THAT(out.type.data<uint8_t>(), ElementsAre(kLast, kLast));
    EXPECT_THAT(out.discount.data<float>(), ElementsAre(1, 1));
    EXPECT_THAT(out.reward.data<float>(), ElementsAre(0, 0));
    EXPECT_THAT(times(), ElementsAre(1, 1)) << "where it stood";
    Trace(used, out, 1);
    EXPECT_THAT(out.type.data<uint8_t>(), ElementsAre(kFirst, kFirst));
    EXPECT_THAT(times(), ElementsAre(0, 0));
    Trace(used, out, 3);
    EXPECT_THAT(out.type.data<uint8_t>(), ElementsAre(kLast, kMid));
  }
}

TEST_F(PythonVector, OfGymnasiumIsMadeByItsId) {
  const auto batch = MakeBatchEnvironment(
      Config("gymnasium:CartPole-v1", "arguments: {vector: true, workers: 1}"), {.rows = 4});
  EXPECT_EQ(batch->spec().time_limit, 500);
  EXPECT_EQ(batch->spec().leaf("observation").shape, Shape({4}));
  TimeStep out = batch->MakeTimeStep();
  batch->Reset(out);
  int ends = 0, firsts = 0;
  std::vector<uint8_t> before(4, kFirst);
  for (int t = 0; t < 100; ++t) {
    Trace(*batch, out, 1);
    for (size_t row = 0; row < 4; ++row) {
      const uint8_t type = out.type.data<uint8_t>()[row];
      EXPECT_EQ(type == kFirst, before[row] == kLast);
      EXPECT_EQ(out.reward.data<float>()[row], type == kFirst ? 0 : 1);
      ends += type == kLast;
      firsts += type == kFirst;
      before[row] = type;
    }
  }
  EXPECT_GT(ends, 4);
  EXPECT_GT(firsts, 4);
}

TEST_F(PythonVector, SaysWhatItCannotDo) {
  const std::string vector = "arguments: {vector: true}";
  EXPECT_THAT(MessageOf([&] { Make("walks", {}, vector + ", time_limit: 9"); }),
              HasSubstr("environment.time_limit: a vector environment keeps its own"));
  EXPECT_THAT(MessageOf([&] {
                Make("walks", {}, vector + ", wrappers: [{name: action_repeat, count: 2}]");
              }),
              HasSubstr("repeats no actions"));
  EXPECT_THAT(MessageOf([&] { Make("walks(num_envs=2)", {}); }), HasSubstr("vector: true"));
  EXPECT_THAT(MessageOf([&] { Make("Walk", {}, vector); }), HasSubstr("num_envs"));
}

}  // namespace
}  // namespace weft
