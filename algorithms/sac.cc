// Soft actor-critic (Haarnoja et al. 2018, "Soft actor-critic algorithms and applications"): twin
// critics, a squashed Gaussian policy, and a temperature that keeps the policy's entropy at a
// target.
//
//   environment ==timestep==> actor ==steps==> replay ==batch==> learner ==snapshot==> evaluator
//        ^=======action=========|  <==parameters======================|
//
// Synchronous: the actor takes train_every steps, then the learner as many updates as
// replay.updates_per_step makes of them. Policies act in (-1, 1); the agent maps that onto the
// bounds of the action space.
//
// B rows of a batch, O observation, A action dimensions.
#include <cmath>

#include "algorithms/off_policy.h"
#include "environments/action_map.h"
#include "environments/observation_input.h"
#include "learners/learner.h"
#include "learners/losses.h"
#include "nn/distribution_head.h"
#include "nn/q_network.h"
#include "tensor/ops.h"
#include "tensor/rng_state.h"

namespace weft {
namespace {

// ---- Config

class Sac final : public Algorithm {
 public:
  int64_t train_every = 1;
  double gamma = 0.99;
  double learning_rate = 3e-4;
  double tau = 0.005;
  int64_t policy_every = 1, target_every = 1;
  bool auto_temperature = true;
  double initial_temperature = 1.0;
  double target_entropy = 0;
  ReplayConfig replay;
  NetworkConfig network;
  OptimizerConfig optimizer;

  Sac() {
    network.hidden = {256, 256};
    network.activation = "relu";
    network.orthogonal = false;
  }

  void Fields(FieldVisitor& v) override {
    Algorithm::Fields(v);
    v.Field("train_every", train_every, "environment steps between two rounds of updates",
            Range::AtLeast(1));
    v.Field("gamma", gamma, "discount per step", Range::Between(0, 1));
    v.Field("learning_rate", learning_rate, "step size of all optimisers", Range::Positive());
    v.Field("tau", tau, "how far target critics move towards the critics at an update",
            Range::Between(0, 1));
    v.Field("policy_every", policy_every, "critic updates between two policy updates",
            Range::AtLeast(1));
    v.Field("target_every", target_every, "critic updates between two moves of the target critics",
            Range::AtLeast(1));
    v.Field("auto_temperature", auto_temperature, "adapt the temperature to target_entropy");
    v.Field("initial_temperature", initial_temperature, "the temperature at first, or throughout",
            Range::Positive());
    v.Field("target_entropy", target_entropy, "in nats; 0: minus the number of action dimensions");
    v.Section("replay", replay, "the replay table");
    v.Section("network", network, "policy and critics");
    v.Section("optimizer", optimizer, "the optimisers");
  }

  void Check() const override {
    Algorithm::Check();
    const Space action = environment.Spec().action;
    if (action.As<Box>() == nullptr || !action.bounded()) {
      throw ConfigProblem(
          "environment.id",
          environment.id + " has the actions " + action.ToString() +
              "; sac needs a Box with finite bounds (the wrapper clip_action can give "
              "bounds), dqn takes Discrete ones, ppo both");
    }
    CheckOffPolicy(*this, replay, train_every);
    if (network.recurrent != "none")
      throw ConfigProblem("network.recurrent", "sac has no recurrent form");
    if (replay.prioritised) throw ConfigProblem("replay.prioritised", "sac draws uniformly");
  }

  void Build(FragmentGraph& graph) const override;
  std::unique_ptr<Agent> MakeAgent(int64_t rows) const override;
};

// The policy network. Parameters: policy.*, policy.head.*
class Policy final : public Module {
 public:
  Policy(const Sac& config, const Shape& observation, const DistributionSpec& actions, Rng& rng)
      : trunk_(config.network, observation, rng),
        head_(actions, trunk_.out(), config.network.head_initialisation(0.01), 0, rng) {}

