// Returns and losses against values and gradients computed in double by other programs: the maths
// files of the reference data, within the float tolerance that they state (1e-5 relative and 1e-6
// absolute).
#include "tests/nn/reference.h"

#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "base/random.h"
#include "environments/environment.h"
#include "learners/losses.h"
#include "learners/returns.h"
#include "nn/distribution.h"
#include "tensor/ops.h"
#include "tensor/tape.h"

namespace weft {
namespace {

constexpr double kRelative = 1e-5, kAbsolute = 1e-6;

// Tensors of one case of a maths file.
class Case {
 public:
  Case(const TensorMap& file, std::string name) : file_(file), name_(std::move(name)) {}
  const Tensor& At(const std::string& tensor) const { return file_.At(name_ + "." + tensor); }
  bool Has(const std::string& tensor) const { return file_.Has(name_ + "." + tensor); }
  void Expect(const Tensor& actual, const std::string& tensor) const {
    ExpectClose(actual, At(tensor), kRelative, kAbsolute, name_ + "." + tensor);
  }
  void Expect(double actual, const std::string& tensor) const {
    Expect(Tensor::Scalar(actual, DType::kFloat64), tensor);
  }

 private:
  const TensorMap& file_;
  std::string name_;
};

TensorMap Maths(const std::string& topic) {
  return ReadSafetensors(ReferencePath("language/maths/" + topic + ".safetensors"));
}

// The files tell a rollout in the form of autoreset within the step: the final observation of an
// episode is a value on the side. Here it becomes a step of its own, followed by a dummy
// transition. One column at a time, since columns grow apart.
struct Column {
  RolloutSteps steps;
  std::vector<int64_t> place;  // of transition t of the file
};

Column Unfold(const Case& file, int64_t n, bool done_only) {
  const Tensor& rewards = file.At("rewards");
  const int64_t time = rewards.dim(0), rows = rewards.dim(1);
  std::vector<float> value, reward, discount;
  std::vector<uint8_t> type = {static_cast<uint8_t>(StepType::kFirst)};
  Column column;
  const auto state_value = [&](int64_t t) {
    // Discounted returns are told without values: those in between do not matter to them.
    if (t < time && !file.Has("values")) return 0.0f;
    return t == time ? file.At("last_values").data<float>()[static_cast<size_t>(n)]
                     : file.At("values").data<float>()[static_cast<size_t>(t * rows + n)];
  };
  value.push_back(state_value(0));
  for (int64_t t = 0; t < time; ++t) {
    const auto i = static_cast<size_t>(t * rows + n);
    const bool terminated = file.At(done_only ? "dones" : "terminated").data<uint8_t>()[i] != 0;
    const bool ended = terminated || (!done_only && file.At("truncated").data<uint8_t>()[i] != 0);
    column.place.push_back(static_cast<int64_t>(reward.size()));
    reward.push_back(rewards.data<float>()[i]);
    discount.push_back(terminated ? 0.0f : 1.0f);
    if (!ended) {
      value.push_back(state_value(t + 1));
      type.push_back(static_cast<uint8_t>(StepType::kMid));
      continue;
    }
    value.push_back(done_only ? 0.0f : file.At("final_values").data<float>()[i]);
    type.push_back(static_cast<uint8_t>(StepType::kLast));
    if (t + 1 == time) break;
    reward.push_back(0);
    discount.push_back(1);
    value.push_back(state_value(t + 1));
    type.push_back(static_cast<uint8_t>(StepType::kFirst));
  }
  const auto length = static_cast<int64_t>(reward.size());
  column.steps = {
      Tensor::From<float>({length + 1, 1}, value), Tensor::From<float>({length, 1}, reward),
      Tensor::From<float>({length, 1}, discount), Tensor::From<uint8_t>({length + 1, 1}, type)};
  return column;
}

// Computes a column at a time and gathers the transitions of the file again, [T, N].
Tensor ForColumns(const Case& file, bool done_only,
                  const std::function<Tensor(const RolloutSteps&)>& compute) {
  const int64_t time = file.At("rewards").dim(0), rows = file.At("rewards").dim(1);
  Tensor result = Tensor::Empty({time, rows}, DType::kFloat64);
  for (int64_t n = 0; n < rows; ++n) {
    const Column column = Unfold(file, n, done_only);
    const Tensor computed = compute(column.steps);
    for (int64_t t = 0; t < time; ++t) {
      result.data<double>()[static_cast<size_t>(t * rows + n)] =
          Element(computed, static_cast<size_t>(column.place[static_cast<size_t>(t)]));
    }
  }
  return result;
}

TEST(Reference, Returns) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap file = Maths("returns");
  const struct { double gamma, lambda; } settings[] = {{0.99, 0.95}, {1.0, 1.0}, {0.9, 0.0}};
  for (int i = 0; i < 3; ++i) {
    const auto [gamma, lambda] = settings[i];
    const std::string number = std::to_string(i);
    for (const bool done_only : {false, true}) {
      const Case gae(file, (done_only ? "gae_done_only." : "gae.") + number);
      gae.Expect(ForColumns(gae, done_only,
                            [&](const RolloutSteps& steps) {
                              return GeneralisedAdvantages(steps, gamma, lambda).advantage;
                            }),
                 "advantages");
      gae.Expect(ForColumns(gae, done_only,
                            [&](const RolloutSteps& steps) {
                              return GeneralisedAdvantages(steps, gamma, lambda).returns;
                            }),
                 "returns");
    }
    const Case td_lambda(file, "td_lambda." + number);
    td_lambda.Expect(
        ForColumns(td_lambda, false,
                   [&](const RolloutSteps& steps) { return LambdaReturns(steps, gamma, lambda); }),
        "returns");
    const Case discounted(file, "discounted_return." + number);
    discounted.Expect(
        ForColumns(discounted, false,
                   [&](const RolloutSteps& steps) { return DiscountedReturns(steps, gamma); }),
        "returns");
    for (const int64_t n : {1, 3, 5}) {
      const Case n_step(file, "nstep." + number + ".k" + std::to_string(n));
      n_step.Expect(ForColumns(n_step, false,
                               [&](const RolloutSteps& steps) {
                                 return ComputeNStepReturns(steps, gamma, n).returns;
                               }),
                    "returns");
      n_step.Expect(ForColumns(n_step, false,
                               [&](const RolloutSteps& steps) {
                                 return ComputeNStepReturns(steps, gamma, n).length;
                               }),
                    "steps_used");
    }
  }
}

// d loss / d parameter for each; the parameters are copies of the file's, handed to `loss` in
// order.
struct Differentiated {
  Tensor loss;
  std::vector<Tensor> gradients;
};
Differentiated Differentiate(std::vector<Tensor> parameters,
                             const std::function<Tensor(const std::vector<Tensor>&)>& loss) {
  std::vector<Tensor*> handles;
  for (Tensor& parameter : parameters) handles.push_back(&(parameter = parameter.Clone()));
  Tape tape(handles);
  Tape::Recording recording(tape);
  Differentiated result;
  result.loss = loss(parameters);
  for (const Tensor& gradient : tape.Gradient(result.loss, parameters)) {
    result.gradients.push_back(gradient.Clone());
  }
  return result;
}

Tensor MeanOf(const Tensor& x) {
  return WeightedSum(x, MeanWeights({}, x.dim(0), static_cast<double>(x.dim(0))));
}

TEST(Reference, PpoOfCategoricalPolicies) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap file = Maths("ppo_control");
  const struct {
    double clip, value_clip, dual_clip;
  } settings[] = {{0.2, 0, 0}, {0.2, 0.2, 0}, {0.1, 0.5, 3.0}};
  for (int i = 0; i < 3; ++i) {
    const auto [clip, value_clip, dual_clip] = settings[i];
    const Case ppo(file, "categorical." + std::to_string(i));
    DistributionSpec spec;
    spec.sizes = {ppo.At("logits").dim(1)};
    Surrogate policy;
    Tensor policy_loss, value_loss, entropy, log_prob;
    const auto compute = [&](const std::vector<Tensor>& parameters) {
      const Distribution distribution = Distribution::Discrete(spec, parameters[0]);
      log_prob = distribution.LogProb(ppo.At("actions"));
      policy =
          ClippedSurrogate(log_prob, ppo.At("old_logp"), ppo.At("advantages"), clip, dual_clip);
      policy_loss = MeanOf(policy.loss);
      value_loss =
          MeanOf(ValueLoss(parameters[1], ppo.At("returns"), ppo.At("old_values"), value_clip));
      entropy = MeanOf(distribution.Entropy());
      return Add(Add(policy_loss, Scale(value_loss, 0.5f)), Scale(entropy, -0.01f));
    };
    const Differentiated result = Differentiate({ppo.At("logits"), ppo.At("values")}, compute);
    ppo.Expect(result.loss, "loss");
    ppo.Expect(policy_loss, "policy_loss");
    ppo.Expect(value_loss, "value_loss");
    ppo.Expect(entropy, "entropy");
    ppo.Expect(log_prob, "log_prob");
    ppo.Expect(policy.ratio, "ratio");
    const PolicyDivergence divergence = MeasureDivergence(policy, {}, clip);
    ppo.Expect(divergence.kl_k1, "approx_kl_k1");
    ppo.Expect(divergence.kl_k3, "approx_kl_k3");
    ppo.Expect(divergence.clip_fraction, "clip_fraction");
    ppo.Expect(result.gradients[0], "grad.logits");
    ppo.Expect(result.gradients[1], "grad.values");
  }
}

