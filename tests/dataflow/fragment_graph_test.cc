#include "dataflow/fragment_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "base/check.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

FragmentFactory Factory(std::vector<Port> inputs, std::vector<Port> outputs) {
  return {.ports = {.inputs = std::move(inputs), .outputs = std::move(outputs)},
          .make = [](const Replica&) { return std::unique_ptr<Fragment>(); }};
}

template <class F>
std::string MessageOf(F action) {
  try {
    action();
  } catch (const Error& error) {
    return error.message();
  }
  return "nothing was thrown";
}

FragmentGraph Pair(int writers, int readers) {
  FragmentGraph graph;
  graph.Add("actor", writers, Factory({}, {{"rollout"}}));
  graph.Add("learner", readers, Factory({{"rollout"}}, {}));
  return graph;
}

TEST(FragmentGraph, ConnectNamesTheNearestFragmentAndPort) {
  FragmentGraph graph = Pair(1, 1);
  EXPECT_THAT(MessageOf([&] { graph.Connect("acter.rollout", "learner.rollout", Rows()); }),
              HasSubstr("no fragment \"acter\"; did you mean \"actor\"?"));
  EXPECT_THAT(MessageOf([&] { graph.Connect("actor.rollut", "learner.rollout", Rows()); }),
              HasSubstr("fragment actor has no output \"rollut\"; did you mean \"rollout\"?"));
  EXPECT_THAT(MessageOf([&] { graph.Connect("actor", "learner.rollout", Rows()); }),
              HasSubstr("fragment.port"));
  EXPECT_THAT(MessageOf([&] { graph.Connect("actor.a", "learner.b", Reduce()); }),
              HasSubstr("one fragment"));
}

TEST(FragmentGraph, ValidateRejectsUnconnectedAndDoublyConnectedPorts) {
  FragmentGraph graph = Pair(1, 1);
  EXPECT_THAT(MessageOf([&] { graph.Validate(); }),
              HasSubstr("the output actor.rollout is connected to nothing"));
  graph.Connect("actor.rollout", "learner.rollout", Rows());
  EXPECT_NO_THROW(graph.Validate());
  graph.Connect("actor.rollout", "learner.rollout", Rows());
  EXPECT_THAT(MessageOf([&] { graph.Validate(); }),
              HasSubstr("the input learner.rollout has 2 edges"));
}

TEST(FragmentGraph, OptionalPortsMayStayUnconnected) {
  FragmentGraph graph;
  graph.Add("a", 1,
            Factory({{.name = "in", .optional = true}}, {{.name = "out", .optional = true}}));
  EXPECT_NO_THROW(graph.Validate());
}

TEST(FragmentGraph, ValidateRejectsReplicaCountsThatDoNotDivide) {
  FragmentGraph graph = Pair(4, 3);
  graph.Connect("actor.rollout", "learner.rollout", Rows());
  EXPECT_THAT(MessageOf([&] { graph.Validate(); }),
              HasSubstr("actor.rollout -> learner.rollout: 4 writers and 3 readers; with Rows one "
                        "count must divide"));
}

TEST(FragmentGraph, ValidateRejectsMergeIntoMoreReadersAndBroadcastFromLooseWriters) {
  FragmentGraph merge = Pair(2, 4);
  merge.Connect("actor.rollout", "learner.rollout", Merge());
  EXPECT_THAT(MessageOf([&] { merge.Validate(); }),
              HasSubstr("2 writers and 4 readers; with Merge"));
  FragmentGraph broadcast = Pair(2, 4);
  broadcast.Connect("actor.rollout", "learner.rollout", Broadcast());
  EXPECT_THAT(MessageOf([&] { broadcast.Validate(); }), HasSubstr("joined by Reduce"));
  broadcast.Connect("actor.sum", "actor.sum", Reduce());
  EXPECT_NO_THROW(broadcast.Validate());
}

FragmentGraph Cycle(Port a_out, Port b_in) {
  FragmentGraph graph;
  graph.Add("a", 1, Factory({{"in"}}, {a_out}));
  graph.Add("b", 1, Factory({b_in}, {{"out"}}));
  graph.Connect(std::string("a.") + a_out.name, std::string("b.") + b_in.name, Rows());
  graph.Connect("b.out", "a.in", Rows());
  return graph;
}

TEST(FragmentGraph, ValidateRejectsACycleWithoutAFirstMessageNamingItsEdges) {
  EXPECT_THAT(MessageOf([] { Cycle({"out"}, {"in"}).Validate(); }),
              HasSubstr("can never start, as no output on it is primed and no input late:\n  a.out "
                        "-> b.in\n  b.out -> a.in"));
  EXPECT_NO_THROW(Cycle({.name = "out", .primed = true}, {"in"}).Validate());
  EXPECT_NO_THROW(Cycle({"out"}, {.name = "in", .late = true}).Validate());
}

TEST(FragmentGraph, AddRejectsBadNamesAndCounts) {
  FragmentGraph graph;
  EXPECT_THAT(MessageOf([&] { graph.Add("a.b", 1, Factory({}, {})); }), HasSubstr("a.b"));
  EXPECT_THAT(MessageOf([&] { graph.Add("a", 0, Factory({}, {})); }), HasSubstr("replicas of a"));
  graph.Add("a", 1, Factory({}, {}));
  EXPECT_THAT(MessageOf([&] { graph.Add("a", 1, Factory({}, {})); }), HasSubstr("there already"));
}

TEST(FragmentGraph, TextAndDotShowEveryEdgeWithItsContract) {
  FragmentGraph graph = Pair(4, 2);
  graph.Connect("actor.rollout", "learner.rollout", Rows(1));
  graph.Connect("learner.gradient", "learner.gradient", Reduce());
  EXPECT_EQ(graph.ToText(),
            "actor.rollout -> learner.rollout  [4 to 2]  rows(dim 1)\n"
            "learner.gradient -> learner.gradient  [2 to 2]  reduce\n");
  EXPECT_THAT(graph.ToDot(),
              HasSubstr("\"actor\" -> \"learner\" [label=\"rollout\\nrows(dim 1)\"]"));
}

}  // namespace
}  // namespace weft
