// Small graphs whose every message matters: integer arithmetic that any lost, doubled, reordered or
// foreign row changes.
//
// Relay:  source (W replicas) ==contract==> stage (R) ==Rows==> judge (1); the judge folds all it
// gets into one number and
//         stops after `steps` messages.
// Loop:   world (W) ==Rows==> agent (W) ==Rows(1)==> centre (L, joined by Reduce) ==Broadcast==>
// agent, and agent ==Rows==>
//         world: the shape of a synchronous training loop, with two phases in the agent.
#pragma once

#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

#include "dataflow/fragment_graph.h"
#include "dataflow/placement.h"
#include "dataflow/runtime.h"

namespace weft::testing {

constexpr int64_t kRows = 8;  // of the logical tensor, over all replicas

inline int64_t Mix(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * 6364136223846793005ULL +
                              static_cast<uint64_t>(b) + 1442695040888963407ULL) >>
         1;
}

inline Tensor Integer(int64_t value) {
  return Tensor::From<int64_t>(Shape{1}, {value});
}

// A message whose leaves hold `rows` (row numbers) in dimension dim, three leaves of different type
// and shape.
inline Message RowMessage(int dim, const std::vector<int64_t>& rows, int64_t version) {
  const auto n = static_cast<int64_t>(rows.size());
  Message message;
  message.version = version;
  Tensor wide = Tensor::Empty(dim == 0 ? Shape{n, 3} : Shape{3, n}, DType::kInt64);
  Tensor narrow = Tensor::Empty(dim == 0 ? Shape{n} : Shape{2, n, 2}, DType::kFloat32);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < 3; ++j)
      wide.data<int64_t>()[dim == 0 ? i * 3 + j : j * n + i] = Mix(rows[i], j);
    if (dim == 0) {
      narrow.data<float>()[i] = static_cast<float>(rows[i] % 1024);
    } else {
      for (int64_t j = 0; j < 4; ++j) {
        narrow.data<float>()[(j / 2) * n * 2 + i * 2 + j % 2] =
            static_cast<float>((rows[i] + j) % 1024);
      }
    }
  }
  message.body.Set("wide", wide);
  message.body.Set("narrow", narrow);
  return message;
}

struct RelayOptions {
  int writers = 1, readers = 1, steps = 20;
  Contract contract = Rows();
};

class Source final : public Fragment {
 public:
  Source(const Replica& replica, RelayOptions options) : replica_(replica), options_(options) {}
  PortSet Needs() const override { return {}; }
  void Step(Ports& ports) override {
    ++step_;
    const int64_t rows = kRows / replica_.count;
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < rows; ++i) {
      numbers.push_back(Mix(step_, replica_.index * rows + i + replica_.incarnation * 1000));
    }
    ports.Write(0, RowMessage(options_.contract.dim, numbers, step_));
  }
  TensorMap Save() const override {
    TensorMap state;
    state.Set("step", Integer(step_));
    return state;
  }
  void Load(const TensorMap& state) override { step_ = state.At("step").data<int64_t>()[0]; }

 private:
  const Replica replica_;
  const RelayOptions options_;
  int64_t step_ = 0;
};

// Multiplies every element into a running number per row and sends the numbers on, one leaf of
// [rows].
class Stage final : public Fragment {
 public:
  Stage(const Replica&, RelayOptions options) : options_(options) {}
  PortSet Needs() const override { return {0}; }
  void Step(Ports& ports) override {
    const Message message = ports.Read(0);
    const Tensor& wide = message.body.At("wide");
    const Tensor& narrow = message.body.At("narrow");
    const int dim = options_.contract.dim;
    const int64_t rows = wide.dim(dim);
    state_.resize(static_cast<size_t>(rows), 1);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < 3; ++j) {
        state_[i] = Mix(state_[i], wide.data<int64_t>()[dim == 0 ? i * 3 + j : j * rows + i]);
      }
      const int64_t at = dim == 0 ? i : rows * 2 + i * 2 + 1;
      state_[i] = Mix(state_[i], static_cast<int64_t>(narrow.data<float>()[at]));
    }
    Message out{.body = {}, .version = message.version};
    out.body.Set("rows", Tensor::From<int64_t>(Shape{rows}, std::span<const int64_t>(state_)));
    ports.Write(0, std::move(out));
  }
  TensorMap Save() const override {
    TensorMap state;
    state.Set("rows", Tensor::From<int64_t>(Shape{static_cast<int64_t>(state_.size())},
                                            std::span<const int64_t>(state_)));
    return state;
  }
  void Load(const TensorMap& state) override {
    const auto rows = state.At("rows").data<int64_t>();
    state_.assign(rows.begin(), rows.end());
  }

 private:
  const RelayOptions options_;
  std::vector<int64_t> state_;
};

