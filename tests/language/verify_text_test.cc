// Every recorded string, conversation and template of the reference data.
#include "language/verify_text.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "tests/base/temporary_folder.h"
#include "tests/language/reference_files.h"
#include "tests/language/tokenizer_files.h"

namespace weft {
namespace {

TEST(VerifyText, EveryRecordedTextIsEqual) {
  const std::string folder = ReferencePath("language");
  if (folder.empty()) GTEST_SKIP() << "needs WEFT_REFERENCE/language";
  const VerifyReport report = VerifyTexts(folder);
  for (const VerifyField& field : report.fields) {
    EXPECT_EQ(field.failed, 0) << field.file << ": " << field.tensor;
    EXPECT_GT(field.checked, 50) << field.file;
  }
  // 10 tokenizers, 3 vocabularies of GGUF files, 7 templates, and the features of the language.
  EXPECT_EQ(report.files.size(), 21u);
  EXPECT_GT(report.checked, 8000);
}

TEST(VerifyText, JsonOfTemplatesIsPythons) {
  const std::string file = ReferencePath("cases/files/chat/c62_templates.json");
  if (file.empty()) GTEST_SKIP() << "needs WEFT_REFERENCE/cases";
  const VerifyReport report = VerifyTemplates(file);
  EXPECT_EQ(report.checked, 6);
  EXPECT_EQ(report.failed, 0) << report.worst.tensor;
}

TEST(VerifyText, CountsCasesThatDiffer) {
  const TemporaryFolder folder;
  WriteFileAtomic(folder.Path("tokenizer.json"), SmallTokenizerJson());
  WriteFileAtomic(folder.Path("cases.jsonl"),
                  R"({"text": "abc", "ids": [5], "offsets": [[0, 3]], "decoded": "abc"}
{"text": "abc", "ids": [4, 2], "offsets": [[0, 2], [2, 3]], "decoded": "abc"}
{"text": "abc", "ids": [5], "offsets": [[0, 2]]}
{"text": "abc", "ids": [5], "ids_with_special": [9, 5]}
)");
  WriteFileAtomic(folder.Path("decode_cases.jsonl"), R"({"ids": [5, 0], "decoded": "abcb"})");
  const VerifyReport report = VerifyTokenizer(folder.path(), folder.path());
  EXPECT_EQ(report.checked, 5);
  EXPECT_EQ(report.failed, 4);
  EXPECT_EQ(report.worst.tensor, "text \"abc\": ids [5] instead of [4 2]");

  WriteFileAtomic(folder.Path("templates.json"),
                  R"([{"template": "{{ 1 }}", "expected": {"ok": "1"}},
                      {"template": "{{ 1 }}", "expected": {"ok": "2"}},
                      {"template": "{{ 1 }}", "error": "TypeError"},
                      {"template": "{{ raise_exception('a') }}", "error": "TemplateError",
                       "message": "b"}])");
  EXPECT_EQ(VerifyTemplates(folder.Path("templates.json")).failed, 3);
}

}  // namespace
}  // namespace weft
