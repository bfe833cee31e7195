// Rows that live in Python. Needs an interpreter with pyzmq, numpy and gymnasium in WEFT_PYTHON.
#include "environments/python/python_environment.h"

#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "environments/environment_config.h"
#include "environments/verify/conformance.h"
#include "tests/base/temporary_folder.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Python : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("WEFT_PYTHON") == nullptr) {
      GTEST_SKIP() << "WEFT_PYTHON names no interpreter with pyzmq, numpy and gymnasium";
    }
    setenv("PYTHONPATH", "tests/data", 1);
  }

  static std::unique_ptr<BatchEnvironment> Make(const std::string& name, int64_t rows,
                                                const std::string& arguments = "",
                                                BatchOptions options = {}) {
    ConfigSource source = ConfigSource::Text(
        "id: 'python:python_environments:" + name + "'\narguments: {" + arguments + "}\n", "test");
    EnvironmentConfig config;
    source.Parse(config);
    options.rows = rows;
    return MakeBatchEnvironment(config, options);
  }

  static Tensor Actions(const BatchEnvironment& batch, int64_t value) {
    Tensor action = Tensor::Zeros(batch.spec().action.shape().Prepend(batch.rows()), DType::kInt64);
    for (int64_t& element : action.data<int64_t>()) element = value;
    return action;
  }

  // What `steps` steps of a batch show: observation, reward, discount and type of every row.
  static std::vector<float> Trace(BatchEnvironment& batch, TimeStep& out, int steps) {
    std::vector<float> trace;
    for (int step = 0; step < steps; ++step) {
      batch.Step(Actions(batch, step % 3), out);
      for (const auto& [name, leaf] : out.observation) {
        const auto values = leaf.data<float>();
        trace.insert(trace.end(), values.begin(), values.end());
      }
      for (const Tensor* part : {&out.reward, &out.discount}) {
        const auto values = part->data<float>();
        trace.insert(trace.end(), values.begin(), values.end());
      }
      for (const uint8_t type : out.type.data<uint8_t>()) trace.push_back(type);
    }
    return trace;
  }

  static std::string ErrorOf(BatchEnvironment& batch) {
    try {
      TimeStep out = batch.MakeTimeStep();
      batch.Reset(out);
      Trace(batch, out, 6);
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  }
};

TEST_F(Python, EpisodesEndAsTheEnvironmentSays) {
  for (const auto& [end, discount] :
       {std::pair("truncated", 1.0f), std::pair("terminated", 0.0f), std::pair("both", 0.0f)}) {
    const auto batch = Make(std::string("Walk(length=3, end=\"") + end + "\")", 2);
    TimeStep out = batch->MakeTimeStep();
    batch->Reset(out);
    for (int episode = 0; episode < 3; ++episode) {
      EXPECT_EQ(out.type.data<uint8_t>()[1], static_cast<uint8_t>(StepType::kFirst));
      EXPECT_EQ(out.episode_id.data<int64_t>()[1], episode);
      for (int step = 1; step <= 3; ++step) {
        batch->Step(Actions(*batch, 1), out);
        EXPECT_EQ(out.observation.At("observation").data<float>()[1], static_cast<float>(step));
        EXPECT_EQ(out.reward.data<float>()[0], out.observation.At("observation").data<float>()[0]);
      }
      EXPECT_EQ(out.type.data<uint8_t>()[1], static_cast<uint8_t>(StepType::kLast));
      EXPECT_EQ(out.discount.data<float>()[1], discount);
      batch->Step(Actions(*batch, 1), out);
    }
  }
}

TEST_F(Python, RowsDependNeitherOnWorkersNorOnTheSplit) {
  const auto one = Make("Walk", 3, "workers: 1", {.seed = 5});
  const auto three = Make("Walk", 3, "workers: 3", {.seed = 5});
  const auto last = Make("Walk", 1, "", {.first_row = 2, .seed = 5});
  TimeStep a = one->MakeTimeStep(), b = three->MakeTimeStep(), c = last->MakeTimeStep();
  one->Reset(a);
  three->Reset(b);
  last->Reset(c);
  EXPECT_EQ(Trace(*one, a, 9), Trace(*three, b, 9));
  Trace(*last, c, 9);
  EXPECT_EQ(a.reward.data<float>()[2], c.reward.data<float>()[0]);
}

