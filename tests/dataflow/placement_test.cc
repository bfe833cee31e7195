#include "dataflow/placement.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "dataflow/wiring.h"
#include "tests/dataflow/loop.h"

namespace weft::testing {
namespace {

std::string Plan(const std::string& policy, LoopOptions options, int threads, int processes = 1) {
  const FragmentGraph graph = Loop(options);
  const Placement placement = Policy(policy, graph, threads, processes);
  const Seats seats(graph, placement);  // throws unless every replica has one place
  return placement.ToText(graph);
}

TEST(Placement, SerialHasOneRunnerWithAllThreads) {
  EXPECT_EQ(Plan("serial", {.workers = 2, .centres = 2}, 2),
            "main process, 2 threads: world[0] agent[0] world[1] agent[1] centre[0] centre[1]\n");
}

TEST(Placement, ThreadsKeepsNeighboursTogetherAndWithinTheBudget) {
  EXPECT_EQ(Plan("threads", {.workers = 4, .centres = 1}, 2),
            "main process, 1 thread: world[0] agent[0] world[1] agent[1] world[2] agent[2] "
            "world[3] agent[3]\n"
            "main process, 1 thread: centre[0]\n");
  EXPECT_EQ(Plan("threads", {.workers = 4, .centres = 2}, 8),
            "main process, 1 thread: world[0] agent[0]\n"
            "main process, 1 thread: world[1] agent[1]\n"
            "main process, 1 thread: world[2] agent[2]\n"
            "main process, 1 thread: world[3] agent[3]\n"
            "main process, 2 threads: centre[0]\n"
            "main process, 2 threads: centre[1]\n");
}

TEST(Placement, SplitActorsPutsContiguousSharesOfWorkersIntoProcesses) {
  EXPECT_EQ(Plan("split_actors", {.workers = 4, .centres = 2}, 6, 2),
            "main process, 2 threads: centre[0] centre[1]\n"
            "worker process 1, 2 threads: world[0] agent[0] world[1] agent[1]\n"
            "worker process 2, 2 threads: world[2] agent[2] world[3] agent[3]\n");
  // No more processes than workers.
  EXPECT_EQ(Plan("split_actors", {.workers = 1}, 1, 7),
            "main process, 1 thread: centre[0]\n"
            "worker process 1, 1 thread: world[0] agent[0]\n");
}

TEST(Placement, DataParallelGivesEveryReplicaOfASumItsThread) {
  EXPECT_EQ(Plan("data_parallel", {.workers = 4, .centres = 2}, 4, 1),
            "main process, 1 thread: centre[0]\n"
            "main process, 1 thread: centre[1]\n"
            "worker process 1, 2 threads: world[0] agent[0] world[1] agent[1] world[2] agent[2] "
            "world[3] agent[3]\n");
}

TEST(Placement, UnknownPoliciesAndGraphsWithoutWorkersAreErrors) {
  EXPECT_THROW(DistributionPolicies().At("treads"), Error);
  FragmentGraph graph;
  graph.Add("a", 1, {.ports = {}, .make = [](const Replica& r) {
                       return std::make_unique<World>(r, LoopOptions{});
                     }});
  EXPECT_THROW(Policy("split_actors", graph, 2, 2), Error);
}

}  // namespace
}  // namespace weft::testing
