#include "base/registry.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

Registry<int> Three() {
  Registry<int> registry("environment");
  registry.Add("Pendulum-v1", 2);
  registry.Add("CartPole-v1", 1);
  registry.Add("Hopper-v5", 3);
  return registry;
}

TEST(Registry, FindsWhatWasAddedInOrderOfNames) {
  const Registry<int> registry = Three();
  EXPECT_EQ(registry.At("CartPole-v1"), 1);
  EXPECT_EQ(registry.Find("cartpole"), nullptr);
  EXPECT_EQ(registry.Names(),
            (std::vector<std::string>{"CartPole-v1", "Hopper-v5", "Pendulum-v1"}));
}

TEST(Registry, UnknownNameIsAConfigErrorWithTheNearestName) {
  const Registry<int> registry = Three();
  try {
    registry.At("CartPole-v0");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_STREQ(error.what(),
                 "there is no environment \"CartPole-v0\"; did you mean \"CartPole-v1\"?");
  }
}

TEST(Registry, SameNameTwiceThrows) {
  Registry<int> registry = Three();
  EXPECT_THROW(registry.Add("Hopper-v5", 4), Error);
  EXPECT_EQ(registry.At("Hopper-v5"), 3);
}

}  // namespace
}  // namespace weft
