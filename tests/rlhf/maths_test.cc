// The mathematics of RLHF against the reference's values and gradients in double, and by hand where
// it is small.
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "nn/safetensors.h"
#include "rlhf/advantages.h"
#include "rlhf/policy_losses.h"
#include "rlhf/preference_losses.h"
#include "tests/language/reference_files.h"

namespace weft {
namespace {

using Values = std::vector<double>;

Values Doubles(const Tensor& tensor) {
  Values values;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    switch (tensor.dtype()) {
      case DType::kFloat64:
        values.push_back(tensor.data<double>()[i]);
        break;
      case DType::kFloat32:
        values.push_back(tensor.data<float>()[i]);
        break;
      case DType::kInt64:
        values.push_back(static_cast<double>(tensor.data<int64_t>()[i]));
        break;
      default:
        values.push_back(tensor.data<uint8_t>()[i]);
    }
  }
  return values;
}

class Maths : public testing::Test {
 protected:
  void Open(const std::string& topic) {
    const std::string path = ReferencePath("language/maths/" + topic + ".safetensors");
    if (path.empty()) GTEST_SKIP() << "WEFT_REFERENCE is unset: no reference data to compare with";
    data_ = ReadSafetensors(path);
  }
  bool Has(const std::string& name) const { return data_.Has(name); }
  Values At(const std::string& name) const { return Doubles(data_.At(name)); }
  int64_t Columns(const std::string& name) const { return data_.At(name).dim(1); }

  // Masked [B, T] to the tokens of answers and back; answers begin anywhere and have no holes.
  Responses ResponsesOf(const std::string& mask) const {
    Responses responses;
    const Values flags = At(mask);
    const int64_t columns = Columns(mask);
    for (size_t row = 0; row < flags.size() / columns; ++row) {
      int64_t count = 0;
      for (int64_t t = 0; t < columns; ++t) count += flags[row * columns + t] != 0;
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
  // Sums over the tokens of each row, and their number.
  Values Sums(const std::string& name, const std::string& mask) const {
    const Responses responses = ResponsesOf(mask);
    const Values kept = Kept(name, mask);
    Values sums(responses.count());
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
  // Each answer's number for each of its tokens.
  static Values Spread(const Responses& responses, const Values& values) {
    Values spread;
    for (int64_t i = 0; i < responses.count(); ++i) {
      spread.insert(spread.end(), responses.length(i), values[i]);
    }
    return spread;
  }

  static void ExpectEqual(const Values& got, const Values& want, const std::string& what) {
    ASSERT_EQ(got.size(), want.size()) << what;
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], want[i], 1e-10 * (1 + std::fabs(want[i]))) << what << " " << i;
    }
  }

