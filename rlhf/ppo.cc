// Proximal policy optimisation of a chat model (Schulman et al. 2017; Ziegler et al. 2019; Huang et
// al. 2024, "The N implementation details of RLHF with PPO"): each token is an action, the
// divergence from the reference is a reward of every token, the score one of the last. The critic
// is a linear head on the policy's own rows: the value of what was said so far, before the next
// token.
#include <cmath>
#include <numeric>

#include "rlhf/advantages.h"
#include "rlhf/online.h"

namespace weft {
namespace {

// ---- Config

class PpoOfAnswers final : public OnlineTraining {
 public:
  std::string kl = "k1";
  double kl_target = 0;
  double kl_horizon = 10'000;
  double gamma = 1, gae_lambda = 0.95;
  double clip_low = 0.2, clip_high = 0.2, dual_clip = 0;
  double value_clip = 0.2, value_coefficient = 0.1;
  double value_learning_rate = 1e-3;
  int64_t value_warmup_steps = 0;
  double missing_eos_penalty = 0;
  double reward_clip = 0;
  bool whiten_rewards = false;
  double entropy_coefficient = 0;

  PpoOfAnswers() {
    beta = 0.05;
    epochs = 4;
    group = 1;
    prompts = 128;
  }

  void MethodFields(FieldVisitor& v) override {
    v.Field("beta", beta, "weight of the divergence from the model it began as, where it begins",
            Range::AtLeast(0));
    v.Choice("kl", kl, {"k1", "k2", "k3", "abs"}, "how the divergence of a token is estimated");
    v.Field("kl_target", kl_target, "nats an answer that beta is adapted to; 0: beta stays",
            Range::AtLeast(0));
    v.Field("kl_horizon", kl_horizon, "answers over which it adapts", Range::Positive());
    v.Field("gamma", gamma, "discount of a token", Range::Between(0, 1));
    v.Field("gae_lambda", gae_lambda, "of generalised advantage estimation", Range::Between(0, 1));
    v.Field("clip_low", clip_low, "bound on a falling ratio", Range::Between(0, 1));
    v.Field("clip_high", clip_high, "bound on a rising ratio", Range::AtLeast(0));
    v.Field("dual_clip", dual_clip, "bound on the loss of bad answers, above 1; 0: none",
            Range::AtLeast(0));
    v.Field("value_clip", value_clip, "bound on a value's change; 0: none", Range::AtLeast(0));
    v.Field("value_coefficient", value_coefficient, "weight of the critic's loss",
            Range::AtLeast(0));
    v.Field("value_learning_rate", value_learning_rate, "step size of the critic's head",
            Range::Positive());
    v.Field("value_warmup_steps", value_warmup_steps,
            "steps at the beginning in which the critic's head alone learns", Range::AtLeast(0));
    v.Field("missing_eos_penalty", missing_eos_penalty,
            "taken off the score of an answer that did not end by itself", Range::AtLeast(0));
    v.Field("reward_clip", reward_clip, "bound on scores; 0: none", Range::AtLeast(0));
    v.Field("whiten_rewards", whiten_rewards, "divide token rewards by their deviation");
    v.Field("entropy_coefficient", entropy_coefficient,
            "weight of the entropy, estimated by the tokens that were drawn", Range::AtLeast(0));
  }
  void Check() const override {
    OnlineTraining::Check();
    if (dual_clip != 0 && dual_clip <= 1) throw ConfigProblem("dual_clip", "must be above 1");
  }

  KlEstimator Estimator() const {
    if (kl == "k1") return KlEstimator::kK1;
    if (kl == "k2") return KlEstimator::kK2;
    return kl == "k3" ? KlEstimator::kK3 : KlEstimator::kAbs;
  }

 protected:
  bool needs_reference() const override {
    return OnlineTraining::needs_reference() || kl_target > 0;
  }
  std::unique_ptr<OnlineLearner> MakeLearner(const Replica& replica) const override;
};

// ---- Critic

// v = w . row + b, from zero.
class ValueHead {
 public:
  explicit ValueHead(int64_t hidden)
      : weight_(Tensor::Zeros({hidden})),
        bias_(Tensor::Zeros({1})),
        gradients_{Tensor::Zeros({hidden}), Tensor::Zeros({1})},
        parameters_{{"value.weight", &weight_}, {"value.bias", &bias_}},
        optimizer_({}, parameters_) {}
  ValueHead(const ValueHead&) = delete;
  ValueHead& operator=(const ValueHead&) = delete;

