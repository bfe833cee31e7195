// Ids, offsets and decoded texts of the `tokenizers` library and SentencePiece, for every recorded
// string.
#include <gtest/gtest.h>

#include "base/check.h"
#include "language/gguf.h"
#include "language/gguf_tokenizer.h"
#include "language/tokenizer/tokenizer.h"
#include "tests/language/reference_files.h"

namespace weft {
namespace {

std::vector<int32_t> Ids(const JsonValue& list) {
  std::vector<int32_t> ids;
  for (const JsonValue& item : list.Items()) {
    int64_t id = -1;
    EXPECT_TRUE(item.GetInteger(id));
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

std::vector<TextSpan> Spans(const JsonValue& list) {
  std::vector<TextSpan> spans;
  for (const JsonValue& item : list.Items()) {
    const auto ends = Ids(item);
    spans.push_back({ends.at(0), ends.at(1)});
  }
  return spans;
}

std::string Streamed(const Tokenizer& tokenizer, std::span<const int32_t> ids, bool skip_special) {
  StreamDecoder stream(tokenizer, skip_special);
  std::string text;
  for (const int32_t id : ids) text += stream.Add(id);
  return text + stream.Finish();
}

class TokenizerReference : public ::testing::TestWithParam<const char*> {};

TEST_P(TokenizerReference, EveryCaseIsEqual) {
  const std::string folder = ReferencePath(std::string("language/tokenizers/") + GetParam());
  if (folder.empty()) GTEST_SKIP() << "needs WEFT_REFERENCE/language/tokenizers";
  const Tokenizer tokenizer = Tokenizer::Load(folder);
  int failures = 0;
  for (const JsonValue& line : ReadJsonLines(folder + "/cases.jsonl")) {
    const std::string& text = line.Find("text")->AsString();
    SCOPED_TRACE(line.Find("text")->ToText());
    const auto ids = Ids(*line.Find("ids"));
    const Encoding encoding = tokenizer.EncodeWithOffsets(text);
    EXPECT_EQ(encoding.ids, ids);
    EXPECT_EQ(tokenizer.Encode(text), ids);
    EXPECT_TRUE(encoding.code_points == Spans(*line.Find("offsets")));
    EXPECT_TRUE(encoding.bytes == Spans(*line.Find("byte_offsets")));
    const JsonValue* special = line.Find("ids_with_special");
    EXPECT_EQ(tokenizer.Encode(text, {.add_special = true}),
              special->IsNull() ? ids : Ids(*special));
    const std::string& decoded = line.Find("decoded")->AsString();
    const JsonValue* skipped = line.Find("decoded_skip_special");
    const std::string& without = skipped && skipped->IsString() ? skipped->AsString() : decoded;
    EXPECT_EQ(tokenizer.Decode(ids), decoded);
    EXPECT_EQ(tokenizer.Decode(ids, true), without);
    EXPECT_EQ(Streamed(tokenizer, ids, true), without);
    if (HasFailure() && ++failures == 5) return;
  }
  for (const JsonValue& line : ReadJsonLines(folder + "/decode_cases.jsonl")) {
    SCOPED_TRACE(line.Find("ids")->ToText());
    const auto ids = Ids(*line.Find("ids"));
    EXPECT_EQ(tokenizer.Decode(ids), line.Find("decoded")->AsString());
    EXPECT_EQ(tokenizer.Decode(ids, true), line.Find("decoded_skip_special")->AsString());
    EXPECT_EQ(Streamed(tokenizer, ids, false), line.Find("decoded")->AsString());
    if (HasFailure() && ++failures == 5) return;
  }
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerReference,
                         ::testing::Values("smollm2", "gpt2", "bert_wordpiece", "gpt2_small",
                                           "llama3_small", "qwen2_small", "llama2_spm_small",
                                           "gemma_spm_small", "mistral_metaspace_small",
                                           "added_tokens_small"));

class GgufReference : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(GgufReference, EveryCaseIsEqual) {
  const auto& [name, model] = GetParam();
  const std::string path = ReferencePath(std::string("language/gguf/") + model + ".gguf");
  const std::string cases =
      ReferencePath(std::string("language/gguf/tokenizer_") + name + ".cases.jsonl");
  if (path.empty() || cases.empty()) GTEST_SKIP() << "needs WEFT_REFERENCE/language/gguf";
  const GgufTokenizer gguf = ReadGgufTokenizer(GgufFile(path));
  const Tokenizer tokenizer = Tokenizer::FromGguf(gguf, path);
  // SentencePiece takes the control tokens of a text for plain text.
  const EncodeOptions options = {.parse_special = gguf.model != "llama"};
  int failures = 0;
  for (const JsonValue& line : ReadJsonLines(cases)) {
    SCOPED_TRACE(line.Find("text")->ToText());
    const auto ids = Ids(*line.Find("ids"));
    EXPECT_EQ(tokenizer.Encode(line.Find("text")->AsString(), options), ids);
    EXPECT_EQ(tokenizer.Decode(ids), line.Find("decoded")->AsString());
    if (HasFailure() && ++failures == 5) return;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GgufReference,
                         ::testing::Values(std::pair("gpt2", "gpt2-f32"),
                                           std::pair("qwen2", "qwen2-f32"),
                                           std::pair("llama_gqa_untied", "llama_gqa_untied-f32")));

TEST(TokenizerReference, IllFormedTextIsReplacedAsByTheLibrary) {
  const std::string path = ReferencePath("language/tokenizers/invalid_utf8.json");
  const std::string folder = ReferencePath("language/tokenizers/gpt2_small");
  if (path.empty() || folder.empty()) GTEST_SKIP() << "needs WEFT_REFERENCE/language/tokenizers";
  const Tokenizer tokenizer = Tokenizer::Load(folder);
  const JsonValue cases = ReadJsonFile(path);
  for (const JsonValue& item : cases.Items()) {
    const std::string& hex = item.Find("hex")->AsString();
    SCOPED_TRACE(hex);
    std::string bytes;
    for (size_t i = 0; i < hex.size(); i += 2) {
      bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    }
    const std::string& replaced = item.Find("replaced_text")->AsString();
    const auto ids = tokenizer.Encode(bytes);
    EXPECT_EQ(ids, tokenizer.Encode(replaced));
    EXPECT_EQ(tokenizer.Decode(ids), replaced);
    const Encoding given = tokenizer.EncodeWithOffsets(bytes);
    const Encoding expected = tokenizer.EncodeWithOffsets(replaced);
    EXPECT_EQ(given.code_points, expected.code_points);
    EXPECT_EQ(given.bytes.back().end, static_cast<int64_t>(bytes.size()));
  }
}

}  // namespace
}  // namespace weft
