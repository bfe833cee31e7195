// Runs in several real processes over ZeroMQ: the same results, errors, cuts and ends as in one.
#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <vector>

#include "base/check.h"
#include "tests/dataflow/scenario.h"

namespace weft::testing {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

RunResult RunSerial(const Scenario& scenario) {
  const FragmentGraph graph = scenario.Graph();
  return weft::Run(graph, Policy("serial", graph, 1), {});
}
uint64_t CentreHash(const Cut& cut, int centres) {
  uint64_t hash = 0;
  for (int i = 0; i < centres; ++i) hash = hash * 31 + Hash(cut.at("centre." + std::to_string(i)));
  return hash;
}
int64_t JudgeNumber(const Cut& cut) {
  return cut.at("judge.0").At("number").data<int64_t>()[0];
}

TEST(Process, SplitActorsGivesTheSerialResult) {
  for (const int processes : {2, 3}) {
    const Scenario scenario{.loop_options = {.workers = 4, .steps = 8}, .processes = processes};
    const RunResult result = RunScenario(scenario, scenario.Options());
    EXPECT_EQ(CentreHash(result.cut, 1), CentreHash(RunSerial(scenario).cut, 1));
    EXPECT_EQ(result.stop_reason, "updates done");
    EXPECT_FALSE(result.perturbed);
  }
}

TEST(Process, AnyPlacementGivesTheSerialResult) {
  for (const int centres : {1, 2, 4}) {
    for (const uint64_t code : {1u, 2u, 3u}) {
      const Scenario scenario{.loop_options = {.workers = 4, .centres = centres, .steps = 5},
                              .runners = 5,
                              .processes = 3,
                              .code = code};
      EXPECT_EQ(CentreHash(RunScenario(scenario, scenario.Options()).cut, centres),
                CentreHash(RunSerial(scenario).cut, centres))
          << centres << " centres, placement " << code;
    }
  }
}

TEST(Process, EveryContractGivesTheSerialResult) {
  uint64_t code = 10;
  for (const Contract contract : {Rows(0), Rows(1, 1), Broadcast()}) {
    for (const auto& [writers, readers] :
         std::vector<std::pair<int, int>>{{1, 4}, {4, 2}, {2, 8}}) {
      if (contract.kind == Contract::Kind::kBroadcast && writers > 1) continue;
      const Scenario scenario{.loop = false,
                              .relay_options = {.writers = writers,
                                                .readers = readers,
                                                .steps = 12,
                                                .contract = contract},
                              .runners = 4,
                              .processes = 3,
                              .code = ++code};
      EXPECT_EQ(JudgeNumber(RunScenario(scenario, scenario.Options()).cut),
                JudgeNumber(RunSerial(scenario).cut));
    }
  }
}

TEST(Process, MetricsOfWorkersArrive) {
  const Scenario scenario{.loop_options = {.workers = 2, .centres = 2, .steps = 4},
                          .runners = 6,
                          .processes = 3,
                          .code = 4};
  std::map<std::string, double> last;
  RuntimeOptions options = scenario.Options();
  options.on_metric = [&last](const MetricEvent& event) {
    last[std::string(event.fragment) + "." + std::to_string(event.replica)] = event.value;
  };
  RunScenario(scenario, options);
  EXPECT_EQ(last["centre.0"], 4 * 3 * kRows);
  EXPECT_EQ(last["centre.1"], 4 * 3 * kRows);
}

TEST(Process, AnErrorInAWorkerEndsTheRunNamingFragmentReplicaAndStep) {
  // With this code centre[0] is on a worker process.
  for (const uint64_t code : {1u, 2u, 3u, 4u}) {
    const Scenario scenario{
        .loop_options = {.workers = 4, .centres = 1, .steps = 10, .throw_at = 3},
        .runners = 4,
        .processes = 4,
        .code = code};
    const auto before = Clock::now();
    try {
      RunScenario(scenario, scenario.Options());
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDiverged);
      EXPECT_EQ(error.message(), "centre[0], step 3: the loss is NaN");
    }
    EXPECT_LT(Clock::now() - before, std::chrono::seconds(3));
  }
}