  double Of(const Tensor& rows, int64_t row) const {
    const float* const w = weight_.data<float>().data();
    double sum = bias_.data<float>()[0];
    ForRow(rows, row, [&](int64_t i, float x) { sum += static_cast<double>(w[i]) * x; });
    return sum;
  }
  // d_rows [T, H] f32 gets d times the weight added.
  void AddGradient(const Tensor& rows, int64_t row, double d, Tensor& d_rows) {
    const auto slope = static_cast<float>(d);
    const float* const w = weight_.data<float>().data();
    float* const d_w = gradients_[0].data<float>().data();
    float* const to = d_rows.data<float>().data() + row * rows.dim(1);
    ForRow(rows, row, [&](int64_t i, float x) {
      d_w[i] += slope * x;
      to[i] += slope * w[i];
    });
    gradients_[1].data<float>()[0] += slope;
  }
  void Step(double learning_rate, weft::Ports& ports) {
    ports.AllReduce(gradients_);
    optimizer_.Step(gradients_, learning_rate, Optimizer::kNoClip);
    for (Tensor& gradient : gradients_) gradient.Fill(0);
  }

  TensorMap Save() const {
    TensorMap state;
    state.Merge("head", CopyState(parameters_));
    state.Merge("optimizer", optimizer_.Save());
    return state;
  }
  void Load(const TensorMap& state) {
    LoadState(parameters_, state.Extract("head"));
    optimizer_.Load(state.Extract("optimizer"));
  }

 private:
  template <class F>
  static void ForRow(const Tensor& rows, int64_t row, F&& use) {
    const int64_t width = rows.dim(1);
    if (rows.dtype() == DType::kBFloat16) {
      const auto* const x = reinterpret_cast<const BFloat16*>(rows.raw()) + row * width;
      for (int64_t i = 0; i < width; ++i) use(i, ToFloat(x[i]));
    } else {
      const float* const x = rows.data<float>().data() + row * width;
      for (int64_t i = 0; i < width; ++i) use(i, x[i]);
    }
  }

  Tensor weight_, bias_;
  std::vector<Tensor> gradients_;
  std::vector<NamedParameter> parameters_;
  Optimizer optimizer_;
};

// ---- Learner

class PpoOfAnswersLearner final : public OnlineLearner {
 public:
  PpoOfAnswersLearner(const PpoOfAnswers& config, const Replica& replica)
      : OnlineLearner(config, replica),
        config_(config),
        value_(model().config().hidden),
        beta_(config.beta) {}

 protected:
  void Judge(Lesson& lesson, weft::Ports& ports) override {
    const Samples& samples = lesson.samples;
    const std::vector<double> old(samples.log_p.begin(), samples.log_p.end());
    const std::vector<double> reference(samples.reference_log_p.begin(),
                                        samples.reference_log_p.end());
    const double bound = config_.reward_clip > 0 ? config_.reward_clip : 1e30;
    std::vector<double> reward =
        TokenRewards(samples.responses, old, reference, samples.reward, samples.finished,
                     {.beta = beta_,
                      .kl = config_.Estimator(),
                      .score_low = -bound,
                      .score_high = bound,
                      .missing_eos_penalty = config_.missing_eos_penalty});
    if (config_.whiten_rewards) reward = Whiten(reward, 1e-8, /*shift=*/false);
    lesson.value = ValuesOf(samples);
    TokenAdvantages token =
        TokenGae(samples.responses, reward, lesson.value, config_.gamma, config_.gae_lambda);
    ports.Log("explained_variance", Explained(token.returns, lesson.value));
    ports.Log("value", std::accumulate(lesson.value.begin(), lesson.value.end(), 0.0) /
                           static_cast<double>(lesson.value.size()));
    ports.Log("beta", beta_);
    lesson.advantage = Whiten(token.advantage);
    lesson.returns = std::move(token.returns);
    if (config_.kl_target > 0) {
      double kl = 0;
      for (size_t t = 0; t < old.size(); ++t) kl += old[t] - reference[t];
      beta_ = AdaptKl(beta_, kl / static_cast<double>(samples.responses.count()), config_.kl_target,
                      config_.kl_horizon, samples.responses.count());
    }
  }

