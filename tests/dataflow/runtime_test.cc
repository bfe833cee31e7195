// The scheduler in one process: every contract and replica combination gives one result, whatever
// runs where.
#include "dataflow/runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <thread>

#include "base/check.h"
#include "tests/dataflow/graphs.h"
#include "tests/dataflow/loop.h"
#include "tests/dataflow/relay.h"

namespace weft::testing {
namespace {

using ::testing::HasSubstr;

int64_t JudgeNumber(const RunResult& result) {
  return result.cut.at("judge.0").At("number").data<int64_t>()[0];
}
uint64_t CentreHash(const RunResult& result, int centres = 1) {
  uint64_t hash = 0;
  for (int i = 0; i < centres; ++i)
    hash = hash * 31 + Hash(result.cut.at("centre." + std::to_string(i)));
  return hash;
}

TEST(Runtime, RowsGiveOneResultForAllReplicaCountsAndPlacements) {
  for (const int dim : {0, 1}) {
    std::map<int64_t, int> numbers;
    for (const int writers : {1, 2, 4, 8}) {
      for (const int readers : {1, 2, 4, 8}) {
        const FragmentGraph graph = Relay({.writers = writers,
                                           .readers = readers,
                                           .steps = 12,
                                           .contract = Rows(dim, 1 + writers % 3)});
        ++numbers[JudgeNumber(weft::Run(graph, Policy("serial", graph, 1), {}))];
        ++numbers[JudgeNumber(weft::Run(
            graph, Scatter(graph, 3, 1, static_cast<uint64_t>(writers * 10 + readers)), {}))];
      }
    }
    EXPECT_EQ(numbers.size(), 1u);
  }
}

TEST(Runtime, BroadcastIsLockstepInEveryPlacement) {
  for (const int readers : {1, 2, 4}) {
    const FragmentGraph graph =
        Relay({.writers = 1, .readers = readers, .steps = 12, .contract = Broadcast()});
    const int64_t serial = JudgeNumber(weft::Run(graph, Policy("serial", graph, 1), {}));
    for (const uint64_t code : {1u, 2u, 3u}) {
      EXPECT_EQ(JudgeNumber(weft::Run(graph, Scatter(graph, 3, 1, code), {})), serial);
    }
  }
}

TEST(Runtime, LoopGivesOneResultInEveryPlacement) {
  for (const int centres : {1, 2, 4}) {
    const FragmentGraph graph = Loop({.workers = 4, .centres = centres, .steps = 8});
    const uint64_t serial = CentreHash(weft::Run(graph, Policy("serial", graph, 2), {}), centres);
    EXPECT_EQ(CentreHash(weft::Run(graph, Policy("threads", graph, 3), {}), centres), serial);
    for (const uint64_t code : {1u, 2u, 3u, 4u}) {
      EXPECT_EQ(
          CentreHash(weft::Run(graph, Scatter(graph, 2 + static_cast<int>(code), 1, code), {}),
                     centres),
          serial)
          << centres << " centres, placement " << code;
    }
  }
}

TEST(Runtime, ReduceSumsInReplicaOrder) {
  // With floats the order shows: the sum over 4 replicas must be ((a + b) + c) + d on all of them.
  const std::vector<float> values = {1e8f, 3.25f, -1e8f, 0.1f};
  const float expected = ((values[0] + values[1]) + values[2]) + values[3];
  class Summer final : public Fragment {
   public:
    explicit Summer(float value) : value_(value) {}
    PortSet Needs() const override { return {}; }
    void Step(Ports& ports) override {
      std::vector<Tensor> tensors = {Tensor::From<float>(Shape{1}, {value_})};
      ports.AllReduce(tensors);
      sum_ = tensors[0].data<float>()[0];
      ports.Stop("summed");
    }
    TensorMap Save() const override {
      TensorMap state;
      state.Set("sum", Tensor::From<float>(Shape{1}, {sum_}));
      return state;
    }

   private:
    const float value_;
    float sum_ = 0;
  };
  FragmentGraph graph;
  graph.Add("summer", 4, {.ports = {}, .make = [&](const Replica& replica) {
                            return std::make_unique<Summer>(values[replica.index]);
                          }});
  graph.Connect("summer.sum", "summer.sum", Reduce());
  for (const uint64_t code : {1u, 2u, 3u}) {
    const RunResult result = weft::Run(graph, Scatter(graph, static_cast<int>(code), 1, code), {});
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(result.cut.at("summer." + std::to_string(i)).At("sum").data<float>()[0], expected);
    }
  }
}

TEST(Runtime, AllReduceOfUnequalShapesOrWithoutAnEdgeIsAnError) {
  class Uneven final : public Fragment {
   public:
    explicit Uneven(int64_t size) : size_(size) {}
    PortSet Needs() const override { return {}; }
    void Step(Ports& ports) override {
      std::vector<Tensor> tensors = {Tensor::Zeros(Shape{size_})};
      ports.AllReduce(tensors);
    }

   private:
    const int64_t size_;
  };
  for (const bool joined : {true, false}) {
    FragmentGraph graph;
    graph.Add("uneven", 2, {.ports = {}, .make = [](const Replica& replica) {
                              return std::make_unique<Uneven>(2 + replica.index);
                            }});
    if (joined) graph.Connect("uneven.sum", "uneven.sum", Reduce());
    for (const int runners : {1, 2}) {
      try {
        weft::Run(graph, Scatter(graph, runners, 1, 5), {});
        FAIL() << "nothing was thrown";
      } catch (const Error& error) {
        EXPECT_THAT(
            error.message(),
            HasSubstr(joined
                          ? "AllReduce: tensor 0 is F32 [2] in uneven[0] and F32 [3] in uneven[1]"
                          : "AllReduce needs a Reduce edge"));
      }
    }
  }
}

TEST(Runtime, MergeDeliversEveryMessageOnce) {
  // The judge's number depends on arrival order; the count and the sum of steps do not.
  for (const int writers : {1, 3, 5}) {
    class Counter final : public Fragment {
     public:
      explicit Counter(int wanted) : left_(wanted) {}
      PortSet Needs() const override { return {0}; }
      void Step(Ports& ports) override {
        sum_ += ports.Read(0).version;
        if (--left_ == 0) ports.Stop("all came");
      }
      TensorMap Save() const override {
        TensorMap state;
        state.Set("sum", Integer(sum_));
        return state;
      }

     private:
      int left_;
      int64_t sum_ = 0;
    };
    class Limited final : public Fragment {
     public:
      PortSet Needs() const override { return {}; }
      void Step(Ports& ports) override {
        if (step_ < 20) ports.Write(0, Message{.body = {}, .version = ++step_});
      }

     private:
      int64_t step_ = 0;
    };
    FragmentGraph graph;
    graph.Add("limited", writers,
              {.ports = {.inputs = {}, .outputs = {{"x"}}},
               .make = [](const Replica&) { return std::make_unique<Limited>(); }});
    graph.Add("counter", 1,
              {.ports = {.inputs = {{"x"}}, .outputs = {}}, .make = [writers](const Replica&) {
                 return std::make_unique<Counter>(20 * writers);
               }});
    graph.Connect("limited.x", "counter.x", Merge(4));
    for (const int runners : {1, 3}) {
      const RunResult result = weft::Run(graph, Scatter(graph, runners, 1, 5), {});
      EXPECT_EQ(result.cut.at("counter.0").At("sum").data<int64_t>()[0], writers * 20 * 21 / 2);
    }
  }
}

TEST(Runtime, MaxLagBoundsHowOftenAMessageIsReadAgain) {
  // Writes only when asked: the reader reads its first message max_lag + 1 times, then cannot go
  // on.
  class Reader final : public Fragment {
   public:
    PortSet Needs() const override { return {0}; }
    void Step(Ports& ports) override {
      ports.Read(0);
      ports.Log("reads", ++reads_);
    }

   private:
    double reads_ = 0;
  };
  class Once final : public Fragment {
   public:
    void Start(Ports& ports) override { ports.Write(0, {}); }
    PortSet Needs() const override { return {0}; }
    void Step(Ports&) override {}
  };
  FragmentGraph graph;
  graph.Add("once", 1,
            {.ports = {.inputs = {{"never"}}, .outputs = {{.name = "x", .primed = true}}},
             .make = [](const Replica&) { return std::make_unique<Once>(); }});
  graph.Add("reader", 1,
            {.ports = {.inputs = {{"x"}}, .outputs = {{"never"}}},
             .make = [](const Replica&) { return std::make_unique<Reader>(); }});
  graph.Connect("once.x", "reader.x", Broadcast(3));
  graph.Connect("reader.never", "once.never", Rows());
  double reads = 0;
  RuntimeOptions options;
  options.on_metric = [&reads](const MetricEvent& event) { reads = event.value; };
  try {
    weft::Run(graph, Policy("serial", graph, 1), options);
    FAIL() << "the run should end in a deadlock";
  } catch (const Error& error) {
    EXPECT_EQ(reads, 4);
    EXPECT_THAT(
        error.message(),
        HasSubstr(
            "reader[0], after step 4: waits for reader.x from once[0] (the newest is too old)"));
    EXPECT_THAT(error.message(),
                HasSubstr("once[0], after step 0: waits for once.never from reader[0] (0 unread)"));
  }
}

TEST(Runtime, MaxLagLoopEnds) {
  const FragmentGraph graph = Loop({.workers = 4, .centres = 2, .steps = 10, .max_lag = 2});
  for (const int runners : {1, 4}) {
    const RunResult result = weft::Run(graph, Scatter(graph, runners, 1, 3), {});
    EXPECT_EQ(result.cut.at("centre.0").At("counts").data<int64_t>()[0], 10);
  }
}

TEST(Runtime, ErrorsNameFragmentReplicaAndStep) {
  const FragmentGraph graph = Loop({.workers = 4, .centres = 2, .steps = 10, .throw_at = 4});
  for (const int runners : {1, 4}) {
    try {
      weft::Run(graph, Scatter(graph, runners, 1, 3), {});
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDiverged);
      EXPECT_EQ(error.message(), "centre[0], step 4: the loss is NaN");
    }
  }
}

