// Known answers are those of Random123 (kat_vectors, philox4x32 with 10 rounds); normal numbers are
// compared with libm in long double.
#include "base/random.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

#include "base/check.h"

namespace weft {
namespace {

using Block = std::array<uint32_t, 4>;

TEST(Philox, GivesTheKnownAnswersOfRandom123) {
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Rng, DrawsAreTheWordsOfPhiloxBlocks) {
  Rng rng(0x123456789abcdef0, Purpose::kTest, 5);
  const uint64_t stream = (uint64_t{8} << 40) + 5;
  for (uint32_t block = 0; block < 3; ++block) {
    const Block expected =
        Philox({block, 0, static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)},
               {0x9abcdef0, 0x12345678});
    for (const uint32_t word : expected) EXPECT_EQ(rng.NextU32(), word);
  }
  EXPECT_EQ(rng.state().position, 12u);
}

TEST(Rng, ContinuesFromAnySavedPosition) {
  Rng rng(7, Purpose::kTest);
  std::vector<uint32_t> draws;
  std::vector<Rng::State> states;
  for (int i = 0; i < 20; ++i) {
    states.push_back(rng.state());
    draws.push_back(rng.NextU32());
  }
  for (int i = 0; i < 20; ++i) {
    Rng again(states[i]);
    for (int j = i; j < 20; ++j) ASSERT_EQ(again.NextU32(), draws[j]) << "from " << i;
  }
}

TEST(Rng, StreamsOfOtherPurposeRowOrSeedDiffer) {
  const uint64_t first = Rng(1, Purpose::kEnvironment, 0).NextU64();
  EXPECT_NE(first, Rng(1, Purpose::kEvaluation, 0).NextU64());
  EXPECT_NE(first, Rng(1, Purpose::kEnvironment, 1).NextU64());
  EXPECT_NE(first, Rng(2, Purpose::kEnvironment, 0).NextU64());
  EXPECT_NE(first, Rng(1 + (uint64_t{1} << 32), Purpose::kEnvironment, 0).NextU64());
}

TEST(Rng, UniformScalesTheHighBits) {
  Rng bits(3, Purpose::kTest), doubles(3, Purpose::kTest), floats(3, Purpose::kTest);
  for (int i = 0; i < 1000; ++i) {
    const double expected = std::ldexp(static_cast<double>(bits.NextU64() >> 11), -53);
    EXPECT_EQ(doubles.Uniform(), expected);
  }
  Rng words(3, Purpose::kTest);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(floats.UniformFloat(), std::ldexp(static_cast<float>(words.NextU32() >> 8), -24));
  }
}

TEST(Rng, UniformStaysBelowItsUpperBoundWhereTheSumRoundsUp) {
  Rng rng(4, Purpose::kTest);
  const double low = 1, high = std::nextafter(1.0, 2.0);  // one step apart: half of sums round up
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rng.Uniform(low, high), low);
  EXPECT_EQ(rng.Uniform(2, 2), 2);
}

TEST(Rng, BelowIsInRangeAndEvenForSmallAndWideBounds) {
  Rng rng(5, Purpose::kTest);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70000; ++i) ++counts[rng.Below(7)];
  double chi_square = 0;
  for (const int count : counts) chi_square += (count - 10000.0) * (count - 10000.0) / 10000;
  EXPECT_LT(chi_square, 22.5);  // 6 degrees of freedom: exceeded once in 1,000 seeds

  // 3 * 2^62: the naive remainder would give values below 2^62 twice as often.
  const uint64_t wide = uint64_t{3} << 62;
  int low = 0;
  for (int i = 0; i < 30000; ++i) {
    const uint64_t draw = rng.Below(wide);
    ASSERT_LT(draw, wide);
    low += draw < uint64_t{1} << 62;
  }
  EXPECT_NEAR(low, 10000, 330);  // 4 standard deviations
  EXPECT_EQ(rng.Below(1), 0u);
  EXPECT_THROW(rng.Below(0), Error);
}

