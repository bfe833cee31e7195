// Deep Q-learning (Mnih et al. 2015) with the parts that became usual, each a switch: double (van
// Hasselt et al. 2016), dueling (Wang et al. 2016), n-step returns, prioritised replay (Schaul et
// al. 2016).
//
//   environment ==timestep==> actor ==transitions==> replay ==batch==> learner ==snapshot==>
//   evaluator
//        ^=======action=========|  <==parameters======^=====priority=====|
//
// Synchronous: the actor takes train_every steps, then the learner as many updates as
// replay.updates_per_step makes of them; batches are drawn with a generator keyed by the update, so
// placement changes nothing.
//
// B rows of a batch, N environment rows, A actions.
#include <algorithm>

#include "algorithms/off_policy.h"
#include "environments/action_map.h"
#include "environments/observation_input.h"
#include "learners/learner.h"
#include "learners/losses.h"
#include "nn/onnx.h"
#include "nn/q_network.h"
#include "nn/schedule.h"
#include "tensor/ops.h"

namespace weft {
namespace {

// ---- Config

class Dqn final : public Algorithm {
 public:
  int64_t train_every = 4;
  int64_t target_every = 10'000;
  double gamma = 0.99;
  double learning_rate = 1e-4;
  std::string learning_rate_schedule = "constant";
  double initial_epsilon = 1.0, final_epsilon = 0.05, exploration_fraction = 0.1;
  double max_gradient_norm = 10;
  bool double_q = false, dueling = false;
  ReplayConfig replay;
  NetworkConfig network;
  OptimizerConfig optimizer;

  Dqn() {
    network.activation = "relu";
    network.orthogonal = false;
  }

  void Fields(FieldVisitor& v) override {
    Algorithm::Fields(v);
    v.Field("train_every", train_every, "environment steps between two rounds of updates",
            Range::AtLeast(1));
    v.Field("target_every", target_every, "environment steps between copies to the target network",
            Range::AtLeast(1));
    v.Field("gamma", gamma, "discount per step", Range::Between(0, 1));
    v.Field("learning_rate", learning_rate, "step size of the optimiser", Range::Positive());
    v.Choice("learning_rate_schedule", learning_rate_schedule, Schedule::Names(), "over the run");
    v.Field("initial_epsilon", initial_epsilon, "share of random actions at first",
            Range::Between(0, 1));
    v.Field("final_epsilon", final_epsilon, "share of random actions later", Range::Between(0, 1));
    v.Field("exploration_fraction", exploration_fraction,
            "part of the run over which epsilon falls", Range::Positive());
    v.Field("max_gradient_norm", max_gradient_norm,
            "global norm above which gradients are scaled; 0: none", Range::AtLeast(0));
    v.Field("double", double_q,
            "the online network chooses the action that the target network values");
    v.Field("dueling", dueling, "separate heads for the value and the advantages");
    v.Section("replay", replay, "the replay table");
    v.Section("network", network, "the Q network");
    v.Section("optimizer", optimizer, "the optimiser");
  }

  void Check() const override {
    Algorithm::Check();
    if (environment.Spec().action.As<Discrete>() == nullptr) {
      throw ConfigProblem("environment.id",
                          environment.id + " has the actions " +
                              environment.Spec().action.ToString() +
                              "; dqn needs Discrete ones, sac takes a bounded Box");
    }
    CheckOffPolicy(*this, replay, train_every);
    if (network.recurrent != "none")
      throw ConfigProblem("network.recurrent", "dqn has no recurrent form");
  }

  void Build(FragmentGraph& graph) const override;
  std::unique_ptr<Agent> MakeAgent(int64_t rows) const override;
};

// What agent and learner build alike.
struct Parts {
  explicit Parts(const Dqn& config)
      : spec(config.environment.Spec()),
        input(spec, config.environment.normalise_observation),
        rng(config.seed, Purpose::kInitialise),
        network(config.network, input.shape(), spec.action.As<Discrete>()->n, config.dueling, rng) {
  }

  EnvironmentSpec spec;
  ObservationInput input;
  Rng rng;
  QNetwork network;
};

// ---- Agent

class DqnAgent final : public Agent {
 public:
  explicit DqnAgent(const Dqn& config)
      : parts_(config),
        parameters_(parts_.network.Parameters()),
        epsilon_(Schedule::Linear(config.initial_epsilon, config.final_epsilon,
                                  config.exploration_fraction)),
        total_steps_(static_cast<double>(config.total_steps)),
        warm_up_(config.replay.min_size) {}

  void Load(const TensorMap& snapshot) override {
    AdoptSnapshot(parameters_, snapshot.Extract("network"));
  }

  void Act(const ActRequest& request, TensorMap& chosen) override {
    const Tensor q = parts_.network.Forward(parts_.input(request.step, 1));  // [N, A]
    const Tensor mask = parts_.input.Mask(request.step);                     // [N, A]
    Tensor action = ArgMaxLast(AllowedValues(q, mask));                      // [N]
    if (request.explore) {
      const double epsilon =
          request.env_steps < warm_up_
              ? 1.0
              : epsilon_.At(static_cast<double>(request.env_steps) / total_steps_);
      const auto chosen_actions = action.data<int64_t>();
      for (size_t row = 0; row < chosen_actions.size(); ++row) {
        Rng& rng = request.rngs[row];
        if (rng.Uniform() >= epsilon) continue;
        if (mask.defined()) {
          const Tensor allowed = mask.Row(static_cast<int64_t>(row));
          parts_.spec.action.Sample(rng, allowed.data<uint8_t>().data(), &chosen_actions[row]);
        } else {
          parts_.spec.action.Sample(rng, &chosen_actions[row]);
        }
      }
    }
    chosen.Set("action", std::move(action));
  }