TEST_F(Python, ASavedBatchGoesOnAsIfNothingHadHappened) {
  const auto batch = Make("Walk(length=7)", 2, "", {.seed = 3});
  TimeStep out = batch->MakeTimeStep();
  batch->Reset(out);
  for (const int before : {4, 3, 1}) {  // inside an episode, at its end, at the reset
    Trace(*batch, out, before);
    const TensorMap saved = batch->Save();
    const auto again = Make("Walk(length=7)", 2, "workers: 1", {.seed = 99});
    again->Load(saved);
    const TensorMap back = batch->Save();
    TimeStep other = again->MakeTimeStep();
    EXPECT_EQ(Trace(*again, other, 10), Trace(*batch, out, 10));
    batch->Load(back);
  }
}

TEST_F(Python, EverySpaceHasItsLeaf) {
  const auto batch = Make("Parts", 2);
  ASSERT_EQ(batch->spec().observation.size(), 4u);
  EXPECT_EQ(batch->spec().leaf("picture").shape, Shape({2, 3}));
  EXPECT_EQ(batch->spec().leaf("inner.place").low, std::vector<double>{2});
  EXPECT_EQ(batch->spec().leaf("inner.place").high, std::vector<double>{5});
  TimeStep out = batch->MakeTimeStep();
  batch->Reset(out);
  batch->Step(Actions(*batch, 1), out);
  EXPECT_EQ(out.observation.At("picture").data<uint8_t>()[11], 1);
  EXPECT_EQ(out.observation.At("inner.place").data<int64_t>()[1], 3);
  EXPECT_EQ(out.observation.At("inner.speed").data<float>()[0], 0.1f);
  EXPECT_EQ(out.observation.At("action_mask").data<uint8_t>()[1], 1);
  EXPECT_EQ(out.observation.At("action_mask").data<uint8_t>()[0], 0);
  EXPECT_EQ(out.reward.data<float>()[0], 26);  // action 1 of the second element is 25 + 1
}

TEST_F(Python, ActionsRepeatUntilTheEnd) {
  const auto batch = Make("Walk(length=5, end=\"terminated\")", 1, "", {.action_repeat = 4});
  TimeStep out = batch->MakeTimeStep();
  batch->Reset(out);
  batch->Step(Actions(*batch, 1), out);
  EXPECT_EQ(out.observation.At("observation").data<float>()[1], 4);
  batch->Step(Actions(*batch, 1), out);
  EXPECT_EQ(out.observation.At("observation").data<float>()[1], 5);
  EXPECT_EQ(out.discount.data<float>()[0], 0);
}

TEST_F(Python, GymnasiumsOwnAreFoundByTheirIds) {
  ConfigSource source = ConfigSource::Text("python: gymnasium:CartPole-v1", "test");
  EnvironmentConfig config;
  source.Parse(config);
  const EnvironmentSpec spec = config.Spec();
  EXPECT_EQ(spec.time_limit, 500);
  EXPECT_EQ(spec.reward_threshold, 475);
  EXPECT_EQ(spec.action.ToString(), "Discrete(2)");
  EXPECT_EQ(config.FileName(), "python-gymnasium-CartPole-v1");
}

TEST_F(Python, AtariGamesArePrepared) {
  ConfigSource source = ConfigSource::Text(
      "{python: 'ale_py:ALE/Breakout-v5(repeat_action_probability=0.0)', rows: 2, "
      "arguments: {preset: atari}, wrappers: [{name: frame_stack, count: 4}]}",
      "test");
  EnvironmentConfig config;
  source.Parse(config);
  std::unique_ptr<BatchEnvironment> batch;
  try {
    batch = MakeBatchEnvironment(config, {.rows = 2, .seed = 1});
  } catch (const Error& error) {
    if (error.message().find("no module ale_py") == std::string::npos) throw;
    GTEST_SKIP() << "WEFT_PYTHON has no ale_py and cv2";
  }
  EXPECT_EQ(batch->spec().leaf("observation").shape, Shape({4, 84, 84}));
  TimeStep out = batch->MakeTimeStep();
  batch->Reset(out);
  // FIRE was pressed at the start: the first life is lost within 100 steps of standing still, and
  // in training that ends the episode.
  int steps = 0;
  while (out.type.data<uint8_t>()[0] != static_cast<uint8_t>(StepType::kLast) && steps < 100) {
    batch->Step(Actions(*batch, 0), out);
    ++steps;
  }
  EXPECT_GT(steps, 5);
  EXPECT_LT(steps, 100);
  EXPECT_EQ(out.discount.data<float>()[0], 0);
}

