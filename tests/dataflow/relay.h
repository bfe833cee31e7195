// Relay: source (W replicas) ==contract==> stage (R) ==Rows==> judge (1). The judge folds all it
// gets into one number and stops after `steps` messages.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dataflow/fragment_graph.h"
#include "tests/dataflow/graphs.h"

namespace weft::testing {

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

}  // namespace weft::testing
