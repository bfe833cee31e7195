#include "program/verify_maths.h"

#include <utility>
#include <vector>

#include "language/recorded_cases.h"
#include "rlhf/advantages.h"
#include "rlhf/policy_losses.h"
#include "rlhf/preference_losses.h"

namespace weft {
namespace {

using Values = std::vector<double>;

constexpr double kTolerance = 1e-10;  // the page's, in double
constexpr const char* kNoSuchMethod = "no method here has such a loss";

// Recordings are [B, T] with a mask; here the tokens of the answers stand one after another.
class Topic {
 public:
  Topic(const std::string& folder, const std::string& topic) : cases_(folder, topic) {}

  Values At(const std::string& name) const { return cases_.Doubles(name); }
  bool Has(const std::string& name) const { return cases_.Has(name); }
  VerifyReport Report() const { return cases_.Report(kNoSuchMethod); }

  // Answers begin anywhere in a row and have no holes.
  Responses ResponsesOf(const std::string& mask) const {
    Responses responses;
    const Values flags = At(mask);
    const auto columns = static_cast<size_t>(cases_.At(mask).dim(1));
    for (size_t row = 0; row < flags.size() / columns; ++row) {
      int64_t count = 0;
      for (size_t t = 0; t < columns; ++t) count += flags[row * columns + t] != 0;
      responses.Add(count);
    }
    return responses;
  }
  Values Kept(const std::string& name, const std::string& mask) const {
    const Values all = At(name), flags = At(mask);
    Values kept;
    for (size_t i = 0; i < all.size(); ++i) {
      if (flags[i] != 0) kept.push_back(all[i]);
    }
    return kept;
  }
  // Of each answer.
  Values Sums(const std::string& name, const std::string& mask) const {
    const Responses responses = ResponsesOf(mask);
    const Values kept = Kept(name, mask);
    Values sums(static_cast<size_t>(responses.count()));
    for (int64_t i = 0; i < responses.count(); ++i) {
      for (int64_t t = responses.offsets[i]; t < responses.offsets[i + 1]; ++t) sums[i] += kept[t];
    }
    return sums;
  }
  std::vector<int64_t> Lengths(const std::string& mask) const {
    const Responses responses = ResponsesOf(mask);
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < responses.count(); ++i) lengths.push_back(responses.length(i));
    return lengths;
  }

  void Check(const std::string& name, const Values& got) {
    cases_.Check(name, got, kTolerance, kTolerance);
  }
  void Check(const std::string& name, double got) { Check(name, Values{got}); }
  // Numbers of the tokens that the mask keeps.
  void CheckKept(const std::string& name, const std::string& mask, const Values& got) {
    cases_.Check(name, got, Kept(name, mask), kTolerance, kTolerance);
  }