class Judge final : public Fragment {
 public:
  explicit Judge(int steps) : steps_(steps) {}
  PortSet Needs() const override { return {0}; }
  void Step(Ports& ports) override {
    const Message message = ports.Read(0);
    number_ = Mix(number_, message.version);
    for (const int64_t row : message.body.At("rows").data<int64_t>()) number_ = Mix(number_, row);
    ++step_;
    ports.Log("judged", static_cast<double>(step_));
    if (step_ == steps_) ports.Stop("judged all");
  }
  TensorMap Save() const override {
    TensorMap state;
    state.Set("number", Integer(number_));
    state.Set("step", Integer(step_));
    return state;
  }
  void Load(const TensorMap& state) override {
    number_ = state.At("number").data<int64_t>()[0];
    step_ = state.At("step").data<int64_t>()[0];
  }

 private:
  const int steps_;
  int64_t number_ = 1, step_ = 0;
};

inline FragmentGraph Relay(RelayOptions options) {
  FragmentGraph graph;
  graph.Add(
      "source", options.writers,
      {.ports = {.inputs = {}, .outputs = {{"rows"}}},
       .make = [options](
                   const Replica& replica) { return std::make_unique<Source>(replica, options); }},
      Role::kWorker);
  graph.Add("stage", options.readers,
            {.ports = {.inputs = {{"rows"}}, .outputs = {{"rows"}}},
             .make = [options](const Replica& replica) {
               return std::make_unique<Stage>(replica, options);
             }});
  graph.Add("judge", 1,
            {.ports = {.inputs = {{"rows"}}, .outputs = {}},
             .make = [options](const Replica&) { return std::make_unique<Judge>(options.steps); }});
  graph.Connect("source.rows", "stage.rows", options.contract);
  graph.Connect("stage.rows", "judge.rows", Rows());
  return graph;
}

struct LoopOptions {
  int workers = 4, centres = 1;
  int steps = 6;    // updates until the centre stops
  int horizon = 3;  // world steps per batch
  int max_lag = 0;
  int checkpoint_every = 0;    // updates
  int throw_at = 0;            // the update at which centre 0 throws
  int crash_at = 0;            // the step at which a replica kills its process, once
  int crash_node = 0;          // which: 0 for world, 1 for agent, 2 for centre
  int pause_microseconds = 0;  // that an agent rests in each step
};

// Kills the process that replica 0 is in, in its first life.
inline void Crash(const Replica& replica) {
  if (replica.index == 0 && replica.incarnation == 0) std::raise(SIGKILL);
}

class World final : public Fragment {
 public:
  World(const Replica& replica, LoopOptions options) : replica_(replica), options_(options) {
    for (int64_t i = 0; i < kRows / replica.count; ++i) {
      state_.push_back(Mix(replica.index * (kRows / replica.count) + i, replica.incarnation));
    }
  }
  void Start(Ports& ports) override { Send(ports); }
  PortSet Needs() const override { return {0}; }
  void Step(Ports& ports) override {
    if (options_.crash_node == 0 && ++step_ == options_.crash_at) Crash(replica_);
    const Message message = ports.Read(0);
    const auto actions = message.body.At("action").data<int64_t>();
    for (size_t i = 0; i < state_.size(); ++i) state_[i] = Mix(state_[i], actions[i]);
    Send(ports);
  }
  TensorMap Save() const override {
    TensorMap state;
    state.Set("state", Rows());
    return state;
  }
  void Load(const TensorMap& state) override {
    const auto rows = state.At("state").data<int64_t>();
    state_.assign(rows.begin(), rows.end());
  }

 private:
  Tensor Rows() const {
    return Tensor::From<int64_t>(Shape{static_cast<int64_t>(state_.size())},
                                 std::span<const int64_t>(state_));
  }
  void Send(Ports& ports) {
    Message message;
    message.body.Set("state", Rows());
    ports.Write(0, std::move(message));
  }

