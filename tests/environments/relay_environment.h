// A transparent environment of several agents for tests of everything around one. Runners 0 and 1
// are there from the start, anchor_0 comes with step 1; runner 0 leaves at step 2 (terminal),
// runner 1 at step 3 (cut off), the anchor at step 4 (terminal). Rewards are the actions: the first
// runner has two, the others three.
#pragma once

#include "environments/register_environment.h"

namespace weft {

class RelayEnvironment final : public MultiAgentEnvironment {
 public:
  static constexpr double kStepNanoseconds = 1e6;  // expensive: batches of it use the pool
  using Arguments = NoArguments;

  explicit RelayEnvironment(const Arguments&) : spec_(std::make_unique<EnvironmentSpec>()) {
    *spec_ = {.id = "Relay-v0",
              .observation = {{.name = "observation", .shape = {2}},
                              {.name = "noise", .shape = {}},
                              {.name = "action_mask", .shape = {3}, .dtype = DType::kUInt8}},
              .action = Discrete{.n = 3},
              .agents = {{"runner_0", 2, Discrete{.n = 2}},
                         {"runner_1", 2, Discrete{.n = 3}},
                         {"anchor_0", 2, Discrete{.n = 3}}}};
  }

  const EnvironmentSpec& spec() const override { return *spec_; }
  void Reset(Rng& rng, AgentRows out) override {
    step_ = 0;
    noise_ = rng.UniformFloat();
    for (int64_t agent = 0; agent < 2; ++agent) out.First(agent);
    Observe(out);
  }
  void Step(AgentActions actions, Rng& rng, AgentRows out) override {
    ++step_;
    noise_ = rng.UniformFloat();
    for (int64_t agent = 0; agent < 3; ++agent) {
      if (!out.active(agent)) continue;
      const auto reward = static_cast<double>(actions[agent].index());
      if (step_ == agent + 2) {
        out.Last(agent, reward, agent != 1);
      } else {
        out.Next(agent, reward);
      }
    }
    if (step_ == 1) out.First(2);
    Observe(out);
  }
  void GetState(std::vector<double>& state) const override {
    state = {static_cast<double>(step_), noise_};
  }
  void SetState(std::span<const double> state) override {
    step_ = static_cast<int64_t>(state[0]);
    noise_ = static_cast<float>(state[1]);
  }
  void Observe(AgentRows out) override {
    for (int64_t agent = 0; agent < 3; ++agent) {
      out.Leaf<float>(agent)[0] = static_cast<float>(step_);
      out.Leaf<float>(agent)[1] = static_cast<float>(agent);
      *out.Leaf<float>(agent, 1) = noise_;
      for (int64_t action = 0; action < 3; ++action)
        out.Leaf<uint8_t>(agent, 2)[action] = action < 2 || agent > 0;
    }
  }

 private:
  int64_t step_ = 0;
  float noise_ = 0;
  std::unique_ptr<EnvironmentSpec> spec_;
};

}  // namespace weft
