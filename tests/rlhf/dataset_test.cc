// Rows of data on disk: which are refused, and what the others say.
#include "rlhf/dataset.h"

#include <gtest/gtest.h>
#include <set>

#include "base/check.h"
#include "tests/language/reference_files.h"

namespace weft {
namespace {

std::string FaultOf(const std::string& line) {
  try {
    ParseRow(line, "data.jsonl:7");
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

// Every line of a recorded file is refused, taken or passed over as the recording says.
void ExpectVerdicts(const std::string& name) {
  const std::string path = ReferencePath("datasets/" + name + ".jsonl");
  if (path.empty()) GTEST_SKIP() << "WEFT_REFERENCE is unset";
  const JsonValue expected = ReadJsonFile(ReferencePath("datasets/" + name + ".expected.json"));
  DatasetOptions options{.skip_bad_lines = true};
  expected.Find("max_characters")->GetInteger(options.max_line_bytes);
  const Dataset data(path, options);
  std::set<std::string> taken;
  for (int64_t row = 0; row < data.rows(); ++row) taken.insert(data.Row(row).place);
  int64_t rejected = 0;
  for (const JsonValue& verdict : expected.Find("verdicts")->Items()) {
    const std::string& want = verdict.Find("verdict")->AsString();
    const std::string place = path + ":" + std::string(verdict.Find("line")->NumberText());
    if (want != "policy") {
      EXPECT_EQ(taken.contains(place), want == "accept")
          << place << " " << verdict.Find("why")->AsString();
    }
    rejected += want != "skip" && !taken.contains(place);
  }
  EXPECT_EQ(data.skipped(), rejected);
  try {
    const Dataset strict(path, {});
    ADD_FAILURE() << "a bad line is an error unless it is to be skipped";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find(path + ":2"), std::string::npos) << error.message();
  }
}

TEST(Dataset, PairsAreTakenOrRefusedAsRecorded) {
  ExpectVerdicts("malformed_preference");
}
TEST(Dataset, ChatsAndVerdictsAreTakenOrRefusedAsRecorded) {
  ExpectVerdicts("malformed_sft_kto");
}

TEST(Dataset, PlainChatsSplitAsRecorded) {
  const std::string path = ReferencePath("datasets/hh_rlhf_parsed_first40.jsonl");
  if (path.empty()) GTEST_SKIP() << "WEFT_REFERENCE is unset";
  const Dataset data(ReferencePath("datasets/hh_rlhf_harmless_test_slice.jsonl"),
                     {.skip_bad_lines = true});
  EXPECT_EQ(data.rows() + data.skipped(), 429);
  const auto trimmed = [](const std::string& text) {
    const size_t begin = text.find_first_not_of(" \n"), end = text.find_last_not_of(" \n");
    return text.substr(begin, end + 1 - begin);
  };
  for (const JsonValue& want : ReadJsonLines(path)) {
    int64_t line = 0;
    want.Find("line")->GetInteger(line);
    const DataRow row = data.Row(line);
    // The recording ends a prompt with the empty message that is to be written.
    const auto messages = want.Find("prompt_messages")->Items();
    EXPECT_EQ(row.prompt.ToText(),
              JsonValue::MakeArray({messages.begin(), messages.end() - 1}).ToText())
        << row.place;
    for (const auto& [answer, column] :
         {std::pair{&row.chosen, "chosen"}, std::pair{&row.rejected, "rejected"}}) {
      EXPECT_EQ(answer->Items()[0].Find("content")->AsString(),
                trimmed(want.Find(column)->AsString()))
          << row.place;
    }
  }
}

TEST(Dataset, APromptThatIsNotGivenIsWhatBothAnswersShare) {
  const DataRow text =
      ParseRow(R"({"chosen":"The sky is blue","rejected":"The sky is green"})", "f");
  EXPECT_EQ(text.prompt.AsString(), "The sky is");
  EXPECT_EQ(text.chosen.AsString(), " blue");
  const DataRow chat =
      ParseRow(R"({"chosen":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],)"
               R"("rejected":[{"role":"user","content":"q"},{"role":"assistant","content":"b"}]})",
               "f");
  EXPECT_EQ(chat.prompt.ToText(), R"([{"role":"user","content":"q"}])");
  EXPECT_EQ(chat.rejected.ToText(), R"([{"role":"assistant","content":"b"}])");
}

TEST(Dataset, AFaultNamesPlaceAndColumn) {
  EXPECT_EQ(FaultOf(R"({"prompt":"p","chosen":"c"})"),
            "data.jsonl:7: the column rejected is missing");
  EXPECT_EQ(FaultOf(R"({"prompt":"p","completion":"c","label":"yes"})"),
            "data.jsonl:7: label must be true or false, not a string");
  EXPECT_NE(FaultOf(R"({"question":"p"})").find("no columns to learn from"), std::string::npos);
  EXPECT_NE(FaultOf(R"({"Text":"p"})").find("must be written \"text\""), std::string::npos);
}

}  // namespace
}  // namespace weft