TEST(Rng, NormalEqualsBoxMullerByLongDouble) {
  Rng bits(6, Purpose::kTest), normals(6, Purpose::kTest);
  for (int i = 0; i < 20000; ++i) {
    const long double uniform =
        std::ldexp(static_cast<long double>((bits.NextU64() >> 11) + 1), -53);
    const long double turn = std::ldexp(static_cast<long double>(bits.NextU64() >> 11), -53);
    const long double expected =
        std::sqrt(-2 * std::log(uniform)) * std::cos(2 * std::acos(-1.0L) * turn);
    ASSERT_NEAR(normals.Normal(), static_cast<double>(expected), 1e-14) << "draw " << i;
  }
}

TEST(Rng, FilledNormalsAreCosineAndSineOfTheSamePair) {
  std::vector<float> filled(2001);
  Rng fill(9, Purpose::kTest), bits(9, Purpose::kTest);
  fill.FillNormal(filled);
  for (size_t i = 0; i + 1 < filled.size(); i += 2) {
    const double radius =
        std::sqrt(-2 * std::log(std::ldexp(static_cast<double>((bits.NextU64() >> 11) + 1), -53)));
    const double angle = 2 * std::acos(-1.0) * std::ldexp(double(bits.NextU64() >> 11), -53);
    EXPECT_FLOAT_EQ(filled[i], static_cast<float>(radius * std::cos(angle)));
    EXPECT_NEAR(filled[i + 1], radius * std::sin(angle), 1e-6);
  }
  EXPECT_EQ(fill.state().position, 4 * 1001u);
}

TEST(Rng, FillingInPartsOfWholePairsEqualsFillingAtOnce) {
  for (const int offset : {0, 1, 2, 3}) {
    Rng whole({11, 12, static_cast<uint64_t>(offset)}), parts(whole.state());
    std::vector<float> a(600), b(600);
    whole.FillNormal(a);
    parts.FillNormal(std::span(b).first(2));
    parts.FillNormal(std::span(b).subspan(2, 500));
    parts.FillNormal(std::span(b).subspan(502));
    EXPECT_EQ(a, b);
    whole.FillUniform(a);
    for (float& value : b) value = parts.UniformFloat();
    EXPECT_EQ(a, b);
    EXPECT_EQ(whole.state(), parts.state());
  }
}

TEST(Rng, NormalMomentsAreThoseOfTheNormalDistribution) {
  std::vector<float> x(200000);
  Rng(10, Purpose::kTest).FillNormal(x);
  double sum = 0, squares = 0, cubes = 0, fourths = 0;
  for (const double v : x) sum += v, squares += v * v, cubes += v * v * v, fourths += v * v * v * v;
  const auto n = static_cast<double>(x.size());
  EXPECT_NEAR(sum / n, 0, 4 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 4 * std::sqrt(2 / n));
  EXPECT_NEAR(cubes / n, 0, 4 * std::sqrt(15 / n));
  EXPECT_NEAR(fourths / n, 3, 4 * std::sqrt(96 / n));
}

TEST(Rng, ShuffleIsAPermutationAndEveryElementGoesEverywhere) {
  Rng rng(12, Purpose::kTest);
  int landed[4][4] = {};
  for (int trial = 0; trial < 24000; ++trial) {
    std::vector<int64_t> values = {0, 1, 2, 3};
    rng.Shuffle(values);
    for (int i = 0; i < 4; ++i) ++landed[values[i]][i];
    std::sort(values.begin(), values.end());
    ASSERT_EQ(values, (std::vector<int64_t>{0, 1, 2, 3}));
  }
  for (const auto& row : landed) {
    for (const int count : row) EXPECT_NEAR(count, 6000, 270);  // 4 standard deviations
  }
}

}  // namespace
}  // namespace weft
