#include "nn/distribution.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "base/check.h"
#include "nn/distribution_head.h"
#include "tensor/ops.h"
#include "tests/nn/gradients.h"
#include "tests/nn/reference.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr double kRelative = 1e-5, kAbsolute = 2e-6;

DistributionSpec Spec(DistributionKind kind, std::vector<int64_t> sizes, bool state = false) {
  return {.kind = kind, .sizes = std::move(sizes), .state_dependent_std = state};
}

std::vector<Rng> Generators(size_t rows, uint64_t seed = 1) {
  std::vector<Rng> rngs;
  for (size_t row = 0; row < rows; ++row) rngs.emplace_back(seed, Purpose::kTest, row);
  return rngs;
}

// The same row many times.
Tensor Repeat(const std::vector<float>& row, int64_t rows) {
  std::vector<float> values;
  for (int64_t i = 0; i < rows; ++i) values.insert(values.end(), row.begin(), row.end());
  return Tensor::From<float>({rows, static_cast<int64_t>(row.size())}, values);
}

double MeanOf(const Tensor& x) {
  double sum = 0;
  for (const float value : x.data<float>()) sum += static_cast<double>(value);
  return sum / static_cast<double>(x.elements());
}

TEST(Distribution, CategoricalEqualsReference) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap data = ReadSafetensors(ReferencePath("language/maths/ppo_control.safetensors"));
  for (const std::string name : {"categorical.0.", "categorical.1.", "categorical.2."}) {
    const Tensor& logits = data.At(name + "logits");
    const auto spec = Spec(DistributionKind::kCategorical, {logits.dim(1)});
    const auto policy = Distribution::Discrete(spec, logits);
    ExpectClose(policy.LogProb(data.At(name + "actions")), data.At(name + "log_prob"), kRelative,
                kAbsolute, name);
    EXPECT_NEAR(MeanOf(policy.Entropy()), data.At(name + "entropy").Item(), 1e-6);
  }
}

TEST(Distribution, GaussianEqualsReference) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap data = ReadSafetensors(ReferencePath("language/maths/ppo_control.safetensors"));
  const auto spec = Spec(DistributionKind::kGaussian, {3});
  const auto policy =
      Distribution::Gaussian(spec, data.At("diag_gaussian.mean"), data.At("diag_gaussian.log_std"));
  ExpectClose(policy.LogProb(data.At("diag_gaussian.actions")), data.At("diag_gaussian.log_prob"),
              kRelative, kAbsolute, "log_prob");
  ExpectClose(policy.Entropy(), data.At("diag_gaussian.entropy"), kRelative, kAbsolute, "entropy");
}

TEST(Distribution, SquashedGaussianAndKlEqualReference) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap data = ReadSafetensors(ReferencePath("language/maths/value_based.safetensors"));
  const auto output = [&](const std::string& mean, const std::string& log_std) {
    const std::vector<Tensor> parts = {data.At(mean), data.At(log_std)};
    return ConcatLast(parts);
  };
  const auto squashed = Spec(DistributionKind::kSquashedGaussian, {3}, true);
  const auto policy = Distribution::Gaussian(
      squashed, output("squashed_gaussian.mean", "squashed_gaussian.log_std"));
  const Tensor& u = data.At("squashed_gaussian.pre_tanh");
  ExpectClose(policy.LogProbBeforeTanh(u), data.At("squashed_gaussian.log_prob"), kRelative, 1e-5,
              "log_prob");
  ExpectClose(Tanh(u), data.At("squashed_gaussian.action"), kRelative, kAbsolute, "action");

  const auto gaussian = Spec(DistributionKind::kGaussian, {3}, true);
  const auto p =
      Distribution::Gaussian(gaussian, output("gaussian_kl.mean_p", "gaussian_kl.log_std_p"));
  const auto q =
      Distribution::Gaussian(gaussian, output("gaussian_kl.mean_q", "gaussian_kl.log_std_q"));
  ExpectClose(p.KlTo(q), data.At("gaussian_kl.kl"), kRelative, 1e-5, "gaussian kl");
  ExpectClose(p.Entropy(), data.At("gaussian_kl.entropy_p"), kRelative, kAbsolute, "entropy");

  const auto categorical = Spec(DistributionKind::kCategorical, {5});
  const auto a = Distribution::Discrete(categorical, data.At("categorical_kl.logits_p"));
  const auto b = Distribution::Discrete(categorical, data.At("categorical_kl.logits_q"));
  ExpectClose(a.KlTo(b), data.At("categorical_kl.kl"), kRelative, kAbsolute, "categorical kl");
  ExpectClose(a.Entropy(), data.At("categorical_kl.entropy_p"), kRelative, kAbsolute, "entropy");
}

