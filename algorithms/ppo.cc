// Proximal policy optimisation (Schulman et al. 2017), with the details that make it work (Huang et
// al. 2022, "The 37 implementation details of PPO").
//
//   environment ==timestep==> actor ==rollout==> learner ==snapshot==> evaluator
//        ^=======action=========|  <==parameters====|
//
// On-policy in lockstep: actors wait for the parameters that their last rollout made. The actor's
// network and the learner's are the same code on the same kernels, so the ratio of the first
// minibatch is exactly 1.
//
// T rollout steps, N environment rows, B minibatch rows, A action dimensions.
#include <algorithm>
#include <numeric>

#include "actors/actor.h"
#include "actors/policy_agent.h"
#include "actors/rollout_recorder.h"
#include "algorithms/algorithm.h"
#include "environments/environment_fragment.h"
#include "learners/learner.h"
#include "learners/losses.h"
#include "learners/rollout.h"
#include "nn/schedule.h"
#include "tensor/ops.h"
#include "tensor/rng_state.h"

namespace weft {
namespace {

// ---- Config

class Ppo final : public Algorithm {
 public:
  int64_t rollout_steps = 2048;
  int64_t minibatch = 64;
  int64_t epochs = 10;
  double gamma = 0.99, lambda = 0.95;
  double learning_rate = 3e-4;
  std::string learning_rate_schedule = "constant";
  double clip = 0.2;
  std::string clip_schedule = "constant";
  double value_clip = 0;
  double value_coefficient = 0.5, entropy_coefficient = 0;
  double max_gradient_norm = 0.5;
  double target_kl = 0;
  bool normalise_advantages = true;
  double initial_log_std = 0;
  int64_t learners = 1;
  std::string critic = "observation";
  NetworkConfig network;
  OptimizerConfig optimizer;

  Ppo() { optimizer.epsilon = 1e-5; }  // Huang et al. 2022, detail 3

  void Fields(FieldVisitor& v) override {
    Algorithm::Fields(v);
    v.Field("rollout_steps", rollout_steps, "steps of each environment row between two updates (T)",
            Range::AtLeast(1));
    v.Field("minibatch", minibatch, "transitions of one optimiser step (B)", Range::AtLeast(1));
    v.Field("epochs", epochs, "passes over a rollout", Range::AtLeast(1));
    v.Field("gamma", gamma, "discount per step", Range::Between(0, 1));
    v.Field("lambda", lambda, "bias-variance trade of the advantage estimate",
            Range::Between(0, 1));
    v.Field("learning_rate", learning_rate, "step size of the optimiser", Range::Positive());
    v.Choice("learning_rate_schedule", learning_rate_schedule, Schedule::Names(), "over the run");
    v.Field("clip", clip, "bound on the change of the policy ratio", Range::Positive());
    v.Choice("clip_schedule", clip_schedule, Schedule::Names(), "over the run");
    v.Field("value_clip", value_clip, "bound on the change of the value; 0: none",
            Range::AtLeast(0));
    v.Field("value_coefficient", value_coefficient, "weight of the mean squared value error",
            Range::AtLeast(0));
    v.Field("entropy_coefficient", entropy_coefficient, "weight of the entropy bonus",
            Range::AtLeast(0));
    v.Field("max_gradient_norm", max_gradient_norm,
            "global norm above which gradients are scaled; 0: none", Range::AtLeast(0));
    v.Field("target_kl", target_kl,
            "epochs end when the KL estimate exceeds 1.5 times this; 0: never", Range::AtLeast(0));
    v.Field("normalise_advantages", normalise_advantages,
            "to mean 0 and deviation 1 in each minibatch");
    v.Field("initial_log_std", initial_log_std, "of the Gaussian policy, a parameter",
            Range::Between(-20, 2));
    v.Field("learners", learners, "learner replicas, each on a share of every minibatch",
            Range::Between(1, 64));
    v.Choice("critic", critic, {"observation", "state"},
             "what the value network reads; state: also the environment's state, or what all its "
             "agents observe");
    v.Section("network", network, "policy and value network");
    v.Section("optimizer", optimizer, "the optimiser");
  }

  void Check() const override {
    Algorithm::Check();
    const int64_t batch = rollout_steps * environment.AgentRows();
    if (minibatch > batch) {
      throw ConfigProblem("minibatch", std::to_string(minibatch) +
                                           " is more than a rollout holds: rollout_steps x " +
                                           "rows of the environment = " + std::to_string(batch));
    }
    if (centralised()) {
      if (network.shared)
        throw ConfigProblem("network.shared", "a critic of the state has a trunk of its own");
      const EnvironmentSpec spec = environment.Spec();
      CriticInput(spec, ObservationInput(spec, {}).shape(), true);  // or it throws
    }
    if (network.recurrent != "none" && (minibatch % rollout_steps != 0)) {
      throw ConfigProblem(
          "minibatch",
          "recurrent networks learn from whole sequences: a multiple of rollout_steps = " +
              std::to_string(rollout_steps) + " is needed, such as " +
              std::to_string(rollout_steps * std::max<int64_t>(1, minibatch / rollout_steps)));
    }
    if (environment.rows % learners != 0 || minibatch % learners != 0) {
      throw ConfigProblem("learners", "must divide environment.rows and minibatch");
    }
  }

