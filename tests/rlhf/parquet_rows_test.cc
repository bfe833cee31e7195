// Parquet files give the rows of the JSON lines beside them, both written by tests/data/parquet/
// make.py from the same values; faults name file and row or column. Skipped where Arrow was not
// fetched.
#include "rlhf/parquet_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "base/random.h"
#include "rlhf/dataset.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kFolder = WEFT_TEST_DATA "/parquet/";

class Parquet : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoParquet(); !why.empty()) GTEST_SKIP() << why;
  }
  std::string FaultOf(const std::string& path, bool skip = false) const {
    try {
      const Dataset data(path, {.skip_bad_lines = skip});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << error.message();
      return error.message();
    }
    return "";
  }
};

TEST(NoParquet, IsSaidWithTheCommandThatFetchesIt) {
  if (WhyNoParquet().empty()) GTEST_SKIP() << "Parquet files can be read here";
  try {
    const Dataset data(kFolder + "pairs.parquet", {.skip_bad_lines = true});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.message(), StartsWith(kFolder + "pairs.parquet: is a Parquet file"));
    EXPECT_THAT(error.message(), HasSubstr("./weft fetch parquet"));
  }
}

// Row groups of 7 and 5, pages of both versions, plain, dictionaries and deltas, four compressions.
TEST_F(Parquet, HasTheRowsOfTheSameJsonLines) {
  for (const std::string name : {"pairs", "chats", "verdicts", "margins"}) {
    const Dataset parquet(kFolder + name + ".parquet", {}), lines(kFolder + name + ".jsonl", {});
    ASSERT_EQ(parquet.rows(), lines.rows()) << name;
    for (int64_t row = 0; row < lines.rows(); ++row) {
      const DataRow got = parquet.Row(row), want = lines.Row(row);
      EXPECT_EQ(got.place, kFolder + name + ".parquet:" + std::to_string(row + 1));
      EXPECT_EQ(got.kind, want.kind);
      EXPECT_EQ(got.text, want.text);
      EXPECT_EQ(got.messages.ToText(), want.messages.ToText());
      EXPECT_EQ(got.prompt.ToText(), want.prompt.ToText());
      EXPECT_EQ(got.chosen.ToText(), want.chosen.ToText());
      EXPECT_EQ(got.rejected.ToText(), want.rejected.ToText());
      EXPECT_EQ(got.label, want.label);
      EXPECT_EQ(got.margin, want.margin);
    }
  }
}

TEST_F(Parquet, ColumnsThatNobodyReadsMayBeOfAnyKind) {
  const Dataset data(kFolder + "others.parquet", {});
  ASSERT_EQ(data.rows(), 2);
  EXPECT_EQ(data.Row(1).text, "two");
}

TEST_F(Parquet, ABadRowIsNamedOrCounted) {
  const std::string path = kFolder + "faulty.parquet";
  EXPECT_EQ(FaultOf(path), path + ":2: completion is empty: an answer has a word at least");
  const Dataset rest(path, {.skip_bad_lines = true});
  EXPECT_EQ(rest.skipped(), 2);
  EXPECT_EQ(rest.rows(), 2);
  EXPECT_EQ(rest.Row(1).place, path + ":4");
}

TEST_F(Parquet, AColumnThatJsonHasNoValuesForIsNamed) {
  const std::pair<const char*, const char*> kRefused[] = {
      {"binary", "the column prompt is binary;"},
      {"timestamp", "the column label is timestamp[us];"},
      {"decimal", "the column margin is decimal128(5, 2);"},
      {"map", "the column messages is map<string, string"},
      {"nested", "the column messages.at is date32[day];"}};
  for (const auto& [name, reason] : kRefused) {
    const std::string path = kFolder + name + ".parquet";
    EXPECT_THAT(FaultOf(path, /*skip=*/true), StartsWith(path + ": " + reason));
  }
}

TEST_F(Parquet, ADamagedFileIsAFaultThatNamesIt) {
  const auto fault_of = [](const std::string& bytes) -> std::string {
    const char* const columns[] = {"messages", "chosen", "rejected", "margin", "prompt"};
    try {
      ParquetAsJsonLines("F", {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()},
                         columns);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << error.message();
      return error.message();
    }
    return "";
  };
  int faults = 0;
  for (const std::string name : {"pairs", "chats", "verdicts", "margins"}) {
    const std::string whole = ReadFile(kFolder + name + ".parquet");
    EXPECT_EQ(fault_of(whole), "");
    for (size_t size = 4; size < whole.size(); size += 97) {
      EXPECT_THAT(fault_of(whole.substr(0, size)), StartsWith("F: cannot be read")) << size;
    }
    Rng rng(1, Purpose::kTest);
    for (int i = 0; i < 200; ++i) {  // some bytes are others: rows or a fault, never a crash
      std::string bytes = whole;
      for (int k = 0; k < 3; ++k) {
        bytes[4 + rng.Below(bytes.size() - 4)] = static_cast<char>(rng.Below(256));
      }
      const std::string fault = fault_of(bytes);
      if (fault.empty()) continue;
      EXPECT_THAT(fault, StartsWith("F: "));
      ++faults;
    }
  }
  EXPECT_GT(faults, 400);
}

}  // namespace
}  // namespace weft