TEST(Distribution, GradientsEqualReference) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap data = ReadSafetensors(ReferencePath("language/maths/value_based.safetensors"));
  const auto at = [&](const std::string& name) { return data.At("squashed_gaussian." + name); };
  Tensor mean = at("mean").Clone(), log_std = at("log_std").Clone(), u = at("pre_tanh").Clone();
  const auto spec = Spec(DistributionKind::kSquashedGaussian, {3}, true);
  const auto gradients = Gradients({&mean, &log_std, &u}, [&] {
    const std::vector<Tensor> parts = {mean, log_std};
    return Sum(Distribution::Gaussian(spec, ConcatLast(parts)).LogProbBeforeTanh(u));
  });
  ExpectClose(gradients[0], at("grad.mean"), kRelative, kAbsolute, "d_mean");
  ExpectClose(gradients[1], at("grad.log_std"), kRelative, kAbsolute, "d_log_std");
  ExpectClose(gradients[2], at("grad.pre_tanh"), kRelative, kAbsolute, "d_pre_tanh");
}

// Central differences of the sum of log-probability, entropy and a reparameterised sample.
TEST(Distribution, GradientsEqualFiniteDifferences) {
  for (const auto& spec :
       {Spec(DistributionKind::kCategorical, {4}),
        Spec(DistributionKind::kMultiCategorical, {3, 2}), Spec(DistributionKind::kBernoulli, {3}),
        Spec(DistributionKind::kGaussian, {2}, true),
        Spec(DistributionKind::kSquashedGaussian, {2}, true)}) {
    Rng rng(7, Purpose::kTest);
    Tensor output = Tensor::Empty({2, spec.outputs()});
    rng.FillNormal(output.data<float>());
    Tensor mask;
    if (spec.kind == DistributionKind::kCategorical) {
      mask = Tensor::From<uint8_t>({2, 4}, {1, 0, 1, 1, 1, 1, 1, 1});
    }
    const auto make = [&](const Tensor& x) {
      return spec.gaussian() ? Distribution::Gaussian(spec, x)
                             : Distribution::Discrete(spec, x, mask);
    };
    const Tensor noise = make(output).Noise(rng);
    const Tensor action = make(output).Sample(noise);
    const auto loss = [&] {
      const auto policy = make(output);
      Tensor sum = Sum(policy.LogProb(action));
      if (spec.gaussian()) sum = Add(sum, Sum(policy.Sample(noise)));
      if (spec.kind == DistributionKind::kSquashedGaussian) {
        return Add(sum, Sum(policy.SampleWithLogProb(noise).log_prob));
      }
      return Add(sum, Sum(policy.Entropy()));
    };
    const Tensor gradient = Gradients({&output}, loss)[0];
    constexpr float kStep = 1e-2f;
    for (size_t i = 0; i < static_cast<size_t>(output.elements()); ++i) {
      float& x = output.data<float>()[i];
      const float at = x;
      x = at + kStep;
      const double high = loss().Item();
      x = at - kStep;
      const double low = loss().Item();
      x = at;
      EXPECT_NEAR(static_cast<double>(gradient.data<float>()[i]),
                  (high - low) / (2 * static_cast<double>(kStep)), 3e-3)
          << Name(spec.kind) << " element " << i;
    }
    if (mask.defined()) {
      EXPECT_EQ(gradient.data<float>()[1], 0);
    }
  }
}