  Distribution Forward(const Tensor& x) const { return head_.Forward(trunk_.Forward(x)); }

  std::string ExportMode(OnnxGraph& graph, const std::string& x) const {
    OnnxState none;
    return head_.ExportMode(graph, "policy.head.", trunk_.Export(graph, "policy.", x, none));
  }

  void Collect(std::string_view prefix, std::vector<NamedParameter>& out) override {
    trunk_.Collect(std::string(prefix) + "policy.", out);
    head_.Collect(std::string(prefix) + "policy.head.", out);
  }

 private:
  Trunk trunk_;
  DistributionHead head_;
};

// What agent and learner build alike.
struct Parts {
  explicit Parts(const Sac& config)
      : spec(config.environment.Spec()),
        input(spec, config.environment.normalise_observation),
        actions(DistributionFor(spec.action, /*squashed=*/true, /*state_dependent_std=*/true)),
        rng(config.seed, Purpose::kInitialise),
        policy(config, input.shape(), actions, rng) {}

  EnvironmentSpec spec;
  ObservationInput input;
  DistributionSpec actions;
  Rng rng;
  Policy policy;
};

// ---- Agent

class SacAgent final : public Agent {
 public:
  explicit SacAgent(const Sac& config)
      : parts_(config),
        parameters_(parts_.policy.Parameters()),
        map_(parts_.spec.action, /*squashed=*/true),
        warm_up_(config.replay.min_size) {}

  void Load(const TensorMap& snapshot) override {
    AdoptSnapshot(parameters_, snapshot.Extract("network"));
  }

  void Act(const ActRequest& request, TensorMap& chosen) override {
    Tensor action;  // [N, A] in (-1, 1)
    if (request.explore && request.env_steps < warm_up_) {
      action = Uniform(request.rngs);
    } else {
      const Distribution policy = parts_.policy.Forward(parts_.input(request.step, 1));
      action = request.explore ? policy.Sample(policy.Noise(request.rngs)) : policy.Mode();
    }
    chosen.Set("action", map_(action));
    chosen.Set("policy_action", std::move(action));
  }

  void Export(OnnxGraph& graph) const override {
    map_.Export(graph, parts_.policy.ExportMode(graph, parts_.input.Export(graph)));
  }

 private:
  Tensor Uniform(std::span<Rng> rngs) const {
    const int64_t size = parts_.actions.sizes[0];
    Tensor action = Tensor::Empty({static_cast<int64_t>(rngs.size()), size});
    for (size_t row = 0; row < rngs.size(); ++row) {
      for (int64_t a = 0; a < size; ++a) {
        action.data<float>()[row * size + a] = static_cast<float>(rngs[row].Uniform(-1.0, 1.0));
      }
    }
    return action;
  }

  Parts parts_;
  std::vector<NamedParameter> parameters_;
  const ActionMap map_;
  const int64_t warm_up_;  // steps of uniform actions before learning starts
};

// ---- Learner

// The two critics. Parameters: critic1.*, critic2.*
class TwinCritic final : public Module {
 public:
  TwinCritic(const Sac& config, int64_t observation, int64_t actions, Rng& rng)
      : first_(config.network, observation, actions, rng),
        second_(config.network, observation, actions, rng) {}

  struct Values {
    Tensor first, second;  // [B]
  };
  Values Forward(const Tensor& x, const Tensor& action) const {
    return {first_.Forward(x, action), second_.Forward(x, action)};
  }

  void Collect(std::string_view prefix, std::vector<NamedParameter>& out) override {
    first_.Collect(std::string(prefix) + "critic1.", out);
    second_.Collect(std::string(prefix) + "critic2.", out);
  }