  LessonLoss Loss(const LessonPart& part, std::span<const double> log_p,
                  std::span<const double> value) const override {
    PolicyLoss policy =
        EvaluatePolicyLoss(part.responses, log_p, part.old_log_p, {}, part.advantage, part.weight,
                           {.clip_low = config_.clip_low,
                            .clip_high = config_.clip_high,
                            .dual_clip = config_.dual_clip});
    ValueLossResult critic =
        EvaluateValueLoss(value, part.value, part.returns, part.weight, config_.value_clip);
    for (double& d : critic.d_value) d *= config_.value_coefficient;
    // The gradient of the entropy by its draws: E[(log p + 1) d log p].
    for (size_t t = 0; t < log_p.size(); ++t) {
      policy.d_log_p[t] += config_.entropy_coefficient * part.weight[t] * (log_p[t] + 1);
    }
    if (warming()) policy.d_log_p.assign(log_p.size(), 0);
    return {.loss = policy.loss + config_.value_coefficient * critic.loss,
            .d_log_p = std::move(policy.d_log_p),
            .d_value = std::move(critic.d_value),
            .clipped = policy.clipped,
            .approximate_kl = policy.approximate_kl,
            .max_log_ratio = policy.max_log_ratio};
  }

  bool has_critic() const override { return true; }
  std::vector<double> Values(const LanguageBatch& batch, const Tensor& rows) const override {
    std::vector<double> values;
    batch.ForWanted([&](int64_t, int64_t row) { values.push_back(value_.Of(rows, row)); });
    return values;
  }
  void AddValueGradient(const LanguageBatch& batch, const Tensor& rows,
                        std::span<const double> d_value, Tensor* d_rows) override {
    *d_rows = Tensor::Zeros(rows.shape());
    batch.ForWanted(
        [&](int64_t i, int64_t row) { value_.AddGradient(rows, row, d_value[i], *d_rows); });
    if (warming()) d_rows->Fill(0);
  }
  void OnUpdate(weft::Ports& ports) override { value_.Step(config_.value_learning_rate, ports); }

  TensorMap SaveRest() const override {
    TensorMap state = OnlineLearner::SaveRest();
    state.Merge("value", value_.Save());
    state.Set("beta", Tensor::Scalar(beta_, DType::kFloat64));
    return state;
  }
  void LoadRest(const TensorMap& state) override {
    OnlineLearner::LoadRest(state);
    value_.Load(state.Extract("value"));
    beta_ = state.At("beta").Item();
  }

 private:
  bool warming() const { return env_steps() < config_.value_warmup_steps; }

  // 1 - Var(returns - value) / Var(returns).
  static double Explained(std::span<const double> returns, std::span<const double> value) {
    const auto variance = [](std::span<const double> x, std::span<const double> less) {
      double sum = 0, squares = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const double d = x[i] - (less.empty() ? 0 : less[i]);
        sum += d;
        squares += d * d;
      }
      const auto n = static_cast<double>(x.size());
      return squares / n - sum / n * (sum / n);
    };
    const double whole = variance(returns, {});
    return whole > 0 ? 1 - variance(returns, value) / whole : 0;
  }

  const PpoOfAnswers& config_;
  ValueHead value_;
  double beta_;
};

// ---- Build

std::unique_ptr<OnlineLearner> PpoOfAnswers::MakeLearner(const Replica& replica) const {
  return std::make_unique<PpoOfAnswersLearner>(*this, replica);
}

WEFT_REGISTER_LANGUAGE_METHOD(PpoOfAnswers, "ppo",
                              "proximal policy optimisation of a chat model with a critic, from "
                              "rewards of its answers");

}  // namespace
}  // namespace weft