TEST(Reference, PpoOfAGaussianPolicy) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap file = Maths("ppo_control");
  const Case ppo(file, "diag_gaussian");
  DistributionSpec spec;
  spec.kind = DistributionKind::kGaussian;
  spec.sizes = {ppo.At("mean").dim(1)};
  const Differentiated result = Differentiate(
      {ppo.At("mean"), ppo.At("log_std")}, [&](const std::vector<Tensor>& parameters) {
        const Distribution distribution =
            Distribution::Gaussian(spec, parameters[0], parameters[1]);
        const Tensor log_prob = distribution.LogProb(ppo.At("actions"));
        const Surrogate policy =
            ClippedSurrogate(log_prob, ppo.At("old_logp"), ppo.At("advantages"), 0.2);
        ppo.Expect(policy.ratio, "ratio");
        return Add(MeanOf(policy.loss), Scale(MeanOf(distribution.Entropy()), -0.01f));
      });
  ppo.Expect(result.loss, "loss");
  ppo.Expect(result.gradients[0], "grad.mean");
  ppo.Expect(result.gradients[1], "grad.log_std");
}

TEST(Reference, NormalisedAdvantagesAndExplainedVariance) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap file = Maths("ppo_control");
  const Case ppo(file, "normalise_and_explained_variance");
  ppo.Expect(NormaliseAdvantages(ppo.At("advantages"), {}), "normalised_unbiased");
  ppo.Expect(ExplainedVariance(ppo.At("advantages"), ppo.At("returns")), "explained_variance");
}

