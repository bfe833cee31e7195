#include "base/text.h"

#include <gtest/gtest.h>
#include <limits>

namespace weft {
namespace {

TEST(DidYouMean, FindsTheNearestOfSeveral) {
  const std::vector<std::string> keys = {"gamma", "gae_lambda", "learning_rate", "clip_range",
                                         "lr"};
  EXPECT_EQ(DidYouMean("gama", keys), "; did you mean \"gamma\"?");
  EXPECT_EQ(DidYouMean("Gamma", keys), "; did you mean \"gamma\"?");
  EXPECT_EQ(DidYouMean("lerning_rate", keys), "; did you mean \"learning_rate\"?");
  EXPECT_EQ(DidYouMean("rate", keys), "; did you mean \"learning_rate\"?");
  EXPECT_EQ(DidYouMean("cilp_range", keys), "; did you mean \"clip_range\"?");
}

TEST(DidYouMean, SaysNothingWhenNothingIsNear) {
  const std::vector<std::string> keys = {"gamma", "seed"};
  EXPECT_EQ(DidYouMean("entropy_coefficient", keys), "");
  EXPECT_EQ(DidYouMean("", keys), "");
  EXPECT_EQ(DidYouMean("x", {}), "");
  EXPECT_EQ(DidYouMean(std::string(100000, 'g'), keys), "");
}

TEST(Fnv1a, GivesThePublishedTestValues) {
  EXPECT_EQ(Fnv1a(""), 0xcbf29ce484222325u);
  EXPECT_EQ(Fnv1a("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(Fnv1a("foobar"), 0x85944171f73967e8u);
  EXPECT_EQ(Fnv1a("bar", Fnv1a("foo")), Fnv1a("foobar"));
}

TEST(HumanCount, KeepsThreeDigitsAndCrossesUnitsWithoutAGap) {
  EXPECT_EQ(HumanCount(0), "0");
  EXPECT_EQ(HumanCount(950), "950");
  EXPECT_EQ(HumanCount(2.5), "2.50");
  EXPECT_EQ(HumanCount(38200), "38.2k");
  EXPECT_EQ(HumanCount(1234567), "1.23M");
  EXPECT_EQ(HumanCount(999499), "999k");
  EXPECT_EQ(HumanCount(999999), "1.00M");
  EXPECT_EQ(HumanCount(-4200), "-4.20k");
  EXPECT_EQ(HumanCount(std::numeric_limits<double>::infinity()), "infT");
}

TEST(HumanSeconds, ShowsTheTwoLargestUnits) {
  EXPECT_EQ(HumanSeconds(0.25), "0.2s");
  EXPECT_EQ(HumanSeconds(15.4), "15s");
  EXPECT_EQ(HumanSeconds(75.2), "1m 15s");
  EXPECT_EQ(HumanSeconds(59.7), "1m 00s");
  EXPECT_EQ(HumanSeconds(3 * 3600 + 62), "3h 01m");
  EXPECT_EQ(HumanSeconds(90000), "1d 01h");
  EXPECT_EQ(HumanSeconds(std::numeric_limits<double>::quiet_NaN()), "forever");
}

TEST(HumanBytes, UsesPowersOf1024) {
  EXPECT_EQ(HumanBytes(512), "512 B");
  EXPECT_EQ(HumanBytes(1536), "1.50 KiB");
  EXPECT_EQ(HumanBytes(1 << 30), "1.00 GiB");
}

TEST(Join, PutsTheSeparatorBetween) {
  EXPECT_EQ(Join({}, ", "), "");
  EXPECT_EQ(Join({"a"}, ", "), "a");
  EXPECT_EQ(Join({"a", "b", "c"}, ", "), "a, b, c");
}

}  // namespace
}  // namespace weft