TEST(Distribution, CategoricalSamplesWithItsProbabilities) {
  const auto spec = Spec(DistributionKind::kCategorical, {3});
  constexpr int64_t kRows = 20000;
  const auto policy = Distribution::Discrete(
      spec, Repeat({std::log(0.2f), std::log(0.5f) + 0, std::log(0.3f)}, kRows));
  auto rngs = Generators(kRows);
  const Tensor action = policy.Sample(policy.Noise(rngs));
  std::vector<double> counts(3);
  for (const int64_t choice : action.data<int64_t>()) counts[static_cast<size_t>(choice)] += 1;
  for (size_t i = 0; i < 3; ++i) {
    const double p = std::vector<double>{0.2, 0.5, 0.3}[i];
    EXPECT_NEAR(counts[i] / kRows, p, 4 * std::sqrt(p * (1 - p) / kRows)) << i;
  }
}

TEST(Distribution, SamplesDoNotDependOnTheOtherRows) {
  Rng rng(5, Purpose::kTest);
  for (const auto& spec :
       {Spec(DistributionKind::kCategorical, {4}),
        Spec(DistributionKind::kMultiCategorical, {3, 1, 5}),
        Spec(DistributionKind::kBernoulli, {3}), Spec(DistributionKind::kGaussian, {3}, true),
        Spec(DistributionKind::kSquashedGaussian, {2}, true)}) {
    Tensor output = Tensor::Empty({6, spec.outputs()});
    rng.FillNormal(output.data<float>());
    const auto draw = [&](int64_t begin, int64_t end) {
      const Tensor rows = output.Slice(begin, end);
      const auto policy =
          spec.gaussian() ? Distribution::Gaussian(spec, rows) : Distribution::Discrete(spec, rows);
      auto rngs = Generators(6, 9);
      const Tensor noise = policy.Noise(
          std::span(rngs).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
      return policy.SampleWithLogProb(noise);
    };
    const SampledAction all = draw(0, 6);
    EXPECT_EQ(all.action.shape(), spec.action_shape().Prepend(6));
    EXPECT_EQ(all.action.dtype(), spec.action_dtype());
    for (int64_t row = 0; row < 6; ++row) {
      const SampledAction one = draw(row, row + 1);
      TensorMap a, b;
      a.Set("action", one.action);
      a.Set("log_prob", one.log_prob);
      b.Set("action", all.action.Slice(row, row + 1));
      b.Set("log_prob", all.log_prob.Slice(row, row + 1));
      EXPECT_EQ(Hash(a), Hash(b)) << Name(spec.kind) << " row " << row;
    }
  }
}

TEST(Distribution, EntropyIsTheMeanOfMinusLogProb) {
  constexpr int64_t kRows = 20000;
  for (const auto& spec :
       {Spec(DistributionKind::kCategorical, {4}),
        Spec(DistributionKind::kMultiCategorical, {3, 2}), Spec(DistributionKind::kBernoulli, {3}),
        Spec(DistributionKind::kGaussian, {3}, true)}) {
    std::vector<float> row(static_cast<size_t>(spec.outputs()));
    Rng(3, Purpose::kTest).FillNormal(row);
    const Tensor output = Repeat(row, kRows);
    const auto policy = spec.gaussian() ? Distribution::Gaussian(spec, output)
                                        : Distribution::Discrete(spec, output);
    auto rngs = Generators(kRows);
    const Tensor log_prob = policy.SampleWithLogProb(policy.Noise(rngs)).log_prob;
    double mean = MeanOf(log_prob), variance = 0;
    for (const float value : log_prob.data<float>()) {
      variance += (static_cast<double>(value) - mean) * (static_cast<double>(value) - mean);
    }
    const double error = std::sqrt(variance / kRows / kRows);
    EXPECT_NEAR(MeanOf(policy.Entropy()), -mean, 4 * error + 1e-5) << Name(spec.kind);
  }
}

TEST(Distribution, ProbabilitiesOfAllActionsSumToOne) {
  const auto multi = Spec(DistributionKind::kMultiCategorical, {2, 3});
  const auto bernoulli = Spec(DistributionKind::kBernoulli, {2});
  double sum = 0;
  for (int64_t a = 0; a < 2; ++a) {
    for (int64_t b = 0; b < 3; ++b) {
      const auto policy =
          Distribution::Discrete(multi, Tensor::From<float>({1, 5}, {0.3f, -2, 1, 0.5f, -0.1f}));
      sum += std::exp(policy.LogProb(Tensor::From<int64_t>({1, 2}, {a, b})).Item());
    }
  }
  EXPECT_NEAR(sum, 1, 1e-6);
  sum = 0;
  for (int64_t a = 0; a < 2; ++a) {
    for (int64_t b = 0; b < 2; ++b) {
      const auto policy =
          Distribution::Discrete(bernoulli, Tensor::From<float>({1, 2}, {1.5f, -0.4f}));
      sum += std::exp(policy.LogProb(Tensor::From<int64_t>({1, 2}, {a, b})).Item());
    }
  }
  EXPECT_NEAR(sum, 1, 1e-6);
}

TEST(Distribution, SquashedDensityIntegratesToOne) {
  const auto spec = Spec(DistributionKind::kSquashedGaussian, {1});
  constexpr int64_t kCells = 20000;
  Tensor actions = Tensor::Empty({kCells, 1});
  for (int64_t i = 0; i < kCells; ++i) {
    actions.data<float>()[static_cast<size_t>(i)] =
        static_cast<float>(-1 + (2 * static_cast<double>(i) + 1) / kCells);
  }
  const auto policy =
      Distribution::Gaussian(spec, Tensor::Full({kCells, 1}, 0.3), Tensor::Full({1}, -0.5));
  double sum = 0;
  const Tensor log_prob = policy.LogProb(actions);
  for (const float value : log_prob.data<float>()) sum += std::exp(static_cast<double>(value));
  EXPECT_NEAR(sum * 2 / kCells, 1, 1e-4);
}

TEST(Distribution, SquashedLogProbIsThatOfTheActionAndFiniteWhereTanhSaturates) {
  const auto spec = Spec(DistributionKind::kSquashedGaussian, {2}, true);
  const auto policy = Distribution::Gaussian(
      spec, Tensor::From<float>({2, 4}, {0.1f, -0.2f, -1, 0, 30, -30, 1.9f, 5}));
  const SampledAction sampled =
      policy.SampleWithLogProb(Tensor::From<float>({2, 2}, {0.5f, -1, 1, -1}));
  const Tensor again = policy.LogProb(sampled.action);
  EXPECT_NEAR(static_cast<double>(sampled.log_prob.data<float>()[0]),
              static_cast<double>(again.data<float>()[0]), 1e-4);
  EXPECT_EQ(sampled.action.data<float>()[2], 1);
  EXPECT_TRUE(std::isfinite(sampled.log_prob.data<float>()[1]));
  EXPECT_TRUE(std::isfinite(again.data<float>()[1]));
}

TEST(Distribution, LogStdIsClampedWhereItDependsOnTheState) {
  const auto spec = Spec(DistributionKind::kGaussian, {1}, true);
  const auto policy = Distribution::Gaussian(spec, Tensor::From<float>({2, 2}, {0, 100, 0, -100}));
  const double half_log_two_pi_e = 0.5 * std::log(2 * M_PI) + 0.5;
  EXPECT_NEAR(static_cast<double>(policy.Entropy().data<float>()[0]), 2 + half_log_two_pi_e, 1e-5);
  EXPECT_NEAR(static_cast<double>(policy.Entropy().data<float>()[1]), -20 + half_log_two_pi_e,
              1e-5);
}

TEST(Distribution, MaskedActionsAreNeverTakenAndCountForNothing) {
  const auto spec = Spec(DistributionKind::kMultiCategorical, {3, 2});
  constexpr int64_t kRows = 500;
  Tensor mask = Tensor::Empty({kRows, 5}, DType::kUInt8);
  for (size_t i = 0; i < mask.data<uint8_t>().size(); ++i) {
    mask.data<uint8_t>()[i] = i % 5 == 1 || i % 5 == 4 ? 0 : 1;
  }
  const auto policy = Distribution::Discrete(spec, Repeat({0, 50, 1, -1, 50}, kRows), mask);
  auto rngs = Generators(kRows);
  const Tensor action = policy.Sample(policy.Noise(rngs));
  for (size_t row = 0; row < kRows; ++row) {
    ASSERT_NE(action.data<int64_t>()[2 * row], 1);
    ASSERT_EQ(action.data<int64_t>()[2 * row + 1], 0);
  }
  EXPECT_EQ(policy.Mode().data<int64_t>()[0], 2);
  // As a choice between logits 0 and 1 alone.
  const auto two = Spec(DistributionKind::kCategorical, {2});
  const auto plain = Distribution::Discrete(two, Tensor::From<float>({1, 2}, {0, 1}));
  EXPECT_NEAR(static_cast<double>(policy.Entropy().data<float>()[0]), plain.Entropy().Item(), 1e-6);
  EXPECT_EQ(std::exp(policy.LogProb(Tensor::Full({kRows, 2}, 1, DType::kInt64)).data<float>()[0]),
            0);
}

TEST(Distribution, ARowThatAllowsNothingIsAnError) {
  const auto spec = Spec(DistributionKind::kCategorical, {2});
  const Tensor mask = Tensor::From<uint8_t>({2, 2}, {0, 1, 0, 0});
  try {
    Distribution::Discrete(spec, Tensor::Zeros({2, 2}), mask);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("row 1 allows no action"));
  }
}

