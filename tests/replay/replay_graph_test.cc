// The replay fragment in a running graph: actors that each hold one row and wait for parameters,
// the table, a learner that answers as the protocol says. Nothing may wait for ever, and placement
// must not change a bit.
#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "dataflow/fragment_graph.h"
#include "dataflow/placement.h"
#include "dataflow/runtime.h"
#include "replay/replay_fragment.h"

namespace weft {
namespace {

constexpr int64_t kTicks = 3, kRows = 2;

// Sends kTicks steps of its row for each version of the parameters; episodes last 4 steps.
class Actor final : public Fragment {
 public:
  explicit Actor(const Replica& replica) : row_(replica.index) {}
  PortSet Needs() const override { return {0}; }
  void Step(Ports& ports) override {
    const float parameter = ports.Read(0).body.At("w").data<float>()[0];
    Tensor observation = Tensor::Empty({kTicks, 1, 2}), reward = Tensor::Empty({kTicks, 1});
    Tensor type = Tensor::Empty({kTicks, 1}, DType::kUInt8);
    for (size_t t = 0; t < kTicks; ++t, ++tick_) {
      const int64_t place = (tick_ + row_) % 5;
      observation.data<float>()[2 * t] = static_cast<float>(tick_);
      observation.data<float>()[2 * t + 1] = static_cast<float>(row_);
      reward.data<float>()[t] = parameter;
      type.data<uint8_t>()[t] = tick_ == 0 || place == 0 ? 0 : place == 4 ? 2 : 1;
    }
    TensorMap steps;
    steps.Set("observation", observation);
    steps.Set("action", Tensor::Full({kTicks, 1}, static_cast<double>(row_), DType::kInt64));
    steps.Set("reward", reward);
    steps.Set("discount", Tensor::Full({kTicks, 1}, 1));
    steps.Set("type", type);
    ports.Write(0, {std::move(steps), 0});
  }
  TensorMap Save() const override {
    TensorMap state;
    state.Set("tick", Tensor::Scalar(static_cast<double>(tick_), DType::kInt64));
    return state;
  }
  void Load(const TensorMap& state) override { tick_ = state.At("tick").data<int64_t>()[0]; }

 private:
  int64_t row_, tick_ = 0;
};

// Its one parameter is a digest of all batches so far; stops after a number of chunks.
class Learner final : public Fragment {
 public:
  Learner(int64_t chunks, bool prioritised) : chunks_(chunks), prioritised_(prioritised) {}
  void Start(Ports& ports) override { Publish(ports); }
  PortSet Needs() const override { return {0}; }
  void Step(Ports& ports) override {
    const Message message = ports.Read(0);
    if (HasBatch(message)) {
      ++updates_;
      digest_ = static_cast<double>(Hash(message.body) % 1000003 +
                                    static_cast<uint64_t>(digest_) * 31 % 1000003);
      if (prioritised_) {
        TensorMap answer;
        answer.Set("index", message.body.At("index"));
        answer.Set("key", message.body.At("key"));
        answer.Set("td_error", message.body.At("reward"));
        ports.Write(1, {std::move(answer), 0});
      }
    }
    if (message.body.At("last").data<uint8_t>()[0] == 0) return;
    if (++seen_ == chunks_) {
      ports.Stop("enough");
      return;
    }
    Publish(ports);
  }
  TensorMap Save() const override {
    TensorMap state;
    state.Set("state", Tensor::From<double>({3}, {digest_, static_cast<double>(updates_),
                                                  static_cast<double>(seen_)}));
    return state;
  }

 private:
  void Publish(Ports& ports) {
    TensorMap parameters;
    parameters.Set("w", Tensor::From<float>({1}, {static_cast<float>(digest_)}));
    ports.Write(0, {std::move(parameters), seen_});
  }

  int64_t chunks_;
  bool prioritised_;
  double digest_ = 1;
  int64_t updates_ = 0, seen_ = 0;
};

FragmentGraph Graph(bool prioritised, bool shared_frames, int actors) {
  ReplayFragmentOptions options;
  options.config.capacity = 40;
  options.config.batch_size = 4;
  options.config.min_size = 12;
  options.config.updates_per_step = 0.75;
  options.config.n_step = 2;
  options.config.prioritised = prioritised;
  options.config.shared_frames = shared_frames;
  options.observation = {{"observation", {2}}};
  options.carried = {{"action", {}, DType::kInt64}};
  options.rows = kRows;
  options.total_steps = 200;
  FragmentGraph graph;
  graph.Add("actor", actors,
            {.ports = {.inputs = {{.name = "parameters"}}, .outputs = {{.name = "steps"}}},
             .make = [](const Replica& replica) { return std::make_unique<Actor>(replica); }});
  graph.Add("replay", 1, MakeReplay(options));
  graph.Add("learner", 1,
            {.ports = {.inputs = {{.name = "batch"}},
                       .outputs = {{.name = "parameters", .primed = true},
                                   {.name = "priority", .optional = true}}},
             .make = [prioritised](const Replica&) {
               return std::make_unique<Learner>(40, prioritised);
             }});
  graph.Connect("actor.steps", "replay.insert", Rows(1));
  graph.Connect("replay.batch", "learner.batch", Rows());
  if (prioritised) graph.Connect("learner.priority", "replay.update", Rows());
  graph.Connect("learner.parameters", "actor.parameters", Broadcast());
  return graph;
}

TEST(ReplayGraph, GivesTheSameBatchesSeriallyAndOnThreads) {
  for (const bool prioritised : {false, true}) {
    for (const bool shared : {false, true}) {
      const FragmentGraph graph = Graph(prioritised, shared, kRows);
      const auto run = [&](const char* policy, int threads) {
        const Placement placement =
            (*DistributionPolicies().At(policy))(graph, {.threads = threads});
        const TensorMap learner = weft::Run(graph, placement, {}).cut.at("learner.0");
        EXPECT_GT(learner.At("state").data<double>()[1], 60) << "updates";
        return Hash(learner);
      };
      const uint64_t serial = run("serial", 1);
      for (int i = 0; i < 3; ++i) EXPECT_EQ(run("threads", 3), serial);
    }
  }
}

}  // namespace
}  // namespace weft