 private:
  RecordedCases cases_;
};

// Each answer's number for each of its tokens.
Values Spread(const Responses& responses, const Values& values) {
  Values spread;
  for (int64_t i = 0; i < responses.count(); ++i) {
    spread.insert(spread.end(), static_cast<size_t>(responses.length(i)), values[i]);
  }
  return spread;
}

void CheckTokensOfPpo(Topic& topic, const std::string& at, KlEstimator estimator) {
  const std::string mask = at + "mask";
  const Responses responses = topic.ResponsesOf(mask);
  const Values old_log_p = topic.Kept(at + "old_logp", mask);
  const Values eos = topic.At(at + "has_eos");
  const TokenRewardOptions options{
      .beta = 0.1, .kl = estimator, .score_low = -5, .score_high = 5, .missing_eos_penalty = 1};
  const Values reward =
      TokenRewards(responses, old_log_p, topic.Kept(at + "ref_logp", mask), topic.At(at + "score"),
                   std::vector<uint8_t>(eos.begin(), eos.end()), options);
  topic.CheckKept(at + "rewards", mask, reward);
  const Values value = topic.Kept(at + "values", mask);
  const TokenAdvantages gae = TokenGae(responses, reward, value, 1, 0.95);
  topic.CheckKept(at + "advantages", mask, gae.advantage);
  topic.CheckKept(at + "returns", mask, gae.returns);
  const Values white = Whiten(gae.advantage);
  topic.CheckKept(at + "whitened_advantages", mask, white);
  topic.CheckKept(at + "rewards_whitened_no_shift", mask, Whiten(reward, 1e-8, false));
  if (!topic.Has(at + "loss")) return;
  const Values weight = TokenWeights(responses, Aggregation::kTokenMean);
  const PolicyLoss policy = EvaluatePolicyLoss(responses, topic.Kept(at + "new_logp", mask),
                                               old_log_p, {}, white, weight, {});
  const ValueLossResult critic =
      EvaluateValueLoss(topic.Kept(at + "new_values", mask), value, gae.returns, weight, 0.2);
  constexpr double kValueWeight = 0.1;
  topic.Check(at + "policy_loss", policy.loss);
  topic.Check(at + "clip_fraction", policy.clipped);
  topic.Check(at + "approx_kl_half_square", policy.approximate_kl);
  topic.Check(at + "value_loss", critic.loss);
  topic.Check(at + "loss", policy.loss + kValueWeight * critic.loss);
  topic.CheckKept(at + "grad.new_logp", mask, policy.d_log_p);
  Values d_value;
  for (const double d : critic.d_value) d_value.push_back(kValueWeight * d);
  topic.CheckKept(at + "grad.new_values", mask, d_value);
}

VerifyReport VerifyPpo(const std::string& folder) {
  Topic topic(folder, "ppo_rlhf");
  for (const std::string row : {"tokens.0.", "tokens.1."}) {
    CheckTokensOfPpo(topic, row + "k1.", KlEstimator::kK1);
    CheckTokensOfPpo(topic, row + "k2.", KlEstimator::kK2);
    CheckTokensOfPpo(topic, row + "k3.", KlEstimator::kK3);
    CheckTokensOfPpo(topic, row + "abs.", KlEstimator::kAbs);
  }
  double beta = 0.15;
  Values betas, penalties;
  for (const double kl : topic.At("adaptive_kl.kl_per_step")) {
    betas.push_back(beta = AdaptKl(beta, kl, 6, 10000, 256));
  }
  topic.Check("adaptive_kl.beta_after_step", betas);
  for (const double length : topic.At("overlong_penalty.lengths")) {
    penalties.push_back(OverlongPenalty(static_cast<int64_t>(length), 640, 128, 1));
  }
  topic.Check("overlong_penalty.penalty", penalties);
  return topic.Report();
}

void CheckPolicyLoss(Topic& topic, const std::string& at, const PolicyLossOptions& options,
                     Aggregation aggregation) {
  const std::string mask = at + "mask";
  const Responses responses = topic.ResponsesOf(mask);
  const PolicyLoss loss = EvaluatePolicyLoss(
      responses, topic.Kept(at + "new_logp", mask), topic.Kept(at + "old_logp", mask),
      topic.Kept(at + "ref_logp", mask), Spread(responses, topic.At(at + "advantages")),
      TokenWeights(responses, aggregation, 16), options);
  topic.Check(at + "loss", loss.loss);
  topic.CheckKept(at + "grad.new_logp", mask, loss.d_log_p);
}

VerifyReport VerifyGroups(const std::string& folder) {
  Topic topic(folder, "group_relative");
  for (const auto& [name, epsilon] :
       {std::pair{"grpo_advantage.eps0.0001", 1e-4}, {"grpo_advantage.eps1e-06", 1e-6}}) {
    const std::string at = std::string(name) + ".";
    const Values reward = topic.At(at + "rewards");
    topic.Check(at + "unbiased_std", GroupAdvantages(reward, 4, GroupScale::kUnbiased, epsilon));
    topic.Check(at + "biased_std", GroupAdvantages(reward, 4, GroupScale::kBiased, epsilon));
    topic.Check(at + "mean_only", GroupAdvantages(reward, 4, GroupScale::kNone, epsilon));
  }
  topic.Check("rloo_advantage.advantages",
              LeaveOneOutAdvantages(topic.At("rloo_advantage.rewards"), 4));
  const std::string at = "reinforce_pp.", mask = at + "mask";
  const Responses responses = topic.ResponsesOf(mask);
  const Values reward =
      TokenRewards(responses, topic.Kept(at + "old_logp", mask), topic.Kept(at + "ref_logp", mask),
                   topic.At(at + "scores"),
                   std::vector<uint8_t>(static_cast<size_t>(responses.count()), 1), {.beta = 0.05});
  const Values to_go = RewardsToGo(responses, reward, 1);
  topic.CheckKept(at + "returns", mask, to_go);
  topic.CheckKept(at + "advantages", mask, Whiten(to_go));

  using enum PolicyObjective;
  CheckPolicyLoss(topic, "loss.grpo.", {}, Aggregation::kSequenceMeanTokenMean);
  CheckPolicyLoss(topic, "loss.grpo.kl.", {.beta = 0.04}, Aggregation::kSequenceMeanTokenMean);
  CheckPolicyLoss(topic, "loss.dr_grpo.", {}, Aggregation::kConstantLength);
  CheckPolicyLoss(topic, "loss.dapo.", {.clip_high = 0.28}, Aggregation::kTokenMean);
  CheckPolicyLoss(topic, "loss.gspo.",
                  {.objective = kSequence, .clip_low = 0.03, .clip_high = 0.04},
                  Aggregation::kSequenceMeanTokenMean);
  CheckPolicyLoss(topic, "loss.cispo.", {.objective = kCispo, .clip_high = 0.28},
                  Aggregation::kTokenMean);
  return topic.Report();
}

void CheckPairs(Topic& topic, const std::string& at, const PairLoss& loss) {
  topic.Check(at + "loss", loss.loss);
  for (const auto& [side, d] :
       {std::pair{"chosen", &loss.d_chosen}, {"rejected", &loss.d_rejected}}) {
    const std::string mask = at + "mask_" + side;
    topic.CheckKept(at + "grad." + side, mask, Spread(topic.ResponsesOf(mask), *d));
  }
}

VerifyReport VerifyPreferences(const std::string& folder) {
  Topic topic(folder, "preference");
  struct Pair {
    const char* name;
    bool margin;
    double centring;
  };
  for (const Pair& test : {Pair{"plain", false, 0}, Pair{"margin", true, 0},
                           Pair{"centering", false, 0.01}, Pair{"both", true, 0.1}}) {
    const std::string at = "bradley_terry." + std::string(test.name) + ".";
    const Values margin = test.margin ? topic.At(at + "margin") : Values();
    const PairLoss loss =
        BradleyTerry(topic.At(at + "chosen"), topic.At(at + "rejected"), margin, test.centring);
    topic.Check(at + "loss", loss.loss);
    topic.Check(at + "accuracy", loss.accuracy);
    topic.Check(at + "grad.chosen", loss.d_chosen);
    topic.Check(at + "grad.rejected", loss.d_rejected);
  }
  struct Direct {
    const char* name;
    PreferenceOptions options;
  };
  using enum PreferenceObjective;
  for (const Direct& test :
       {Direct{"sigmoid.beta0.1", {kSigmoid, 0.1}}, Direct{"sigmoid.beta0.5", {kSigmoid, 0.5}},
        Direct{"cdpo.beta0.1", {kSigmoid, 0.1, 0.1}}, Direct{"robust.beta0.1", {kRobust, 0.1, 0.2}},
        Direct{"hinge.beta0.3", {kHinge, 0.3}}, Direct{"ipo.beta0.1", {kIpo, 0.1}},
        Direct{"ipo_length_averaged.beta0.1", {kIpoMean, 0.1}}}) {
    const std::string at = "dpo." + std::string(test.name) + ".";
    const std::string c = at + "mask_chosen", r = at + "mask_rejected";
    const PairLoss loss =
        DirectPreference(topic.Sums(at + "chosen", c), topic.Sums(at + "rejected", r),
                         topic.Sums(at + "ref_chosen", c), topic.Sums(at + "ref_rejected", r),
                         topic.Lengths(c), topic.Lengths(r), test.options);
    CheckPairs(topic, at, loss);
    topic.Check(at + "accuracy", loss.accuracy);
  }
  for (const std::string at : {"kto.shift0.", "kto.shift4."}) {
    const std::string mask = at + "mask";
    const Values policy = topic.Sums(at + "kl_policy", at + "kl_mask");
    Values kl = topic.Sums(at + "kl_reference", at + "kl_mask");
    for (size_t i = 0; i < kl.size(); ++i) kl[i] = policy[i] - kl[i];
    const Values label = topic.At(at + "label");
    const VerdictLoss loss =
        Kto(topic.Sums(at + "policy", mask), topic.Sums(at + "reference", mask),
            std::vector<uint8_t>(label.begin(), label.end()), kl, {.undesirable_weight = 1.3});
    topic.Check(at + "loss", loss.loss);
    topic.Check(at + "kl_z", loss.z);
    topic.CheckKept(at + "grad.policy", mask, Spread(topic.ResponsesOf(mask), loss.d_policy));
  }
  for (const std::string at : {"orpo.", "simpo."}) {
    const std::string c = at + "mask_chosen", r = at + "mask_rejected";
    const Values chosen = topic.Sums(at + "chosen", c), rejected = topic.Sums(at + "rejected", r);
    const std::vector<int64_t> chosen_length = topic.Lengths(c), rejected_length = topic.Lengths(r);
    CheckPairs(topic, at,
               at == "orpo."
                   ? OddsRatio(chosen, rejected, chosen_length, rejected_length, 0.1)
                   : SimplePreference(chosen, rejected, chosen_length, rejected_length, 2, 1));
  }
  return topic.Report();
}

}  // namespace

VerifyReport VerifyMaths(const std::string& folder) {
  VerifyReport report = VerifyPpo(folder);
  Merge(VerifyGroups(folder), report);
  Merge(VerifyPreferences(folder), report);
  return report;
}

}  // namespace weft