  const Replica replica_;
  const LoopOptions options_;
  std::vector<int64_t> state_;
  int64_t step_ = 0;
};

// Inputs state, weights; outputs action, batch [horizon, rows].
class Agent final : public Fragment {
 public:
  Agent(const Replica& replica, LoopOptions options) : replica_(replica), options_(options) {}
  PortSet Needs() const override {
    if (pending_ || fresh_) return {1};
    return {0};
  }
  void Step(Ports& ports) override {
    if (options_.crash_node == 1 && ++step_ == options_.crash_at) Crash(replica_);
    if (options_.pause_microseconds > 0) usleep(static_cast<unsigned>(options_.pause_microseconds));
    if (pending_ || fresh_) {  // takes weights, then acts on the state that waits
      const Message message = ports.Read(1);
      weights_ = message.body.At("weights").Clone();
      version_ = message.version;
      fresh_ = false;
      if (pending_) Act(ports);
      pending_ = false;
      return;
    }
    const Message message = ports.Read(0);
    const auto state = message.body.At("state").data<int64_t>();
    state_.assign(state.begin(), state.end());
    if (static_cast<int>(history_.size()) == options_.horizon * static_cast<int>(state_.size())) {
      Message batch{.body = {}, .version = version_};
      batch.body.Set("batch", Tensor::From<int64_t>(
                                  Shape{options_.horizon, static_cast<int64_t>(state_.size())},
                                  std::span<const int64_t>(history_)));
      history_.clear();
      ports.Write(1, std::move(batch));
      pending_ = true;
      return;
    }
    Act(ports);
  }
  TensorMap Save() const override {
    TensorMap state;
    state.Set("history", Vector(history_));
    state.Set("state", Vector(state_));
    if (weights_.defined()) state.Set("weights", weights_);
    state.Set("flags", Tensor::From<int64_t>(Shape{3}, {version_, pending_, fresh_}));
    return state;
  }
  void Load(const TensorMap& state) override {
    const auto copy = [&state](const char* name, std::vector<int64_t>* out) {
      const auto values = state.At(name).data<int64_t>();
      out->assign(values.begin(), values.end());
    };
    copy("history", &history_);
    copy("state", &state_);
    if (state.Has("weights")) weights_ = state.At("weights").Clone();
    const auto flags = state.At("flags").data<int64_t>();
    version_ = flags[0];
    pending_ = flags[1] != 0;
    fresh_ = flags[2] != 0;
  }

 private:
  static Tensor Vector(const std::vector<int64_t>& values) {
    return Tensor::From<int64_t>(Shape{static_cast<int64_t>(values.size())},
                                 std::span<const int64_t>(values));
  }
  void Act(Ports& ports) {
    std::vector<int64_t> actions;
    for (const int64_t state : state_) {
      actions.push_back(Mix(state, static_cast<int64_t>(weights_.data<float>()[state & 3] * 1024)));
    }
    history_.insert(history_.end(), actions.begin(), actions.end());
    Message message;
    message.body.Set("action", Vector(actions));
    ports.Write(0, std::move(message));
  }

  const Replica replica_;
  const LoopOptions options_;
  int step_ = 0;
  std::vector<int64_t> history_, state_;
  Tensor weights_;
  int64_t version_ = 0;
  bool pending_ = false, fresh_ = true;
};

