// A cut at any step, resumed under any placement, ends as the uninterrupted run does.
#include <algorithm>
#include <chrono>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "dataflow/runtime.h"
#include "tests/dataflow/graphs.h"
#include "tests/dataflow/loop.h"
#include "tests/dataflow/relay.h"

namespace weft::testing {
namespace {

using ::testing::HasSubstr;

uint64_t CentreHash(const Cut& cut, int centres) {
  uint64_t hash = 0;
  for (int i = 0; i < centres; ++i) {
    hash = hash * 31 + Hash(cut.at("centre." + std::to_string(i)));
  }
  return hash;
}

Placement Serial(const FragmentGraph& graph) {
  return Policy("serial", graph, 1);
}

// A fragment that is connected to nothing and asks for a checkpoint in every step: it makes cuts
// all through a run, wherever the others are. On threads it rests in between, so that they can
// move.
class Shutter final : public Fragment {
 public:
  explicit Shutter(std::chrono::microseconds rest) : rest_(rest) {}
  PortSet Needs() const override { return {}; }
  void Step(Ports& ports) override {
    std::this_thread::sleep_for(rest_);
    ports.RequestCheckpoint();
  }

 private:
  const std::chrono::microseconds rest_;
};

void AddShutter(FragmentGraph* graph, int rest_microseconds) {
  graph->Add("shutter", 1,
             {.ports = {}, .make = [rest_microseconds](const Replica&) {
                return std::make_unique<Shutter>(std::chrono::microseconds(rest_microseconds));
              }});
}

// The first cuts of a run with a shutter.
std::vector<Cut> Cuts(FragmentGraph graph,
                      const std::function<Placement(const FragmentGraph&)>& place, int rest) {
  AddShutter(&graph, rest);
  std::vector<Cut> cuts;
  RuntimeOptions options;
  options.on_checkpoint = [&](const Cut& cut) {
    if (cuts.size() < 25) cuts.push_back(Clone(cut));
  };
  const RunResult result = weft::Run(graph, place(graph), options);
  // A checkpoint asked for in the last step is the end itself: nothing is left to resume.
  const std::string last = graph.nodes()[graph.nodes().size() - 2].name + ".0";
  if (!cuts.empty() && Hash(cuts.back().at(last)) == Hash(result.cut.at(last))) cuts.pop_back();
  return cuts;
}

TEST(Checkpoint, AnySerialCutResumesToTheSameEndEverywhere) {
  for (const int centres : {1, 2}) {
    const FragmentGraph graph = Loop({.workers = 4, .centres = centres, .steps = 5});
    const uint64_t whole =
        CentreHash(weft::Run(graph, Policy("serial", graph, 1), {}).cut, centres);
    const std::vector<Cut> cuts = Cuts(graph, Serial, 0);
    EXPECT_GE(cuts.size(), 20u);
    for (size_t i = 0; i < cuts.size(); ++i) {
      const Placement placement = i % 2 == 0 ? Policy("serial", graph, 1) : Scatter(graph, 3, 1, i);
      EXPECT_EQ(CentreHash(weft::Run(graph, placement, {}, &cuts[i]).cut, centres), whole)
          << "cut " << i;
    }
  }
}

TEST(Checkpoint, CutsOfRunningThreadsResumeToTheSameEndEverywhere) {
  for (const int centres : {1, 2, 4}) {
    const FragmentGraph graph =
        Loop({.workers = 4, .centres = centres, .steps = 12, .pause_microseconds = 20});
    const uint64_t whole =
        CentreHash(weft::Run(graph, Policy("serial", graph, 1), {}).cut, centres);
    for (const uint64_t code : {1u, 2u, 3u, 4u}) {
      const auto place = [code](const FragmentGraph& g) {
        return Scatter(g, 2 + static_cast<int>(code), 1, code);
      };
      const std::vector<Cut> cuts = Cuts(graph, place, 100);
      EXPECT_GT(cuts.size(), 0u);
      for (size_t i = 0; i < cuts.size(); ++i) {
        const Placement placement =
            i % 2 == 0 ? Policy("serial", graph, 1) : Scatter(graph, 3, 1, i);
        EXPECT_EQ(CentreHash(weft::Run(graph, placement, {}, &cuts[i]).cut, centres), whole)
            << centres << " centres, placement " << code << ", cut " << i;
      }
    }
  }
}

TEST(Checkpoint, UnreadMessagesOfEveryRowsPairingAreKept) {
  for (const auto& [writers, readers] :
       std::vector<std::pair<int, int>>{{1, 4}, {4, 1}, {2, 2}, {4, 2}, {2, 8}}) {
    const FragmentGraph graph =
        Relay({.writers = writers, .readers = readers, .steps = 12, .contract = Rows(1, 3)});
    const auto number = [](const Cut& cut) {
      return cut.at("judge.0").At("number").data<int64_t>()[0];
    };
    const int64_t whole = number(weft::Run(graph, Policy("serial", graph, 1), {}).cut);
    // Readers first, so that a cut at the end of a sweep finds what the writers wrote in it.
    const auto backwards = [](const FragmentGraph& g) {
      Placement placement = Serial(g);
      std::reverse(placement.runners[0].members.begin(), placement.runners[0].members.end());
      std::rotate(placement.runners[0].members.begin(), placement.runners[0].members.begin() + 1,
                  placement.runners[0].members.end());
      return placement;
    };
    bool unread = false;
    for (const Cut& cut : Cuts(graph, backwards, 0)) {
      for (const auto& [key, map] : cut)
        unread |= key.starts_with("channel:source.rows -> stage.rows.");
      EXPECT_EQ(number(weft::Run(graph, Policy("serial", graph, 1), {}, &cut).cut), whole);
      EXPECT_EQ(number(weft::Run(graph, Scatter(graph, 4, 1, 3), {}, &cut).cut), whole);
    }
    EXPECT_TRUE(unread);
  }
}

TEST(Checkpoint, TheFinalCutContinuesARun) {
  const FragmentGraph longer = Loop({.workers = 4, .centres = 2, .steps = 9});
  const FragmentGraph shorter = Loop({.workers = 4, .centres = 2, .steps = 4});
  const uint64_t whole = CentreHash(weft::Run(longer, Policy("serial", longer, 1), {}).cut, 2);
  for (const int runners : {1, 4}) {
    const Cut cut = weft::Run(shorter, Scatter(shorter, runners, 1, 2), {}).cut;
    EXPECT_EQ(CentreHash(weft::Run(longer, Scatter(longer, 5 - runners, 1, 4), {}, &cut).cut, 2),
              whole);
  }
}

TEST(Checkpoint, InterruptionMakesACheckpointAndStops) {
  const FragmentGraph graph = Loop({.workers = 4, .centres = 2, .steps = 1 << 30});
  for (const int runners : {1, 4}) {
    int checkpoints = 0;
    bool moved = false;
    RuntimeOptions options;
    options.on_metric = [&moved](const MetricEvent&) { moved = true; };
    options.interrupted = [&moved] { return moved; };
    options.on_checkpoint = [&checkpoints](const Cut&) { ++checkpoints; };
    const RunResult result = weft::Run(graph, Scatter(graph, runners, 1, 2), options);
    EXPECT_TRUE(result.interrupted);
    EXPECT_EQ(result.stop_reason, "interrupted");
    EXPECT_EQ(checkpoints, 1);
    const int64_t updates = result.cut.at("centre.0").At("counts").data<int64_t>()[0];
    EXPECT_GT(updates, 0);
    EXPECT_EQ(result.cut.at("centre.1").At("counts").data<int64_t>()[0], updates);
    // The interrupted run and one that stops at the same update are the same.
    const FragmentGraph same =
        Loop({.workers = 4, .centres = 2, .steps = static_cast<int>(updates)});
    if (updates < 2000) {
      EXPECT_EQ(CentreHash(weft::Run(same, Policy("serial", same, 1), {}).cut, 2),
                CentreHash(result.cut, 2));
    }
  }
}

TEST(Checkpoint, LagKeepsTheNewestMessageAndItsUses) {
  const FragmentGraph graph = Loop({.workers = 4, .centres = 1, .steps = 5, .max_lag = 2});
  const auto cuts = Cuts(graph, Serial, 0);
  const uint64_t whole = CentreHash(weft::Run(graph, Policy("serial", graph, 1), {}).cut, 1);
  // Serially the order of steps is fixed, so even a graph with lag resumes to the same bits.
  for (const Cut& cut : cuts) {
    EXPECT_EQ(CentreHash(weft::Run(graph, Policy("serial", graph, 1), {}, &cut).cut, 1), whole);
  }
}

TEST(Checkpoint, AStepCountGoesOnAfterResume) {
  const FragmentGraph graph = Loop({.steps = 3});
  Cut cut = Clone(weft::Run(graph, Policy("serial", graph, 1), {}).cut);
  const FragmentGraph throwing = Loop({.steps = 9, .throw_at = 5});
  try {
    weft::Run(throwing, Policy("serial", throwing, 1), {}, &cut);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "centre[0], step 5: the loss is NaN");
  }
}

TEST(Checkpoint, ACutOfAnotherGraphIsRefused) {
  const FragmentGraph graph = Loop({.workers = 2, .steps = 3});
  const Cut cut = weft::Run(graph, Policy("serial", graph, 1), {}).cut;
  const FragmentGraph other = Loop({.workers = 4, .steps = 3});
  try {
    weft::Run(other, Policy("serial", other, 1), {}, &cut);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_THAT(error.message(), HasSubstr("world[2], start: the saved run has no state for it"));
  }
}

}  // namespace
}  // namespace weft::testing