TEST(Runtime, ErrorsInFactoriesAndStartAreNamedToo) {
  FragmentGraph graph;
  graph.Add("bad", 2,
            {.ports = {}, .make = [](const Replica& replica) -> std::unique_ptr<Fragment> {
               if (replica.index == 1) throw std::runtime_error("no such file");
               return std::make_unique<World>(replica, LoopOptions{});
             }});
  for (const int runners : {1, 2}) {
    try {
      weft::Run(graph, Scatter(graph, runners, 1, 1), {});
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), ::testing::AnyOf(HasSubstr("bad[1], start: no such file"),
                                                    HasSubstr("bad[0], start: ")));
    }
  }
}

// Calls `step` once and stops.
class OneStep final : public Fragment {
 public:
  OneStep(PortSet needs, std::function<void(Ports&)> step)
      : needs_(needs), step_(std::move(step)) {}
  PortSet Needs() const override { return needs_; }
  void Step(Ports& ports) override {
    step_(ports);
    ports.Stop("done");
  }

 private:
  const PortSet needs_;
  const std::function<void(Ports&)> step_;
};

std::string ErrorOfStep(PortSet needs, std::function<void(Ports&)> step) {
  FragmentGraph graph;
  graph.Add("a", 1,
            {.ports = {.inputs = {{.name = "in", .late = true}}, .outputs = {{"out"}}},
             .make = [=](const Replica&) { return std::make_unique<OneStep>(needs, step); }});
  graph.Connect("a.out", "a.in", Rows());
  try {
    weft::Run(graph, Policy("serial", graph, 1), {});
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(Runtime, MisuseOfPortsIsAnError) {
  EXPECT_EQ(ErrorOfStep({}, [](Ports&) {}), "");
  EXPECT_THAT(ErrorOfStep({}, [](Ports& ports) { ports.Read(0); }),
              HasSubstr("reads a.in, which Needs did not name"));
  EXPECT_THAT(ErrorOfStep({}, [](Ports& ports) { ports.Write(7, {}); }),
              HasSubstr("there is no output 7"));
  EXPECT_THAT(ErrorOfStep({5}, [](Ports&) {}), HasSubstr("Needs names an input beyond"));
  EXPECT_THAT(ErrorOfStep({},
                          [](Ports& ports) {
                            for (int i = 0; i < 3; ++i) ports.Write(0, {});
                          }),
              HasSubstr("writes more messages to a.out than a[0] has room for"));
}

TEST(Runtime, APrimedOutputMustBeWrittenByStart) {
  FragmentGraph graph;
  graph.Add("a", 1,
            {.ports = {.inputs = {{"in"}}, .outputs = {{.name = "out", .primed = true}}},
             .make = [](const Replica&) {
               return std::make_unique<OneStep>(PortSet{0}, [](Ports&) {});
             }});
  graph.Connect("a.out", "a.in", Rows());
  try {
    weft::Run(graph, Policy("serial", graph, 1), {});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("a[0], start: "));
    EXPECT_THAT(error.message(), HasSubstr("a.out is declared primed, but Start wrote no message"));
  }
}

TEST(Runtime, MetricsCarryFragmentAndReplica) {
  const FragmentGraph graph = Loop({.workers = 2, .centres = 2, .steps = 3});
  for (const int runners : {1, 3}) {
    std::map<std::string, double> last;
    RuntimeOptions options;
    options.on_metric = [&last](const MetricEvent& event) {
      last[std::string(event.fragment) + "." + std::to_string(event.replica) + "." +
           std::string(event.name)] = event.value;
    };
    const RunResult result = weft::Run(graph, Scatter(graph, runners, 1, 9), options);
    EXPECT_EQ(last.size(), 2u);
    EXPECT_EQ(last["centre.0.count"], 3 * 3 * kRows);
    EXPECT_EQ(last["centre.1.count"], 3 * 3 * kRows);
    EXPECT_EQ(result.stop_reason, "updates done");
  }
}

TEST(Runtime, APlacementMustHaveEveryReplicaOnce) {
  const FragmentGraph graph = Loop({});
  Placement placement = Policy("serial", graph, 1);
  placement.runners[0].members.pop_back();
  EXPECT_THROW(weft::Run(graph, placement, {}), Error);
  placement = Policy("serial", graph, 1);
  placement.runners[0].members.push_back({0, 0});
  EXPECT_THROW(weft::Run(graph, placement, {}), Error);
}

}  // namespace
}  // namespace weft::testing
