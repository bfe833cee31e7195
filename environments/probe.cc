// Five probes: tiny tasks, each of which fails for one reason, so that a learner that does not
// solve one says what is broken (in the order below). They call no libm, so recorded signatures of
// learners hold on any machine. Every probe takes discrete or continuous actions.
//
//   Probe-Value-v0   one step, constant observation, reward 1. Return 1 whatever is done: the value
//   is learnt at all. Probe-Reward-v0  one step, observation c = -1 or 1, reward c. Return 0 on
//   average whatever is done; the value of the
//                    observation c is c: the value looks at the observation.
//   Probe-Credit-v0  two steps, the observation is their number, reward 0 and then 1. Return 1
//   whatever is done; the
//                    values are the discount factor and 1: reward is carried back through time.
//   Probe-Policy-v0  one step, observation c = -1 or 1. Discrete: reward 1 for action 1 at c = 1
//   and action 0 at c = -1,
//                    else -1; optimal 1, chance 0. Continuous: reward 1 - (a - c / 2)^2; optimal 1.
//   Probe-Memory-v0  observation (cue, question): (c, 0), then `delay` times (0, 0), then (0, 1),
//   where the action is
//                    judged as Probe-Policy-v0 judges it by c. Optimal 1 with recurrence. What is
//                    seen at the question does not depend on c, so without memory nothing beats
//                    chance: 0 (continuous: 0.75).
#include "environments/register_environment.h"

namespace weft {
namespace {

enum class Probe { kValue, kReward, kCredit, kPolicy, kMemory };

struct ProbeArguments : Config {
  ProbeArguments(Probe probe_kind, const char* probe_id) : probe(probe_kind), id(probe_id) {}
  void Fields(FieldVisitor& v) override {
    v.Field("continuous", continuous, "one real action in [-1, 1] instead of two discrete ones");
    if (probe == Probe::kMemory) {
      v.Field("delay", delay, "steps between the cue and the question", Range::Between(0, 1000000));
    }
  }

  Probe probe;
  const char* id;
  bool continuous = false;
  int64_t delay = 2;
};

class ProbeEnvironment final : public Environment {
 public:
  static constexpr double kStepNanoseconds = 10;
  using Arguments = ProbeArguments;

  explicit ProbeEnvironment(const Arguments& arguments)
      : probe_(arguments.probe),
        delay_(arguments.delay),
        spec_(std::make_unique<EnvironmentSpec>()) {
    *spec_ = {.id = arguments.id,
              .observation = {{.name = "observation",
                               .shape = {probe_ == Probe::kMemory ? 2 : 1},
                               .low = {-1},
                               .high = {1}}},
              .action = arguments.continuous ? Space(Box{.low = {-1}, .high = {1}})
                                             : Space(Discrete{.n = 2})};
  }

  const EnvironmentSpec& spec() const override { return *spec_; }

  void Reset(Rng& rng, StepRow out) override {
    step_ = 0;
    const bool random =
        probe_ == Probe::kReward || probe_ == Probe::kPolicy || probe_ == Probe::kMemory;
    cue_ = random && rng.Below(2) == 0 ? -1 : 1;
    Observe(out.observation);
    out.First();
  }

  void Step(ActionRow action, Rng&, StepRow out) override {
    ++step_;
    const bool last = step_ == Length();
    Observe(out.observation);
    out.Next(last ? FinalReward(action) : 0, last);
  }

  // step, cue.
  void GetState(std::vector<double>& state) const override {
    state = {static_cast<double>(step_), static_cast<double>(cue_)};
  }
  void SetState(std::span<const double> state) override {
    WEFT_CHECK_EQ(state.size(), size_t{2}) << "state of " << spec_->id;
    step_ = static_cast<int64_t>(state[0]);
    cue_ = state[1] < 0 ? -1 : 1;
  }
  void Observe(ObservationRow out) override {
    auto* values = out.Leaf<float>();
    switch (probe_) {
      case Probe::kValue:
        values[0] = 1;
        break;
      case Probe::kReward:
      case Probe::kPolicy:
        values[0] = static_cast<float>(cue_);
        break;
      case Probe::kCredit:
        values[0] = static_cast<float>(step_ == 1);
        break;
      case Probe::kMemory:
        values[0] = step_ == 0 ? static_cast<float>(cue_) : 0;
        values[1] = step_ == Length() - 1 ? 1 : 0;
        break;
    }
  }

 private:
  // Steps of an episode.
  int64_t Length() const {
    return probe_ == Probe::kMemory ? delay_ + 2 : probe_ == Probe::kCredit ? 2 : 1;
  }

  double FinalReward(ActionRow action) const {
    if (probe_ == Probe::kReward) return static_cast<double>(cue_);
    if (probe_ == Probe::kValue || probe_ == Probe::kCredit) return 1;
    if (spec_->action.As<Discrete>()) return (action.index() == 1) == (cue_ == 1) ? 1 : -1;
    const double error = action.real() - 0.5 * static_cast<double>(cue_);
    return 1 - error * error;
  }

  Probe probe_;
  int64_t delay_;
  int64_t step_ = 0;  // of the episode
  int64_t cue_ = 1;   // -1 or 1
  std::unique_ptr<EnvironmentSpec> spec_;
};

WEFT_REGISTER_ENVIRONMENT(ProbeEnvironment, "Probe-Value-v0",
                          "probe: is the value learnt at all; return 1", Probe::kValue,
                          "Probe-Value-v0")
WEFT_REGISTER_ENVIRONMENT(ProbeEnvironment, "Probe-Reward-v0",
                          "probe: does the value look at the observation; mean return 0",
                          Probe::kReward, "Probe-Reward-v0")
WEFT_REGISTER_ENVIRONMENT(ProbeEnvironment, "Probe-Credit-v0",
                          "probe: is reward carried back through time; return 1", Probe::kCredit,
                          "Probe-Credit-v0")
WEFT_REGISTER_ENVIRONMENT(ProbeEnvironment, "Probe-Policy-v0",
                          "probe: does the policy learn; optimal return 1, chance 0",
                          Probe::kPolicy, "Probe-Policy-v0")
WEFT_REGISTER_ENVIRONMENT(ProbeEnvironment, "Probe-Memory-v0",
                          "probe: does the policy remember; optimal return 1, without memory 0",
                          Probe::kMemory, "Probe-Memory-v0")

}  // namespace
}  // namespace weft