// The files give gamma and a flag; here the discount holds both.
Tensor Discounts(const Case& file) {
  Tensor discount = Tensor::Empty(file.At("dones").shape());
  for (size_t i = 0; i < discount.data<float>().size(); ++i) {
    discount.data<float>()[i] = file.At("dones").data<uint8_t>()[i] ? 0.0f : 0.99f;
  }
  return discount;
}

TEST(Reference, Dqn) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap file = Maths("value_based");
  for (const bool twice : {false, true}) {
    const Case dqn(file, twice ? "dqn.double" : "dqn");
    const Tensor target = DqnTarget(dqn.At("rewards"), Discounts(dqn), dqn.At("target_q_next"),
                                    twice ? dqn.At("online_q_next") : Tensor());
    dqn.Expect(target, "target");
    const Differentiated result =
        Differentiate({dqn.At("q")}, [&](const std::vector<Tensor>& parameters) {
          const Tensor error = TdError(parameters[0], dqn.At("actions"), target);
          dqn.Expect(error, "td_error");
          return WeightedSum(HuberLoss(error), MeanWeights(dqn.At("is_weights"), 6, 6));
        });
    dqn.Expect(result.loss, "loss");
    dqn.Expect(result.gradients[0], "grad.q");
  }
}

TEST(Reference, Sac) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap file = Maths("value_based");
  const Case target(file, "sac_target");
  target.Expect(SacTarget(target.At("rewards"), Discounts(target), target.At("q1_next"),
                          target.At("q2_next"), target.At("logp_next"), Tensor::Scalar(0.2)),
                "target");
  const Case temperature(file, "sac_temperature");
  const Differentiated result =
      Differentiate({temperature.At("log_alpha")}, [&](const std::vector<Tensor>& parameters) {
        return TemperatureLoss(parameters[0], temperature.At("logp"), MeanWeights({}, 6, 6), -3);
      });
  temperature.Expect(result.loss, "loss");
  temperature.Expect(result.gradients[0], "grad.log_alpha");
}

// What no file holds: against central differences.
TEST(LossGradient, OfTheSacLossesAgreesWithDifferences) {
  Rng rng(1, Purpose::kTest);
  const auto random = [&](int64_t size) {
    Tensor x = Tensor::Empty({size});
    for (float& value : x.data<float>()) value = static_cast<float>(rng.Normal());
    return x;
  };
  const Tensor target = random(8), alpha = Tensor::Scalar(0.3);
  const std::vector<Tensor> parameters = {random(8), random(8), random(8)};
  const std::function<Tensor(const std::vector<Tensor>&)> losses[] = {
      [&](const std::vector<Tensor>& p) { return MeanOf(TwinCriticLoss(p[0], p[1], target)); },
      [&](const std::vector<Tensor>& p) { return MeanOf(SacActorLoss(p[2], p[0], p[1], alpha)); },
  };
  for (const auto& loss : losses) {
    const Differentiated result = Differentiate(parameters, loss);
    for (size_t k = 0; k < parameters.size(); ++k) {
      for (size_t i = 0; i < 8; ++i) {
        constexpr float kStep = 1e-2f;
        double difference = 0;
        for (const float sign : {1.0f, -1.0f}) {
          std::vector<Tensor> moved = parameters;
          moved[k] = moved[k].Clone();
          moved[k].data<float>()[i] += sign * kStep;
          difference += sign * loss(moved).Item() / (2 * kStep);
        }
        EXPECT_NEAR(result.gradients[k].data<float>()[i], difference, 2e-4) << k << ", " << i;
      }
    }
  }
}

}  // namespace
}  // namespace weft