  TensorMap data_;
};

TEST_F(Maths, TokensOfPpo) {
  Open("ppo_rlhf");
  if (IsSkipped()) return;
  const std::pair<const char*, KlEstimator> estimators[] = {{"k1", KlEstimator::kK1},
                                                            {"k2", KlEstimator::kK2},
                                                            {"k3", KlEstimator::kK3},
                                                            {"abs", KlEstimator::kAbs}};
  for (const std::string row : {"tokens.0.", "tokens.1."}) {
    for (const auto& [name, estimator] : estimators) {
      const std::string at = row + name + ".", mask = at + "mask";
      const Responses responses = ResponsesOf(mask);
      const Values old_log_p = Kept(at + "old_logp", mask), ref = Kept(at + "ref_logp", mask);
      const Values eos = At(at + "has_eos");
      const TokenRewardOptions options{
          .beta = 0.1, .kl = estimator, .score_low = -5, .score_high = 5, .missing_eos_penalty = 1};
      const Values reward = TokenRewards(responses, old_log_p, ref, At(at + "score"),
                                         std::vector<uint8_t>(eos.begin(), eos.end()), options);
      ExpectEqual(reward, Kept(at + "rewards", mask), at + "rewards");
      const Values value = Kept(at + "values", mask);
      const TokenAdvantages gae = TokenGae(responses, reward, value, 1, 0.95);
      ExpectEqual(gae.advantage, Kept(at + "advantages", mask), at + "advantages");
      ExpectEqual(gae.returns, Kept(at + "returns", mask), at + "returns");
      const Values white = Whiten(gae.advantage);
      ExpectEqual(white, Kept(at + "whitened_advantages", mask), at + "whitened");
      ExpectEqual(Whiten(reward, 1e-8, false), Kept(at + "rewards_whitened_no_shift", mask),
                  at + "no shift");
      if (!Has(at + "loss")) continue;
      const Values weight = TokenWeights(responses, Aggregation::kTokenMean);
      const PolicyLoss policy = EvaluatePolicyLoss(responses, Kept(at + "new_logp", mask),
                                                   old_log_p, {}, white, weight, {});
      const ValueLossResult critic =
          EvaluateValueLoss(Kept(at + "new_values", mask), value, gae.returns, weight, 0.2);
      ExpectEqual({policy.loss, policy.clipped, policy.approximate_kl, critic.loss},
                  {At(at + "policy_loss")[0], At(at + "clip_fraction")[0],
                   At(at + "approx_kl_half_square")[0], At(at + "value_loss")[0]},
                  at + "losses");
      ExpectEqual({policy.loss + 0.1 * critic.loss}, At(at + "loss"), at + "loss");
      ExpectEqual(policy.d_log_p, Kept(at + "grad.new_logp", mask), at + "grad.new_logp");
      Values d_value;
      for (const double d : critic.d_value) d_value.push_back(0.1 * d);
      ExpectEqual(d_value, Kept(at + "grad.new_values", mask), at + "grad.new_values");
    }
  }
  double beta = 0.15;
  Values betas;
  for (const double kl : At("adaptive_kl.kl_per_step")) {
    betas.push_back(beta = AdaptKl(beta, kl, 6, 10000, 256));
  }
  ExpectEqual(betas, At("adaptive_kl.beta_after_step"), "adaptive KL");
  Values penalties;
  for (const double length : At("overlong_penalty.lengths")) {
    penalties.push_back(OverlongPenalty(static_cast<int64_t>(length), 640, 128, 1));
  }
  ExpectEqual(penalties, At("overlong_penalty.penalty"), "overlong");
}

TEST_F(Maths, GroupRelativeMethods) {
  Open("group_relative");
  if (IsSkipped()) return;
  for (const auto& [name, epsilon] :
       {std::pair{"grpo_advantage.eps0.0001", 1e-4}, {"grpo_advantage.eps1e-06", 1e-6}}) {
    const std::string at = std::string(name) + ".";
    const Values reward = At(at + "rewards");
    ExpectEqual(GroupAdvantages(reward, 4, GroupScale::kUnbiased, epsilon), At(at + "unbiased_std"),
                at + "unbiased");
    ExpectEqual(GroupAdvantages(reward, 4, GroupScale::kBiased, epsilon), At(at + "biased_std"),
                at + "biased");
    ExpectEqual(GroupAdvantages(reward, 4, GroupScale::kNone, epsilon), At(at + "mean_only"),
                at + "mean only");
  }
  ExpectEqual(LeaveOneOutAdvantages(At("rloo_advantage.rewards"), 4),
              At("rloo_advantage.advantages"), "rloo");
  {
    const std::string at = "reinforce_pp.", mask = at + "mask";
    const Responses responses = ResponsesOf(mask);
    const Values reward =
        TokenRewards(responses, Kept(at + "old_logp", mask), Kept(at + "ref_logp", mask),
                     At(at + "scores"), std::vector<uint8_t>(responses.count(), 1), {.beta = 0.05});
    const Values to_go = RewardsToGo(responses, reward, 1);
    ExpectEqual(to_go, Kept(at + "returns", mask), at + "returns");
    ExpectEqual(Whiten(to_go), Kept(at + "advantages", mask), at + "advantages");
  }
  struct Case {
    const char* name;
    PolicyLossOptions options;
    Aggregation aggregation;
  };
  using enum PolicyObjective;
  const Case cases[] = {
      {"grpo", {}, Aggregation::kSequenceMeanTokenMean},
      {"grpo.kl", {.beta = 0.04}, Aggregation::kSequenceMeanTokenMean},
      {"dr_grpo", {}, Aggregation::kConstantLength},
      {"dapo", {.clip_high = 0.28}, Aggregation::kTokenMean},
      {"gspo",
       {.objective = kSequence, .clip_low = 0.03, .clip_high = 0.04},
       Aggregation::kSequenceMeanTokenMean},
      {"cispo", {.objective = kCispo, .clip_high = 0.28}, Aggregation::kTokenMean},
  };
  for (const Case& test : cases) {
    const std::string at = "loss." + std::string(test.name) + ".", mask = at + "mask";
    const Responses responses = ResponsesOf(mask);
    const PolicyLoss loss =
        EvaluatePolicyLoss(responses, Kept(at + "new_logp", mask), Kept(at + "old_logp", mask),
                           Kept(at + "ref_logp", mask), Spread(responses, At(at + "advantages")),
                           TokenWeights(responses, test.aggregation, 16), test.options);
    ExpectEqual({loss.loss}, At(at + "loss"), at);
    ExpectEqual(loss.d_log_p, Kept(at + "grad.new_logp", mask), at + "grad");
  }
}

TEST_F(Maths, Preferences) {
  Open("preference");
  if (IsSkipped()) return;
  struct Pair {
    const char* name;
    bool margin;
    double centring;
  };
  for (const Pair& test : {Pair{"plain", false, 0}, Pair{"margin", true, 0},
                           Pair{"centering", false, 0.01}, Pair{"both", true, 0.1}}) {
    const std::string at = "bradley_terry." + std::string(test.name) + ".";
    const Values margin = test.margin ? At(at + "margin") : Values();
    const PairLoss loss =
        BradleyTerry(At(at + "chosen"), At(at + "rejected"), margin, test.centring);
    ExpectEqual({loss.loss, loss.accuracy}, {At(at + "loss")[0], At(at + "accuracy")[0]}, at);
    ExpectEqual(loss.d_chosen, At(at + "grad.chosen"), at + "chosen");
    ExpectEqual(loss.d_rejected, At(at + "grad.rejected"), at + "rejected");
  }
  const auto check = [&](const std::string& at, const PairLoss& loss) {
    ExpectEqual({loss.loss}, At(at + "loss"), at);
    for (const auto& [side, d] :
         {std::pair{"chosen", &loss.d_chosen}, {"rejected", &loss.d_rejected}}) {
      const std::string mask = at + "mask_" + side;
      ExpectEqual(Spread(ResponsesOf(mask), *d), Kept(at + "grad." + side, mask), at + side);
    }
  };
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
    const PairLoss loss = DirectPreference(Sums(at + "chosen", c), Sums(at + "rejected", r),
                                           Sums(at + "ref_chosen", c), Sums(at + "ref_rejected", r),
                                           Lengths(c), Lengths(r), test.options);
    check(at, loss);
    ExpectEqual({loss.accuracy}, At(at + "accuracy"), at + "accuracy");
  }
  for (const std::string at : {"kto.shift0.", "kto.shift4."}) {
    const Values policy = Sums(at + "kl_policy", at + "kl_mask");
    Values kl = Sums(at + "kl_reference", at + "kl_mask");
    for (size_t i = 0; i < kl.size(); ++i) kl[i] = policy[i] - kl[i];
    const Values label = At(at + "label");
    const VerdictLoss loss =
        Kto(Sums(at + "policy", at + "mask"), Sums(at + "reference", at + "mask"),
            std::vector<uint8_t>(label.begin(), label.end()), kl, {.undesirable_weight = 1.3});
    ExpectEqual({loss.loss, loss.z}, {At(at + "loss")[0], At(at + "kl_z")[0]}, at);
    ExpectEqual(Spread(ResponsesOf(at + "mask"), loss.d_policy),
                Kept(at + "grad.policy", at + "mask"), at + "grad");
  }
  for (const std::string at : {"orpo.", "simpo."}) {
    const std::string c = at + "mask_chosen", r = at + "mask_rejected";
    const Values chosen = Sums(at + "chosen", c), rejected = Sums(at + "rejected", r);
    check(at, at == "orpo." ? OddsRatio(chosen, rejected, Lengths(c), Lengths(r), 0.1)
                            : SimplePreference(chosen, rejected, Lengths(c), Lengths(r), 2, 1));
  }
}

