#include "base/scalar.h"

#include <bit>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "base/random.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

template <class T>
T Parsed(const char* text) {
  T value{};
  EXPECT_EQ(ParseNumber(text, value), "") << text;
  return value;
}

// The reason for refusing text; value must stay.
template <class T>
std::string Refused(std::string_view text) {
  T value = 17;
  const std::string reason = ParseNumber(text, value);
  EXPECT_NE(reason, "") << text;
  EXPECT_EQ(value, T{17}) << text;
  return reason;
}

TEST(ParseNumber, WholeNumbersInEverySpelling) {
  EXPECT_EQ(Parsed<int64_t>("0"), 0);
  EXPECT_EQ(Parsed<int64_t>("-12"), -12);
  EXPECT_EQ(Parsed<int64_t>("+12"), 12);
  EXPECT_EQ(Parsed<int64_t>("1e6"), 1000000);
  EXPECT_EQ(Parsed<int64_t>("1E+6"), 1000000);
  EXPECT_EQ(Parsed<int64_t>("1.5e3"), 1500);
  EXPECT_EQ(Parsed<int64_t>("1500e-2"), 15);
  EXPECT_EQ(Parsed<int64_t>("2048.0"), 2048);
  EXPECT_EQ(Parsed<int64_t>("0.0"), 0);
  EXPECT_EQ(Parsed<int64_t>("1_000_000"), 1000000);
  EXPECT_EQ(Parsed<int64_t>("0x40"), 64);
  EXPECT_EQ(Parsed<int64_t>("-0X40"), -64);
}

TEST(ParseNumber, All64BitsAreExactAndTheNextNumberIsRefused) {
  EXPECT_EQ(Parsed<int64_t>("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Parsed<int64_t>("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Parsed<uint64_t>("18446744073709551615"), ~uint64_t{0});
  EXPECT_EQ(Parsed<uint64_t>("1.8446744073709551615e19"), ~uint64_t{0});
  EXPECT_EQ(Parsed<uint64_t>("12345678901"), 12345678901u);
  EXPECT_THAT(Refused<int64_t>("9223372036854775808"), HasSubstr("64 bits"));
  EXPECT_THAT(Refused<int64_t>("-9223372036854775809"), HasSubstr("64 bits"));
  EXPECT_THAT(Refused<uint64_t>("18446744073709551616"), HasSubstr("64 bits"));
  EXPECT_THAT(Refused<uint64_t>("99999999999999999999999999"), HasSubstr("64 bits"));
  EXPECT_THAT(Refused<uint64_t>("1e999"), HasSubstr("64 bits"));
  EXPECT_THAT(Refused<uint64_t>("0x10000000000000000"), HasSubstr("64 bits"));
  EXPECT_THAT(Refused<uint64_t>("-1"), HasSubstr("must not be negative"));
}

TEST(ParseNumber, RefusesWhatIsNoWholeNumber) {
  for (const char* text : {"",
                           "-",
                           "+",
                           ".",
                           "e5",
                           "1e",
                           "1e+",
                           "1e+-3",
                           "--1",
                           "2048.5",
                           "1e-3",
                           "1__0",
                           "_1",
                           "1_",
                           "1,000",
                           "1 000",
                           "12a",
                           "0x",
                           "0xg",
                           "0x 4",
                           "0x-4",
                           "0b1",
                           "0o17",
                           ".inf",
                           ".nan",
                           "inf",
                           "nan",
                           "true",
                           "1e99999999999999999999",
                           "1.5.2",
                           " 1",
                           "1 "}) {
    EXPECT_THAT(Refused<int64_t>(text), HasSubstr("whole number")) << text;
  }
}

TEST(ParseNumber, RefusesLeadingZerosBecauseReadersDisagreeOnThem) {
  EXPECT_THAT(Refused<int64_t>("0256"), HasSubstr("octal"));
  EXPECT_THAT(Refused<int64_t>("-010"), HasSubstr("octal"));
  EXPECT_THAT(Refused<double>("00.5"), HasSubstr("octal"));
  EXPECT_THAT(Refused<uint64_t>("0_1"), HasSubstr("octal"));
}

TEST(ParseNumber, DoublesAreRoundedCorrectly) {
  EXPECT_EQ(Parsed<double>("1e-4"), 0.0001);
  EXPECT_EQ(Parsed<double>("1E-8"), 1e-8);
  EXPECT_EQ(Parsed<double>(".2"), 0.2);
  EXPECT_EQ(Parsed<double>("1.e-3"), 0.001);
  EXPECT_EQ(Parsed<double>("1_000.5"), 1000.5);
  EXPECT_EQ(Parsed<double>("123456789.123456789e-20"), 123456789.123456789e-20);
  EXPECT_EQ(Parsed<double>("0.1000000000000000055511151231257827021181583404541015625"), 0.1);
  EXPECT_EQ(Parsed<double>("1.7976931348623157e308"), std::numeric_limits<double>::max());
  EXPECT_EQ(Parsed<double>("5e-324"), std::numeric_limits<double>::denorm_min());
  EXPECT_TRUE(std::signbit(Parsed<double>("-0")));
  EXPECT_EQ(Parsed<double>("-.inf"), -std::numeric_limits<double>::infinity());
}

TEST(ParseNumber, RefusesDoublesThatAreNone) {
  for (const char* text :
       {"", ".", "-.", "abc", "1e", "0x40", "nan", "inf", ".nan", "infinity", "1,5"}) {
    EXPECT_THAT(Refused<double>(text), HasSubstr("must be a number")) << text;
  }
  EXPECT_THAT(Refused<double>("1e400"), HasSubstr("does not fit"));
  EXPECT_THAT(Refused<double>("1e-400"), HasSubstr("does not fit"));
}

TEST(NumberText, EveryDoubleComesBack) {
  Rng rng(1, Purpose::kTest);
  for (int i = 0; i < 20000; ++i) {
    const auto value = std::bit_cast<double>(rng.NextU64());
    if (!std::isfinite(value)) continue;
    double back = 0;
    ASSERT_EQ(ParseNumber(NumberText(value), back), "") << NumberText(value);
    ASSERT_EQ(std::bit_cast<uint64_t>(back), std::bit_cast<uint64_t>(value));
  }
  EXPECT_EQ(NumberText(0.00025), "0.00025");
  EXPECT_EQ(NumberText(std::numeric_limits<double>::infinity()), ".inf");
}

TEST(ParseBool, TakesTrueAndFalseAloneAndGivesAdviceForTheRest) {
  bool value = false;
  EXPECT_EQ(ParseBool("true", value), "");
  EXPECT_TRUE(value);
  EXPECT_EQ(ParseBool("False", value), "");
  EXPECT_FALSE(value);
  EXPECT_THAT(ParseBool("on", value), HasSubstr("write true"));
  EXPECT_THAT(ParseBool("Yes", value), HasSubstr("write true"));
  EXPECT_THAT(ParseBool("no", value), HasSubstr("write false"));
  EXPECT_THAT(ParseBool("0", value), HasSubstr("write false"));
  EXPECT_THAT(ParseBool("maybe", value), HasSubstr("not \"maybe\""));
  EXPECT_FALSE(value);
}

}  // namespace
}  // namespace weft
