// Checkable tasks: the prompts that their page lists, and its verdicts.
#include "rlhf/tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "tests/language/reference_files.h"

namespace weft {
namespace {

TEST(Task, PromptsAreThoseOfTheirSeeds) {
  const Task sort3("sort3"), max4("max4");
  ASSERT_EQ(sort3.held_out().size(), 200u);
  EXPECT_EQ(sort3.held_out()[0].query, "15 89 40");
  EXPECT_EQ(sort3.held_out()[0].expected, "15 40 89");
  EXPECT_EQ(sort3.held_out()[1].query, "75 31 78");
  EXPECT_EQ(sort3.held_out()[199].query, "44 71 20");
  EXPECT_EQ(max4.held_out()[0].query, "15 89 40 75");
  EXPECT_EQ(max4.held_out()[0].expected, "89");
  EXPECT_EQ(max4.held_out()[199].query, "96 98 56 78");
  const auto queries = [](const Task& task, uint64_t seed) {
    SplitMix64 stream = Task::Stream(seed);
    std::vector<std::string> all;
    for (const int64_t count : {2, 1}) {
      for (const TaskPrompt& prompt : task.Training(stream, count)) all.push_back(prompt.query);
    }
    return all;
  };
  using testing::ElementsAre;
  EXPECT_THAT(queries(sort3, 1), ElementsAre("91 81 32", "85 89 53", "39 47 80"));
  EXPECT_EQ(queries(sort3, 2)[0], "70 14 41");
  EXPECT_EQ(queries(sort3, 3)[0], "88 89 50");
  EXPECT_EQ(queries(max4, 1)[0], "91 81 32 85");
  EXPECT_EQ(Task("min3").held_out()[0].expected, "15");
  EXPECT_THROW(Task("max5"), Error);
}

TEST(Task, VerdictsAreExact) {
  EXPECT_TRUE(Task::Correct("15 40 89", "15 40 89", true));
  EXPECT_TRUE(Task::Correct("\n15 40 89 ", "15 40 89", true));
  EXPECT_FALSE(Task::Correct("15 40 89", "15 40 89", false));
  EXPECT_FALSE(Task::Correct("15  40 89", "15 40 89", true));
  EXPECT_FALSE(Task::Correct("", "15", true));
  EXPECT_FALSE(Task::Correct(" \n", "15", true));
}

TEST(Task, VerdictsAreThoseOfTheReference) {
  const std::string path = ReferencePath("language/rl_task_cases.jsonl");
  if (path.empty()) GTEST_SKIP() << "WEFT_REFERENCE is unset: no reference data to compare with";
  int64_t wrong = 0;
  const auto cases = ReadJsonLines(path);
  ASSERT_GT(cases.size(), 300u);
  for (const JsonValue& row : cases) {
    const bool got = Task::Correct(row.Find("answer")->AsString(), row.Find("expected")->AsString(),
                                   row.Find("finished")->AsBool());
    const JsonValue& want = *row.Find("correct");
    const bool expected = want.IsBool() ? want.AsBool() : want.NumberText() == "1";
    wrong += got != expected;
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace weft
