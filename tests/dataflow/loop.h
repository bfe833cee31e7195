// Loop: world (W replicas) ==Rows==> agent (W) ==Rows(1)==> centre (L, joined by Reduce)
// ==Broadcast==> agent, and agent
// ==Rows==> world: the shape of a synchronous training loop, with two phases in the agent.
#pragma once

#include <csignal>
#include <cstdint>
#include <memory>
#include <unistd.h>
#include <vector>

#include "base/check.h"
#include "dataflow/fragment_graph.h"
#include "tests/dataflow/graphs.h"

namespace weft::testing {

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
  std::string Activity() const override { return options_.pause_microseconds > 0 ? "rests" : ""; }
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

}  // namespace weft::testing