  void Build(FragmentGraph& graph) const override;
  std::unique_ptr<Agent> MakeAgent(int64_t rows) const override;
  bool centralised() const { return critic == "state"; }
  PolicyParts Parts() const { return {environment, network, initial_log_std, seed, centralised()}; }
};

// ---- Learner

class PpoLearner final : public Learner {
 public:
  PpoLearner(const Ppo& config, const Replica& replica)
      : Learner(config.LearnerSettings()),
        config_(config),
        replicas_(replica.count),
        parts_(config.Parts()),
        parameters_(parts_.network.Parameters()),
        optimizer_(config.optimizer, parameters_),
        tape_(Pointers(parameters_)),
        handles_(Handles(parameters_)),
        snapshots_(parameters_),
        learning_rate_(Schedule::Named(config.learning_rate_schedule, config.learning_rate)),
        clip_(Schedule::Named(config.clip_schedule, config.clip)),
        shuffle_(config.seed, Purpose::kLearner, static_cast<uint64_t>(replica.index)),
        normalise_rewards_(config.environment.normalise_reward, config.gamma) {}

 protected:
  Learned Learn(const Message& message, weft::Ports& ports) override {
    const Rollout rollout(message.body, parts_.input, parts_.critic, parts_.network);
    const Advantages advantages = GeneralisedAdvantages({.value = rollout.value,
                                                         .reward = normalise_rewards_(rollout),
                                                         .discount = rollout.discount,
                                                         .type = rollout.type},
                                                        config_.gamma, config_.lambda);
    const bool recurrent = parts_.network.recurrent();
    const int64_t items =
        recurrent ? rollout.rows : rollout.steps * rollout.rows;  // sequences or transitions
    const int64_t size = config_.minibatch / replicas_ / (recurrent ? rollout.steps : 1);
    Tensor order = Tensor::Empty({items}, DType::kInt64);
    Figures figures;
    for (int64_t epoch = 0; epoch < config_.epochs && !figures.stopped; ++epoch) {
      const auto numbers = order.data<int64_t>();
      std::iota(numbers.begin(), numbers.end(), int64_t{0});
      shuffle_.Shuffle(numbers);
      for (int64_t begin = 0; begin < items && !figures.stopped; begin += size) {
        const Tensor index = order.Slice(begin, std::min(begin + size, items));
        Improve(recurrent ? GatherSequences(rollout, advantages, index)
                          : GatherTransitions(rollout, advantages, index),
                figures, ports);
      }
    }
    // Only now: the actors chose, and the values were made, with the statistics before this
    // rollout.
    if (parts_.input.normalises()) parts_.input.Update(rollout.raw.Slice(0, rollout.steps));
    Report(figures, rollout, advantages, ports);
    return {.env_steps = env_steps() + static_cast<int64_t>(GlobalSum(advantages.valid, ports))};
  }

  TensorMap Snapshot() override {
    TensorMap snapshot;
    snapshot.Merge("network", snapshots_.Take());
    parts_.input.AddTo(snapshot);
    return snapshot;
  }

  TensorMap CopyPolicy() const override {
    TensorMap policy;
    policy.Merge("network", CopyState(parameters_));
    parts_.input.AddTo(policy);
    return policy;
  }

  void LoadPolicy(const TensorMap& policy) override {
    LoadState(parameters_, policy.Extract("network"));
    parts_.input.TakeFrom(policy);
  }

  TensorMap SaveRest() const override {
    TensorMap state;
    state.Merge("optimizer", optimizer_.Save());
    state.Merge("rewards", normalise_rewards_.Save());
    state.Set("shuffle", SavePositions({&shuffle_, 1}));
    return state;
  }

  void LoadRest(const TensorMap& state) override {
    optimizer_.Load(state.Extract("optimizer"));
    normalise_rewards_.Load(state.Extract("rewards"));
    LoadPositions(state.At("shuffle"), {&shuffle_, 1});
  }

 private:
  struct Figures {  // sums over minibatches, but for those of the last one
    double policy_loss = 0, value_loss = 0, entropy = 0, clip_fraction = 0;
    double last_kl = 0, last_gradient_norm = 0;
    int64_t updates = 0;
    bool stopped = false;
  };