// Input batch; outputs weights. The sum over replicas is of floats, so its order shows.
class Centre final : public Fragment {
 public:
  Centre(const Replica& replica, LoopOptions options)
      : replica_(replica),
        options_(options),
        weights_(Tensor::From<float>(Shape{4}, {0.1f, 0.2f, 0.3f, 0.4f})) {}
  void Start(Ports& ports) override { Publish(ports); }
  PortSet Needs() const override { return {0}; }
  void Step(Ports& ports) override {
    const Message message = ports.Read(0);
    if (options_.crash_node == 2 && version_ + 1 == options_.crash_at) Crash(replica_);
    if (options_.throw_at == version_ + 1 && replica_.index == 0) {
      throw Error(ErrorCode::kDiverged, "the loss is NaN");
    }
    std::vector<Tensor> gradient = {Tensor::Zeros(Shape{4}), Tensor::Zeros(Shape{})};
    for (const int64_t value : message.body.At("batch").data<int64_t>()) {
      gradient[0].data<float>()[value & 3] += static_cast<float>(value % 1000003) * 1.37e-5f;
      gradient[1].data<float>()[0] += 1.0f;
    }
    ports.AllReduce(std::span(gradient).first(1));
    ports.AllReduce(std::span(gradient).last(1));
    for (int i = 0; i < 4; ++i) {
      weights_.data<float>()[i] =
          weights_.data<float>()[i] * 0.9f + gradient[0].data<float>()[i] * 0.1f;
    }
    count_ += static_cast<int64_t>(gradient[1].data<float>()[0]);
    ++version_;
    Publish(ports);
    ports.Log("count", static_cast<double>(count_));
    if (options_.checkpoint_every > 0 && version_ % options_.checkpoint_every == 0 &&
        replica_.index == 0) {
      ports.RequestCheckpoint();
    }
    if (version_ == options_.steps) ports.Stop("updates done");
  }
  TensorMap Save() const override {
    TensorMap state;
    state.Set("weights", weights_);
    state.Set("counts", Tensor::From<int64_t>(Shape{2}, {version_, count_}));
    return state;
  }
  void Load(const TensorMap& state) override {
    weights_ = state.At("weights").Clone();
    version_ = state.At("counts").data<int64_t>()[0];
    count_ = state.At("counts").data<int64_t>()[1];
  }

 private:
  void Publish(Ports& ports) {
    Message message{.body = {}, .version = version_};
    message.body.Set("weights", weights_.Clone());
    ports.Write(0, std::move(message));
  }

  const Replica replica_;
  const LoopOptions options_;
  Tensor weights_;
  int64_t version_ = 0, count_ = 0;
};

inline FragmentGraph Loop(LoopOptions options) {
  FragmentGraph graph;
  graph.Add(
      "world", options.workers,
      {.ports = {.inputs = {{"action"}}, .outputs = {{.name = "state", .primed = true}}},
       .make =
           [options](const Replica& replica) { return std::make_unique<World>(replica, options); }},
      Role::kWorker);
  graph.Add(
      "agent", options.workers,
      {.ports = {.inputs = {{"state"}, {"weights"}}, .outputs = {{"action"}, {"batch"}}},
       .make =
           [options](const Replica& replica) { return std::make_unique<Agent>(replica, options); }},
      Role::kWorker);
  graph.Add("centre", options.centres,
            {.ports = {.inputs = {{"batch"}}, .outputs = {{.name = "weights", .primed = true}}},
             .make = [options](const Replica& replica) {
               return std::make_unique<Centre>(replica, options);
             }});
  graph.Connect("world.state", "agent.state", Rows());
  graph.Connect("agent.action", "world.action", Rows());
  graph.Connect("agent.batch", "centre.batch", Rows(1));
  graph.Connect("centre.weights", "agent.weights", Broadcast(options.max_lag));
  if (options.centres > 1) graph.Connect("centre.gradient", "centre.gradient", Reduce());
  return graph;
}

// Every replica on a runner chosen by the digits of `code`; runner r is in process r % processes.
inline Placement Scatter(const FragmentGraph& graph, int runners, int processes, uint64_t code) {
  Placement placement;
  placement.processes = processes;
  placement.runners.resize(static_cast<size_t>(runners));
  for (int r = 0; r < runners; ++r) placement.runners[r].process = r % processes;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    for (int i = 0; i < graph.nodes()[n].replicas; ++i) {
      placement.runners[code % static_cast<uint64_t>(runners)].members.emplace_back(
          static_cast<int>(n), i);
      code = code * 6364136223846793005ULL + 1442695040888963407ULL;
      code ^= code >> 29;
    }
  }
  std::erase_if(placement.runners,
                [](const Placement::Runner& runner) { return runner.members.empty(); });
  return placement;
}

inline Placement Policy(const std::string& name, const FragmentGraph& graph, int threads,
                        int processes = 1) {
  return DistributionPolicies().At(name)(graph, {.threads = threads, .processes = processes});
}

// Own memory: what a cut holds is overwritten when the run goes on.
inline Cut Clone(const Cut& cut) {
  Cut clone;
  for (const auto& [key, map] : cut) {
    for (const auto& [name, tensor] : map) clone[key].Set(name, tensor.Clone());
    clone[key];
  }
  return clone;
}

}  // namespace weft::testing
