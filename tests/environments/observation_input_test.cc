#include "environments/observation_input.h"

#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"

namespace weft {
namespace {

EnvironmentSpec SpecOf(std::vector<Leaf> leaves) {
  return {.id = "Test-v0", .observation = std::move(leaves), .action = Discrete{.n = 2}};
}

Leaf Integers(std::string name, Shape shape, std::vector<double> low, std::vector<double> high) {
  return {.name = std::move(name),
          .shape = shape,
          .dtype = DType::kInt64,
          .low = std::move(low),
          .high = std::move(high)};
}

std::vector<float> Values(const Tensor& x) {
  const auto values = x.data<float>();
  return {values.begin(), values.end()};
}

TEST(ObservationInput, GivesARealLeafAsItIs) {
  const ObservationInput input(SpecOf({{.name = "observation", .shape = {3}}}), {});
  EXPECT_EQ(input.shape(), Shape({3}));
  TensorMap leaves;
  leaves.Set("observation", Tensor::From<float>({1, 3}, {1, 2, 3}));
  EXPECT_EQ(input(leaves, 1).raw(), leaves.At("observation").raw());
}

TEST(ObservationInput, MakesOneStateOneHot) {
  const ObservationInput input(SpecOf({Integers("observation", {}, {0}, {3})}), {});
  EXPECT_EQ(input.shape(), Shape({4}));
  TensorMap leaves;
  leaves.Set("next_observation", Tensor::From<int64_t>({2, 1}, {2, 0}));  // [T, N]
  const Tensor x = input(leaves, 2, "next_");
  EXPECT_EQ(x.shape(), Shape({2, 1, 4}));
  EXPECT_EQ(Values(x), (std::vector<float>{0, 0, 1, 0, 1, 0, 0, 0}));
}

// Element 0 has the values -1, 0, 1 and element 1 the values 5, 6.
TEST(ObservationInput, PutsIntegersAndRealsSideBySide) {
  const ObservationInput input(
      SpecOf({Integers("cards", {2}, {-1, 5}, {1, 6}),
              {.name = "speed", .shape = {1}},
              {.name = "action_mask", .shape = {2}, .dtype = DType::kUInt8}}),
      {});
  EXPECT_EQ(input.shape(), Shape({6}));
  TensorMap leaves;
  leaves.Set("cards", Tensor::From<int64_t>({2, 2}, {-1, 6, 1, 5}));
  leaves.Set("speed", Tensor::From<float>({2, 1}, {0.5f, 0.25f}));
  EXPECT_EQ(Values(input(leaves, 1)),
            (std::vector<float>{1, 0, 0, 0, 1, 0.5f, 0, 0, 1, 1, 0, 0.25f}));
}

TEST(ObservationInput, FlattensPlanesOfZerosAndOnesButKeepsPixels) {
  const auto bytes = [](double high) {
    return Leaf{
        .name = "planes", .shape = {2, 1, 2}, .dtype = DType::kUInt8, .low = {0}, .high = {high}};
  };
  EXPECT_EQ(ObservationInput(SpecOf({bytes(255)}), {}).shape(), Shape({2, 1, 2}));
  const ObservationInput input(SpecOf({bytes(1)}), {});
  EXPECT_EQ(input.shape(), Shape({4}));
  TensorMap leaves;
  leaves.Set("planes", Tensor::From<uint8_t>({1, 2, 1, 2}, {0, 1, 1, 0}));
  EXPECT_EQ(Values(input(leaves, 1)), (std::vector<float>{0, 1, 1, 0}));
}

// Two cells, each with an object of three kinds and a bit.
TEST(ObservationInput, MakesCodesInBytesOneHot) {
  const ObservationInput input(SpecOf({{.name = "image",
                                        .shape = {2, 2},
                                        .dtype = DType::kUInt8,
                                        .low = {0},
                                        .high = {2, 1, 2, 1}}}),
                               {});
  EXPECT_EQ(input.shape(), Shape({10}));
  TensorMap leaves;
  leaves.Set("image", Tensor::From<uint8_t>({1, 2, 2}, {2, 0, 1, 1}));
  EXPECT_EQ(Values(input(leaves, 1)), (std::vector<float>{0, 0, 1, 1, 0, 0, 1, 0, 0, 1}));
  leaves.Set("image", Tensor::From<uint8_t>({1, 2, 2}, {3, 0, 1, 1}));
  EXPECT_THROW(input(leaves, 1), Error);
}

TEST(ObservationInput, RefusesIntegersOutsideTheirBounds) {
  const ObservationInput input(SpecOf({Integers("observation", {}, {0}, {3})}), {});
  for (const int64_t bad : {int64_t{-1}, int64_t{4}, int64_t{1} << 62, INT64_MIN}) {
    TensorMap leaves;
    leaves.Set("observation", Tensor::From<int64_t>({1}, {bad}));
    EXPECT_THROW(input(leaves, 1), Error) << bad;
  }
}

TEST(ObservationInput, RefusesIntegersThatCannotBeOneHot) {
  const auto refuses = [](std::vector<double> low, std::vector<double> high) {
    EXPECT_THROW(ObservationInput(SpecOf({Integers("observation", {}, low, high)}), {}),
                 ConfigProblem);
  };
  refuses({}, {});
  refuses({1}, {0});
  refuses({0}, {1e7});
  refuses({1e300}, {1e300});
  refuses({-INFINITY}, {INFINITY});
}

}  // namespace
}  // namespace weft