  void Export(OnnxGraph& graph) const override {
    std::string q = parts_.network.Export(graph, parts_.input.Export(graph));
    if (const std::string mask = parts_.input.ExportMask(graph); !mask.empty())
      q = graph.Node("Add", {q, mask});
    const std::string action =
        graph.Node("ArgMax", {q}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
    ActionMap(parts_.spec.action, /*squashed=*/false).Export(graph, action);
  }

 private:
  Parts parts_;
  std::vector<NamedParameter> parameters_;
  const Schedule epsilon_;
  const double total_steps_;
  const int64_t warm_up_;  // steps of random actions before learning starts
};

// ---- Learner

class DqnLearner final : public Learner {
 public:
  explicit DqnLearner(const Dqn& config)
      : Learner(config.LearnerSettings()),
        config_(config),
        online_(config),
        target_(config),
        parameters_(online_.network.Parameters()),
        target_parameters_(target_.network.Parameters()),
        optimizer_(config.optimizer, parameters_),
        tape_(Pointers(parameters_)),
        handles_(Handles(parameters_)),
        snapshots_(parameters_),
        learning_rate_(Schedule::Named(config.learning_rate_schedule, config.learning_rate)) {}

 protected:
  Learned Learn(const Message& message, weft::Ports& ports) override {
    const BatchFacts facts(message);
    if (facts.has_batch) {
      if (facts.env_steps - copied_at_ >= config_.target_every) {
        CopyParameters(parameters_, target_parameters_);
        copied_at_ = facts.env_steps;
      }
      Improve(message, ports);
    }
    return {.env_steps = facts.env_steps, .publish = facts.last};
  }

  TensorMap Snapshot() override {
    TensorMap snapshot;
    snapshot.Merge("network", snapshots_.Take());
    return snapshot;
  }

  TensorMap CopyPolicy() const override {
    TensorMap policy;
    policy.Merge("network", CopyState(parameters_));
    return policy;
  }

  void LoadPolicy(const TensorMap& policy) override {
    LoadState(parameters_, policy.Extract("network"));
    CopyParameters(parameters_, target_parameters_);
  }

  TensorMap SaveRest() const override {
    TensorMap state;
    state.Merge("optimizer", optimizer_.Save());
    state.Merge("target", CopyState(target_parameters_));
    state.Set("copied_at", Tensor::From<int64_t>({1}, {copied_at_}));
    return state;
  }

  void LoadRest(const TensorMap& state) override {
    optimizer_.Load(state.Extract("optimizer"));
    LoadState(target_parameters_, state.Extract("target"));
    copied_at_ = state.At("copied_at").data<int64_t>()[0];
  }

 private:
  void Improve(const Message& message, weft::Ports& ports) {
    const TensorMap& batch = message.body;
    const Tensor x_t = online_.input(batch, 1, "next_");                               // [B, ..]
    const Tensor mask_t = online_.input.Mask(batch, "next_");                          // [B, A]
    const Tensor next_q_target = AllowedValues(target_.network.Forward(x_t), mask_t);  // [B, A]
    const Tensor next_q_online =
        config_.double_q ? AllowedValues(online_.network.Forward(x_t), mask_t) : Tensor();
    const Tensor target =
        DqnTarget(batch.At("reward"), batch.At("discount"), next_q_target, next_q_online);  // [B]
    const int64_t rows = target.elements();
    const Tensor weight =
        Mul(batch.At("weight"), MeanWeights({}, rows, static_cast<double>(rows)));  // [B]

    const Tape::Recording recording(tape_);
    const Tensor q = online_.network.Forward(online_.input(batch, 1));  // [B, A]
    const Tensor error = TdError(q, batch.At("action"), target);        // [B]
    const Tensor loss = WeightedSum(HuberLoss(error), weight);          // []
    const double norm = Minimise(tape_, loss, optimizer_, handles_, learning_rate_.At(progress()),
                                 config_.max_gradient_norm, ports);
    if (ports.Connected(kPriority))
      ports.Write(kPriority, PriorityMessage(message, error.Detach()));
    if (++updates_ % kReportEvery == 0) {
      ports.Log("td_loss", loss.Item());
      ports.Log("q_mean", Mean(q).Item());
      ports.Log("gradient_norm", norm);
    }
  }

  static constexpr int64_t kReportEvery = 64;  // updates between metrics

  const Dqn& config_;
  Parts online_, target_;
  std::vector<NamedParameter> parameters_, target_parameters_;
  Optimizer optimizer_;
  Tape tape_;
  std::vector<Tensor> handles_;
  SnapshotPool snapshots_;
  const Schedule learning_rate_;
  int64_t copied_at_ = 0;  // environment steps at the last copy to the target network
  int64_t updates_ = 0;
};

// ---- Build

void Dqn::Build(FragmentGraph& graph) const {
  BuildOffPolicy(
      graph, *this, replay,
      {.train_every = train_every, .gamma = gamma, .chosen = {{"action", {}, DType::kInt64}}},
      {.ports = Learner::Ports("batch", /*priority=*/true),
       .make = [this](const Replica&) { return std::make_unique<DqnLearner>(*this); }});
}

std::unique_ptr<Agent> Dqn::MakeAgent(int64_t) const {
  return std::make_unique<DqnAgent>(*this);
}

WEFT_REGISTER_ALGORITHM(
    Dqn, "dqn",
    "deep Q-learning: off-policy, discrete actions; double, dueling, n-step, prioritised");

}  // namespace
}  // namespace weft
