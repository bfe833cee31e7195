// Several agents in one world, in the semantics of PettingZoo's parallel API: all act at once, and
// each has an observation, a reward and an end of its own.
//
// A batch of N such environments with G agents has N * G rows, the agent innermost: row n * G + g
// is agent g of environment n, in the order of spec().agents. So one policy for all agents is what
// happens when nothing else is done, and [N * G, ..] reshaped to [N, G * ..] is what a centralised
// critic sees. Rows are as wide as the widest agent: shorter observations end in zeros; where
// agents have different numbers of discrete actions the leaf action_mask allows each its own;
// elements of a longer real action are ignored.
//
// The step types of a row are those of its agent. It takes part from kFirst to kLast: a row that
// says kLast after kLast is absent, because its agent has left (or not come yet) while others go
// on. Such a row observes zeros with reward 0, its action is ignored, and like the autoreset's it
// is counted nowhere: not as a step, not in losses, not in returns. When all agents are at kLast
// the episode is over, and the next step resets the environment. A time limit truncates all who are
// there.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "environments/environment.h"

namespace weft {

// The actions of all agents, each in the canonical form of the row (space.h). Those of absent
// agents hold anything.
class AgentActions {
 public:
  AgentActions(const std::byte* data, int64_t bytes, DType dtype)
      : data_(data), bytes_(bytes), dtype_(dtype) {}
  ActionRow operator[](int64_t agent) const { return {data_ + agent * bytes_, dtype_}; }

 private:
  const std::byte* data_;
  int64_t bytes_;  // of one agent
  DType dtype_;
};

// The rows of a time step, one for each agent, written in place. Before Reset all agents are
// absent; before Step types are those of the last step, rewards 0 and discounts 1. What is not
// written of a row that stays absent becomes zeros.
struct AgentRows {
  std::byte* const* leaves;    // of agent 0, in the order and dtypes of the spec
  const int64_t* leaf_bytes;   // from one agent to the next
  std::span<double> reward;    // [G]
  std::span<double> discount;  // [G]
  std::span<StepType> type;    // [G]

  template <class T>
  T* Leaf(int64_t agent, size_t index = 0) const {
    return reinterpret_cast<T*>(leaves[index] + agent * leaf_bytes[index]);
  }
  bool active(int64_t agent) const { return type[static_cast<size_t>(agent)] != StepType::kLast; }

  // The agent takes part from now on.
  void First(int64_t agent) const { Set(agent, 0, 1, StepType::kFirst); }
  void Next(int64_t agent, double step_reward) const { Set(agent, step_reward, 1, StepType::kMid); }
  // The agent's last step. terminal: what follows is worth 0 to it; else it was cut off.
  void Last(int64_t agent, double step_reward, bool terminal) const {
    Set(agent, step_reward, terminal ? 0 : 1, StepType::kLast);
  }

 private:
  void Set(int64_t agent, double step_reward, double step_discount, StepType step_type) const {
    const auto g = static_cast<size_t>(agent);
    reward[g] = step_reward;
    discount[g] = step_discount;
    type[g] = step_type;
  }
};

// One instance owns its state; all its randomness comes from the Rng handed in. Time limits,
// autoreset and wrappers are not its business. Registered with
// WEFT_REGISTER_MULTI_AGENT_ENVIRONMENT, which asks of the class what BatchOf asks of an
// Environment: Arguments, a constructor from them, kStepNanoseconds.
class MultiAgentEnvironment {
 public:
  virtual ~MultiAgentEnvironment() = default;
  static constexpr double kStepNanoseconds = 1000;  // of a step of all agents; environment.h

  virtual const EnvironmentSpec& spec() const = 0;  // names the agents, one or more

  // Starts an episode: First for each agent that is there.
  virtual void Reset(Rng& rng, AgentRows out) = 0;
  // Next or Last for each agent that is there, First for those who come.
  virtual void Step(AgentActions actions, Rng& rng, AgentRows out) = 0;

  // As of Environment.
  virtual void GetState(std::vector<double>& state) const = 0;
  virtual void SetState(std::span<const double> state) = 0;
  virtual void Observe(AgentRows out) = 0;  // leaves alone
  virtual void Render(Canvas& canvas) const;
  virtual std::string Text() const { return ""; }
  virtual void Save(Writer& out) const;
  virtual void Load(Reader& in);
};

}  // namespace weft