void CheckCuts(int centres, uint64_t code) {
  const Scenario scenario{
      .loop_options = {.workers = 4, .centres = centres, .steps = 7, .checkpoint_every = 2},
      .runners = 5,
      .processes = 3,
      .code = code};
  std::vector<Cut> cuts;
  RuntimeOptions options = scenario.Options();
  options.on_checkpoint = [&cuts](const Cut& cut) { cuts.push_back(Clone(cut)); };
  const uint64_t whole = CentreHash(RunScenario(scenario, options).cut, centres);
  EXPECT_EQ(whole, CentreHash(RunSerial(scenario).cut, centres));
  ASSERT_EQ(cuts.size(), 3u);
  const FragmentGraph graph = scenario.Graph();
  for (const Cut& cut : cuts) {
    EXPECT_EQ(CentreHash(weft::Run(graph, Policy("serial", graph, 1), {}, &cut).cut, centres),
              whole);
  }
  Scenario other = scenario;
  other.code = 7 + code;
  EXPECT_EQ(CentreHash(RunScenario(other, other.Options(), &cuts[1]).cut, centres), whole);
}

TEST(Process, CutsOfSplitActorsResumeInOtherPlacements) {
  CheckCuts(1, 0);
}
TEST(Process, CutsOfAnyPlacementResumeInOtherPlacements) {
  CheckCuts(1, 5);
}
TEST(Process, CutsWithReduceInAnyPlacementResumeInOtherPlacements) {
  CheckCuts(2, 6);
}

TEST(Process, SerialCutsResumeInProcesses) {
  const Scenario scenario{
      .loop_options = {.workers = 4, .centres = 2, .steps = 7, .checkpoint_every = 3},
      .runners = 4,
      .processes = 3,
      .code = 8};
  const FragmentGraph graph = scenario.Graph();
  std::vector<Cut> cuts;
  RuntimeOptions options;
  options.on_checkpoint = [&cuts](const Cut& cut) { cuts.push_back(Clone(cut)); };
  const uint64_t whole = CentreHash(weft::Run(graph, Policy("serial", graph, 1), options).cut, 2);
  ASSERT_EQ(cuts.size(), 2u);
  for (const Cut& cut : cuts)
    EXPECT_EQ(CentreHash(RunScenario(scenario, scenario.Options(), &cut).cut, 2), whole);
}

TEST(Process, InterruptionStopsAllProcessesInTime) {
  const Scenario scenario{.loop_options = {.workers = 4, .centres = 2, .steps = 1 << 30},
                          .runners = 5,
                          .processes = 3,
                          .code = 3};
  RuntimeOptions options = scenario.Options();
  bool moved = false;
  options.on_metric = [&moved](const MetricEvent&) { moved = true; };
  Clock::time_point asked;
  options.interrupted = [&] {
    asked = Clock::now();
    return moved;
  };
  int checkpoints = 0;
  options.on_checkpoint = [&checkpoints](const Cut&) { ++checkpoints; };
  const RunResult result = RunScenario(scenario, options);
  EXPECT_LT(Clock::now() - asked, std::chrono::seconds(3));
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(checkpoints, 1);
  EXPECT_EQ(result.cut.at("centre.0").At("counts").data<int64_t>()[0],
            result.cut.at("centre.1").At("counts").data<int64_t>()[0]);
}

TEST(Process, AWorkerOfAnotherGraphIsRefused) {
  const Scenario scenario{.loop_options = {.workers = 4, .steps = 8}};
  const Scenario other{.loop_options = {.workers = 2, .steps = 8}};
  try {
    RunScenario(scenario, other.Options());
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("worker process 1 was started with another graph"));
  }
}

TEST(Process, AWorkerThatCannotStartEndsTheRun) {
  const Scenario scenario{.loop_options = {.workers = 4, .steps = 8}};
  RuntimeOptions options = scenario.Options();
  options.worker_command = [](int) { return std::vector<std::string>{"false"}; };
  try {
    RunScenario(scenario, options);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(),
                HasSubstr("worker process 1 ended 3 times in a row, at last with exit status 1"));
  }
}

TEST(Process, WithoutAWorkerCommandTheReasonIsGiven) {
  const Scenario scenario;
  EXPECT_THROW(RunScenario(scenario, {}), Error);
}

}  // namespace
}  // namespace weft::testing