 private:
  ContinuousQNetwork first_, second_;
};

class SacLearner final : public Learner {
 public:
  explicit SacLearner(const Sac& config)
      : Learner(config.LearnerSettings()),
        config_(config),
        parts_(config),
        critic_(config, parts_.input.shape().elements(), parts_.actions.sizes[0], parts_.rng),
        target_(config, parts_.input.shape().elements(), parts_.actions.sizes[0], parts_.rng),
        log_alpha_(Tensor::Full({1}, std::log(config.initial_temperature))),
        policy_parameters_(parts_.policy.Parameters()),
        critic_parameters_(critic_.Parameters()),
        target_parameters_(target_.Parameters()),
        alpha_parameters_{{"log_alpha", &log_alpha_}},
        policy_optimizer_(config.optimizer, policy_parameters_),
        critic_optimizer_(config.optimizer, critic_parameters_),
        alpha_optimizer_(config.optimizer, alpha_parameters_),
        tape_(Pointers(All())),
        policy_handles_(Handles(policy_parameters_)),
        critic_handles_(Handles(critic_parameters_)),
        alpha_handles_(Handles(alpha_parameters_)),
        snapshots_(policy_parameters_),
        target_entropy_(config.target_entropy != 0 ? config.target_entropy
                                                   : -static_cast<double>(parts_.actions.sizes[0])),
        noise_(config.seed, Purpose::kLearner) {
    CopyParameters(critic_parameters_, target_parameters_);
  }

 protected:
  Learned Learn(const Message& message, weft::Ports& ports) override {
    const BatchFacts facts(message);
    if (facts.has_batch) Improve(message.body, ports);
    return {.env_steps = facts.env_steps, .publish = facts.last};
  }

  TensorMap Snapshot() override {
    TensorMap snapshot;
    snapshot.Merge("network", snapshots_.Take());
    return snapshot;
  }

  TensorMap CopyPolicy() const override {
    TensorMap policy;
    policy.Merge("network", CopyState(policy_parameters_));
    return policy;
  }

  void LoadPolicy(const TensorMap& policy) override {
    LoadState(policy_parameters_, policy.Extract("network"));
  }

  TensorMap SaveRest() const override {
    TensorMap state;
    state.Merge("critic", CopyState(critic_parameters_));
    state.Merge("target", CopyState(target_parameters_));
    state.Merge("policy_optimizer", policy_optimizer_.Save());
    state.Merge("critic_optimizer", critic_optimizer_.Save());
    state.Merge("alpha_optimizer", alpha_optimizer_.Save());
    state.Set("log_alpha", log_alpha_.Clone());
    state.Set("noise", SavePositions({&noise_, 1}));
    state.Set("updates", Tensor::From<int64_t>({1}, {updates_}));
    return state;
  }

  void LoadRest(const TensorMap& state) override {
    LoadState(critic_parameters_, state.Extract("critic"));
    LoadState(target_parameters_, state.Extract("target"));
    policy_optimizer_.Load(state.Extract("policy_optimizer"));
    critic_optimizer_.Load(state.Extract("critic_optimizer"));
    alpha_optimizer_.Load(state.Extract("alpha_optimizer"));
    log_alpha_.CopyFrom(state.At("log_alpha"));
    LoadPositions(state.At("noise"), {&noise_, 1});
    updates_ = state.At("updates").data<int64_t>()[0];
  }

 private:
  std::vector<NamedParameter> All() const {
    std::vector<NamedParameter> all = policy_parameters_;
    all.insert(all.end(), critic_parameters_.begin(), critic_parameters_.end());
    all.insert(all.end(), alpha_parameters_.begin(), alpha_parameters_.end());
    return all;
  }

