#include "language/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

std::string Fault(const std::string& text) {
  try {
    ParseJson(text, "config.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    return error.what();
  }
  ADD_FAILURE() << "accepted: " << text.substr(0, 100);
  return {};
}

TEST(Json, KeepsOrderKindsAndEveryDigit) {
  const std::string text = R"({"b":[1,-2.50,1e-07,12345678901234567890],)"
                           R"("a":{"x":null,"y":true,"z":"\u00e9\ud83d\ude00\n"}})";
  const JsonValue value = ParseJson(text, "t");
  EXPECT_EQ(value.Members()[0].first, "b");
  const auto items = value.Find("b")->Items();
  int64_t integer = 0;
  double number = 0;
  EXPECT_TRUE(items[0].GetInteger(integer));
  EXPECT_EQ(integer, 1);
  EXPECT_FALSE(items[1].GetInteger(integer));
  EXPECT_TRUE(items[1].GetDouble(number));
  EXPECT_EQ(number, -2.5);
  EXPECT_FALSE(items[3].GetInteger(integer));  // beyond 64 bits
  EXPECT_EQ(items[3].NumberText(), "12345678901234567890");
  EXPECT_EQ(value.Find("a")->Find("z")->AsString(), "\xC3\xA9\xF0\x9F\x98\x80\n");
  EXPECT_EQ(value.ToText(),
            R"({"b":[1,-2.50,1e-07,12345678901234567890],"a":{"x":null,"y":true,"z":")"
            "\xC3\xA9\xF0\x9F\x98\x80\\n\"}}");
}

TEST(Json, WritesAsPythonDoes) {
  JsonValue value = JsonValue::MakeObject();
  value.Set("eps", JsonValue(1e-6f));
  value.Set("theta", JsonValue(500000.0));
  value.Set("eos", JsonValue::MakeArray({JsonValue(2), JsonValue(5)}));
  value.Set("none", JsonValue::MakeArray());
  value.Set("eps", JsonValue(1e-5));
  EXPECT_EQ(value.ToText(2),
            "{\n  \"eps\": 1e-05,\n  \"theta\": 500000.0,\n  \"eos\": [\n    2,\n    5\n  ],\n"
            "  \"none\": []\n}");
}

TEST(Json, RefusesWhatTheStandardDoesNotAllow) {
  EXPECT_THAT(Fault("{\"a\":1,\"a\":2}"), HasSubstr("\"a\" twice"));
  EXPECT_THAT(Fault("{\"a\":1} x"), HasSubstr("byte 8: text after the value"));
  EXPECT_THAT(Fault("{\"a\":1,}"), HasSubstr("a key must be a string"));
  for (const char* text : {"", "{", "[1,]", "nul", "trueish", "01", "+1", "1.", ".5", "1e", "NaN",
                           "Infinity", "0x10", "'a'", "// c\n1", "\"\\x\"", "\"\xFF\"", "\"a"}) {
    EXPECT_THAT(Fault(text), HasSubstr("config.json: byte "));
  }
  EXPECT_THAT(Fault(std::string(200'000, '[')), HasSubstr("nested deeper than 128 levels"));
  double number = 0;
  EXPECT_FALSE(ParseJson("1e999", "t").GetDouble(number));
}

}  // namespace
}  // namespace weft