// Case 92 of faults that users met: values of every aggregation, worked by hand there.
TEST(TokenWeights, AggregateAsTheyAreNamedWhateverTheSplit) {
  // Two answers of 1 and 3 tokens.
  Responses responses;
  responses.Add(1);
  responses.Add(3);
  const Values loss = {2, 4, 6, 8};
  const auto total = [&](const Values& weights) {
    double sum = 0;
    for (size_t i = 0; i < loss.size(); ++i) sum += weights[i] * loss[i];
    return sum;
  };
  EXPECT_DOUBLE_EQ(total(TokenWeights(responses, Aggregation::kTokenMean)), 5);
  EXPECT_DOUBLE_EQ(total(TokenWeights(responses, Aggregation::kSequenceMeanTokenMean)), 4);
  EXPECT_DOUBLE_EQ(total(TokenWeights(responses, Aggregation::kSequenceMeanTokenSum)), 10);
  EXPECT_DOUBLE_EQ(total(TokenWeights(responses, Aggregation::kConstantLength, 5)), 2);
  Responses half;
  half.Add(3);
  const Values weights = TokenWeights(half, Aggregation::kTokenMean, 0, 2, 4);
  EXPECT_EQ(weights, Values(3, 0.25));
}

TEST(GroupAdvantages, EqualRewardsGiveNothing) {
  const Values advantages = GroupAdvantages(Values{0.1, 0.1, 0.1}, 3, GroupScale::kUnbiased, 1e-4);
  EXPECT_EQ(advantages, Values(3, 0.0));
}

TEST(TokenRewards, TheScoreLandsOnTheLastTokenAndSumsUp) {
  Responses responses;
  responses.Add(2);
  responses.Add(0);
  responses.Add(3);
  const Values old_log_p = {-1, -2, -1, -1, -3}, reference = {-1.5, -2, -1, -2, -3};
  const Values reward =
      TokenRewards(responses, old_log_p, reference, Values{4, 9, 2}, std::vector<uint8_t>{1, 1, 0},
                   {.beta = 0.5, .missing_eos_penalty = 1});
  EXPECT_EQ(reward, (Values{-0.25, 4, 0, -0.5, 1}));
}

}  // namespace
}  // namespace weft