  void Improve(const TensorMap& batch, weft::Ports& ports) {
    const Tensor x_tm1 = parts_.input(batch, 1);         // [B, O]
    const Tensor x_t = parts_.input(batch, 1, "next_");  // [B, O]
    const int64_t rows = x_t.dim(0);
    const Tensor weight = MeanWeights({}, rows, static_cast<double>(rows));  // [B]
    const Tensor alpha = Exp(log_alpha_.Detach());                           // [1]

    const Distribution next_policy = parts_.policy.Forward(x_t);
    const SampledAction next = next_policy.SampleWithLogProb(next_policy.Noise(noise_));
    const auto next_q = target_.Forward(x_t, next.action);  // [B] each
    const Tensor target = SacTarget(batch.At("reward"), batch.At("discount"), next_q.first,
                                    next_q.second, next.log_prob, alpha);  // [B]

    const Tape::Recording recording(tape_);
    const auto q = critic_.Forward(x_tm1, batch.At("policy_action"));  // [B] each
    const Tensor critic_loss =
        WeightedSum(TwinCriticLoss(q.first, q.second, target), weight);  // []
    Minimise(tape_, critic_loss, critic_optimizer_, critic_handles_, config_.learning_rate, 0,
             ports);

    if (updates_ % config_.policy_every == 0) ImprovePolicy(x_tm1, alpha, weight, ports);
    if (updates_ % config_.target_every == 0) {
      LerpParameters(static_cast<float>(config_.tau), critic_parameters_, target_parameters_);
    }
    if (updates_++ % kReportEvery == 0) {
      ports.Log("critic_loss", critic_loss.Item());
      ports.Log("q_mean", Mean(q.first).Item());
    }
  }

  // Equations 7 and 18, on the recording of this update. The critics are constants of the policy's
  // loss.
  void ImprovePolicy(const Tensor& x, const Tensor& alpha, const Tensor& weight,
                     weft::Ports& ports) {
    const Distribution policy = parts_.policy.Forward(x);
    const SampledAction draw = policy.SampleWithLogProb(policy.Noise(noise_));  // [B, A], [B]
    const auto q = critic_.Forward(x, draw.action);                             // [B] each
    const Tensor policy_loss =
        WeightedSum(SacActorLoss(draw.log_prob, q.first, q.second, alpha), weight);  // []
    Minimise(tape_, policy_loss, policy_optimizer_, policy_handles_, config_.learning_rate, 0,
             ports);
    if (config_.auto_temperature) {
      const Tensor loss =
          Sum(TemperatureLoss(log_alpha_, draw.log_prob.Detach(), weight, target_entropy_));  // []
      Minimise(tape_, loss, alpha_optimizer_, alpha_handles_, config_.learning_rate, 0, ports);
    }
    if (updates_ % kReportEvery == 0) {
      ports.Log("policy_loss", policy_loss.Item());
      ports.Log("entropy", -Mean(draw.log_prob).Item());
      ports.Log("temperature", alpha.Item());
    }
  }

  static constexpr int64_t kReportEvery = 64;  // updates between metrics

  const Sac& config_;
  Parts parts_;
  TwinCritic critic_, target_;
  Tensor log_alpha_;  // [1]
  std::vector<NamedParameter> policy_parameters_, critic_parameters_, target_parameters_,
      alpha_parameters_;
  Optimizer policy_optimizer_, critic_optimizer_, alpha_optimizer_;
  Tape tape_;
  std::vector<Tensor> policy_handles_, critic_handles_, alpha_handles_;
  SnapshotPool snapshots_;
  const double target_entropy_;
  Rng noise_;
  int64_t updates_ = 0;
};

// ---- Build

void Sac::Build(FragmentGraph& graph) const {
  const int64_t size = static_cast<int64_t>(environment.Spec().action.As<Box>()->low.size());
  BuildOffPolicy(
      graph, *this, replay,
      {.train_every = train_every, .gamma = gamma, .chosen = {{"policy_action", {size}}}},
      {.ports = Learner::Ports("batch"),
       .make = [this](const Replica&) { return std::make_unique<SacLearner>(*this); }});
}

std::unique_ptr<Agent> Sac::MakeAgent(int64_t) const {
  return std::make_unique<SacAgent>(*this);
}

WEFT_REGISTER_ALGORITHM(Sac, "sac",
                        "soft actor-critic: off-policy, continuous actions, automatic temperature");

}  // namespace
}  // namespace weft