TEST_F(Python, FaultsNameRowStepAndField) {
  EXPECT_THAT(ErrorOf(*Make("Fault(kind=\"throw\")", 2)),
              testing::AllOf(HasSubstr("row 0"), HasSubstr("step 3"),
                             HasSubstr("RuntimeError: the motor is too hot")));
  EXPECT_THAT(ErrorOf(*Make("Fault(kind=\"shape\")", 2)),
              HasSubstr("observation has the shape (3,)"));
  EXPECT_THAT(ErrorOf(*Make("Fault(kind=\"nan\")", 2)), HasSubstr("observation[0] is not finite"));
}

TEST_F(Python, RealObservationsKeepTheirBounds) {
  EXPECT_THAT(
      ErrorOf(*Make("Loose", 2)),
      HasSubstr("row 0 (seed 0), step 3: observation[1] is 3, outside its bounds -inf .. 2"));
  EXPECT_EQ(ErrorOf(*Make("Loose", 2, "nominal_bounds: true")), "");
  EXPECT_THAT(ErrorOf(*Make("Loose(kind=\"dtype\")", 1)),
              HasSubstr("the observation observation has the dtype float64, its space says U8"));
}

TEST_F(Python, ALostProcessTruncatesItsEpisodesAndIsStartedAgain) {
  for (const char* kind : {"exit", "hang"}) {
    const TemporaryFolder folder;
    const auto batch =
        Make(std::string("Fault(kind=\"") + kind + "\", marker=\"" + folder.path() + "/once\")", 2,
             "workers: 1, timeout: 2");
    TimeStep out = batch->MakeTimeStep();
    batch->Reset(out);
    for (int step = 0; step < 3; ++step) batch->Step(Actions(*batch, 1), out);
    for (size_t row = 0; row < 2; ++row) {
      EXPECT_EQ(out.type.data<uint8_t>()[row], static_cast<uint8_t>(StepType::kLast)) << kind;
      EXPECT_EQ(out.discount.data<float>()[row], 1) << kind;
    }
    batch->Step(Actions(*batch, 1), out);
    EXPECT_EQ(out.type.data<uint8_t>()[0], static_cast<uint8_t>(StepType::kFirst));
    for (int step = 0; step < 5; ++step) batch->Step(Actions(*batch, 1), out);
    EXPECT_EQ(out.observation.At("observation").data<float>()[1], 5);
  }
}

TEST_F(Python, ConformanceIsCheckedFromOutside) {
  const auto checks = CheckConformance("python:python_environments:Walk");
  EXPECT_EQ(checks.size(), 9u);
  for (const ConformanceCheck& check : checks) {
    EXPECT_EQ(check.problem, "") << check.claim;
    EXPECT_EQ(check.remark, "") << check.claim;
  }
  bool deaf = false;
  for (const auto& check : CheckConformance("python:python_environments:Deaf"))
    deaf = deaf || (check.claim == "resets spread" && !check.remark.empty());
  EXPECT_TRUE(deaf);
}

TEST_F(Python, WhatCannotBeMadeIsAConfigError) {
  const auto code = [](const std::string& name) {
    try {
      Make(name, 1);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  };
  EXPECT_EQ(code("Nowhere"), ErrorCode::kConfig);
  EXPECT_EQ(code("Walk(7)"), ErrorCode::kConfig);
  EXPECT_EQ(code("Walk(speed=7)"), ErrorCode::kConfig);
}

}  // namespace
}  // namespace weft