TEST(Distribution, LogitsThatAreNotFiniteStopTheRun) {
  const auto spec = Spec(DistributionKind::kCategorical, {2});
  const auto policy = Distribution::Discrete(spec, Tensor::From<float>({1, 2}, {std::nanf(""), 0}));
  try {
    policy.Sample(Tensor::Full({1, 1}, 0.5));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDiverged);
  }
}

TEST(Distribution, ModesByHand) {
  const auto bernoulli = Spec(DistributionKind::kBernoulli, {3});
  const Tensor bits =
      Distribution::Discrete(bernoulli, Tensor::From<float>({1, 3}, {-1, 0, 2})).Mode();
  EXPECT_THAT(std::vector<int64_t>(bits.data<int64_t>().begin(), bits.data<int64_t>().end()),
              testing::ElementsAre(0, 0, 1));
  const auto squashed = Spec(DistributionKind::kSquashedGaussian, {1});
  const Tensor centre =
      Distribution::Gaussian(squashed, Tensor::Full({1, 1}, 0.5), Tensor::Zeros({1})).Mode();
  EXPECT_NEAR(centre.Item(), std::tanh(0.5), 1e-6);
}

TEST(Distribution, BernoulliByHand) {
  const auto spec = Spec(DistributionKind::kBernoulli, {2});
  const auto p = Distribution::Discrete(spec, Tensor::From<float>({1, 2}, {0, std::log(3.0f)}));
  const auto q = Distribution::Discrete(spec, Tensor::Zeros({1, 2}));
  EXPECT_NEAR(p.LogProb(Tensor::From<int64_t>({1, 2}, {1, 0})).Item(), std::log(0.5 * 0.25), 1e-6);
  EXPECT_NEAR(p.KlTo(q).Item(), 0.75 * std::log(1.5) + 0.25 * std::log(0.5), 1e-6);
}

TEST(DistributionHead, HoldsItsLogStdAsAParameter) {
  Rng rng(1, Purpose::kTest);
  DistributionHead head(Spec(DistributionKind::kGaussian, {2}), 3, Initialisation::Orthogonal(0.01),
                        -0.5, rng);
  const auto parameters = head.Parameters("policy.");
  ASSERT_EQ(parameters.size(), 3u);
  EXPECT_EQ(parameters[2].name.text(), "policy.log_std");
  const auto policy = head.Forward(Tensor::Full({4, 3}, 1));
  EXPECT_NEAR(MeanOf(policy.Entropy()), 2 * (-0.5 + 0.5 + 0.5 * std::log(2 * M_PI)), 1e-5);
  DistributionHead discrete(Spec(DistributionKind::kCategorical, {4}), 3,
                            Initialisation::Orthogonal(0.01), 0, rng);
  EXPECT_EQ(discrete.Parameters().size(), 2u);
}

}  // namespace
}  // namespace weft