  void Improve(const Minibatch& batch, Figures& figures, weft::Ports& ports) {
    const double clip = clip_.At(progress());
    const Tensor advantage = config_.normalise_advantages
                                 ? NormaliseAdvantages(batch.advantage, batch.valid)
                                 : batch.advantage;  // [B]
    const Tensor weight =
        MeanWeights(batch.valid, batch.valid.elements(), GlobalSum(batch.valid, ports));  // [B]

    const Tape::Recording recording(tape_);
    const ActorCritic& network = parts_.network;
    const Tensor policy_features = PolicyFeatures(network, batch);  // [B, F]
    const Tensor value_features =
        network.shared() ? policy_features : ValueFeatures(network, batch);
    const Distribution policy = network.Policy(policy_features, batch.mask);
    const Tensor value = network.Value(value_features);  // [B]
    const Surrogate surrogate =
        ClippedSurrogate(policy.LogProb(batch.action), batch.log_prob, advantage, clip);
    const Tensor policy_loss = WeightedSum(surrogate.loss, weight);  // []
    const Tensor value_loss =
        WeightedSum(ValueLoss(value, batch.returns, batch.value, config_.value_clip), weight);
    const Tensor entropy = WeightedSum(policy.Entropy(), weight);  // []
    // ValueLoss is halved; value_coefficient weighs the whole squared error.
    Tensor loss =
        Add(policy_loss, Scale(value_loss, static_cast<float>(2 * config_.value_coefficient)));
    if (config_.entropy_coefficient > 0) {
      loss = Sub(loss, Scale(entropy, static_cast<float>(config_.entropy_coefficient)));
    }

    const PolicyDivergence divergence = MeasureDivergence(surrogate, batch.valid, clip);
    figures.last_kl = divergence.kl_k3;
    if (config_.target_kl > 0 && divergence.kl_k3 > 1.5 * config_.target_kl) {
      figures.stopped = true;
      return;
    }
    figures.last_gradient_norm =
        Minimise(tape_, loss, optimizer_, handles_, learning_rate_.At(progress()),
                 config_.max_gradient_norm, ports);
    figures.policy_loss += policy_loss.Item();
    figures.value_loss += 2 * value_loss.Item();
    figures.entropy += entropy.Item();
    figures.clip_fraction += divergence.clip_fraction;
    ++figures.updates;
  }

  void Report(const Figures& figures, const Rollout& rollout, const Advantages& advantages,
              weft::Ports& ports) const {
    const auto updates = static_cast<double>(std::max<int64_t>(1, figures.updates));
    ports.Log("policy_loss", figures.policy_loss / updates);
    ports.Log("value_loss", figures.value_loss / updates);
    ports.Log("entropy", figures.entropy / updates);
    ports.Log("clip_fraction", figures.clip_fraction / updates);
    ports.Log("approx_kl", figures.last_kl);
    ports.Log("gradient_norm", figures.last_gradient_norm);
    ports.Log("explained_variance", ExplainedVariance(rollout.value.Slice(0, rollout.steps),
                                                      advantages.returns, advantages.valid));
    ports.Log("learning_rate", learning_rate_.At(progress()));
    ports.Log("clip", clip_.At(progress()));
  }

  const Ppo& config_;
  const int replicas_;
  PolicyParts parts_;
  std::vector<NamedParameter> parameters_;
  Optimizer optimizer_;
  Tape tape_;
  std::vector<Tensor> handles_;
  SnapshotPool snapshots_;
  const Schedule learning_rate_, clip_;
  Rng shuffle_;
  RewardNormaliser normalise_rewards_;
};

// ---- Build

void Ppo::Build(FragmentGraph& graph) const {
  const int replicas = ActorReplicas();
  const ActorOptions acting{.rows = environment.AgentRows(),
                            .agents = environment.Spec().agent_count(),
                            .piece_steps = rollout_steps,
                            .seed = seed};
  graph.Add("environment", replicas, EnvironmentFragment(environment, seed), Role::kWorker);
  graph.Add("actor", replicas,
            {.ports = Actor::Ports("rollout"),
             .make =
                 [this, acting](const Replica& replica) {
                   const int64_t rows = acting.rows / replica.count;
                   return std::make_unique<Actor>(replica, acting, MakeAgent(rows),
                                                  std::make_unique<RolloutRecorder>(
                                                      rollout_steps, rows, replica.index * rows));
                 }},
            Role::kWorker);
  graph.Add("learner", static_cast<int>(learners),
            {.ports = Learner::Ports("rollout"), .make = [this](const Replica& replica) {
               return std::make_unique<PpoLearner>(*this, replica);
             }});
  graph.Connect("environment.timestep", "actor.timestep", Rows());
  graph.Connect("actor.action", "environment.action", Rows());
  graph.Connect("actor.rollout", "learner.rollout", Rows(/*dim=*/1));
  graph.Connect("learner.parameters", "actor.parameters", Broadcast(/*max_lag=*/0));
  graph.Connect("learner.gradient", "learner.gradient", Reduce());
  AddEvaluator(graph);
}

std::unique_ptr<Agent> Ppo::MakeAgent(int64_t rows) const {
  return std::make_unique<PolicyAgent>(Parts(), rows);
}

WEFT_REGISTER_ALGORITHM(
    Ppo, "ppo",
    "proximal policy optimisation: on-policy, discrete and continuous actions, recurrent");

}  // namespace
}  // namespace weft
