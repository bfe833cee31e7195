// What a model sees of rows of data, and which of its tokens are learnt.
#include "rlhf/row_encoder.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "tests/base/temporary_folder.h"
#include "tests/language/reference_files.h"
#include "tests/rlhf/tiny_words.h"

namespace weft {
namespace {

std::string LearntText(const RowEncoder& encoder, const MarkedSequence& sequence) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < sequence.ids.size(); ++i) {
    if (sequence.learnt[i] != 0) ids.push_back(sequence.ids[i]);
  }
  return encoder.tokenizer().Decode(ids);
}

class RowEncoding : public testing::Test {
 protected:
  RowEncoder Make(const std::string& chat_template = "", LearntPart part = LearntPart::kAnswers) {
    const std::string model = folder_.Path("model" + std::to_string(models_++));
    WriteTinyModel(model, chat_template);
    return RowEncoder(model, part);
  }
  const TemporaryFolder folder_;
  int models_ = 0;
};

constexpr char kChat[] =
    R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b c"},)"
    R"({"role":"user","content":"d"},{"role":"assistant","content":"é"}]})";

TEST_F(RowEncoding, OnlyWhatTheAssistantSaysIsLearnt) {
  const RowEncoder encoder = Make();
  const Example example = encoder.Encode(ParseRow(kChat, "f:1"));
  EXPECT_EQ(LearntText(encoder, example.sequences[0]), "b c<|im_end|>é<|im_end|>");
  EXPECT_TRUE(example.ends);
  EXPECT_EQ(encoder.tokenizer().Decode(example.sequences[0].ids),
            "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb c<|im_end|>\n"
            "<|im_start|>user\nd<|im_end|>\n<|im_start|>assistant\né<|im_end|>\n");
}

TEST_F(RowEncoding, AllIsLearntWhereItIsAskedForButTheFirstToken) {
  const RowEncoder encoder = Make("", LearntPart::kAll);
  const MarkedSequence chat = encoder.Encode(ParseRow(kChat, "f:1")).sequences[0];
  EXPECT_EQ(chat.learnt_tokens(), std::ssize(chat.ids) - 1);
}

// The words between {% generation %} marks, as recorded, and the same without marks.
TEST_F(RowEncoding, MasksAreThoseOfGenerationBlocksWithAndWithoutThem) {
  const std::string root = ReferencePath("language/chat_templates");
  if (root.empty()) GTEST_SKIP() << "WEFT_REFERENCE is unset";
  const auto config = ReadJsonFile(root + "/chatml_training/tokenizer_config.json");
  const std::string marked = config.Find("chat_template")->AsString();
  const RowEncoder with = Make(marked), without = Make();
  const auto conversations = ReadJsonFile(root + "/conversations.json");
  const JsonValue* list =
      conversations.IsArray() ? &conversations : conversations.Find("conversations");
  ASSERT_NE(list, nullptr);
  int64_t compared = 0;
  const auto expected = ReadJsonFile(root + "/chatml_training/expected.json");
  for (const JsonValue& item : expected.Find("cases")->Items()) {
    int64_t number = 0;
    item.Find("conversation")->GetInteger(number);
    const JsonValue* text = item.Find("no_prompt")->Find("text");
    if (text == nullptr || item.Find("no_prompt")->Find("assistant_spans")->Items().empty())
      continue;
    const JsonValue& conversation = list->Items()[static_cast<size_t>(number)];
    const JsonValue* messages =
        conversation.IsArray() ? &conversation : conversation.Find("messages");
    DataRow row;
    try {
      row = ParseRow(JsonValue::MakeObject({{"messages", *messages}}).ToText(), "f:1");
    } catch (const Error&) {
      continue;  // content that is no text
    }
    const MarkedSequence a = with.Encode(row).sequences[0], b = without.Encode(row).sequences[0];
    EXPECT_EQ(with.tokenizer().Decode(a.ids), text->AsString());
    std::string want;
    for (const JsonValue& span : item.Find("no_prompt")->Find("assistant_spans")->Items()) {
      int64_t begin = 0, end = 0, at = 0;
      span.Items()[0].GetInteger(begin);
      span.Items()[1].GetInteger(end);
      for (const char c : text->AsString()) {
        at += (c & 0xC0) != 0x80;
        if (at > begin && at <= end) want += c;
      }
    }
    EXPECT_EQ(LearntText(with, a), want) << "conversation " << number;
    EXPECT_EQ(a.ids, b.ids);
    EXPECT_EQ(a.learnt, b.learnt) << "conversation " << number;
    ++compared;
  }
  EXPECT_GT(compared, 5);
}

TEST_F(RowEncoding, ATemplateThatHidesWhoSpeaksIsRefused) {
  const RowEncoder encoder =
      Make("{{ messages | length }}{% for m in messages %}{{ m.content }}{% endfor %}");
  try {
    encoder.Encode(ParseRow(kChat, "f:3"));
    ADD_FAILURE() << "there is no telling whose words are whose";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("f:3"), std::string::npos);
    EXPECT_NE(error.message().find("{% generation %}"), std::string::npos);
  }
}

TEST_F(RowEncoding, AnAnswerStandsBehindThePromptItWouldBeAskedWith) {
  const RowEncoder encoder = Make();
  const DataRow pair = ParseRow(R"({"prompt":[{"role":"user","content":"q"}],)"
                                R"("chosen":[{"role":"assistant","content":"yes"}],)"
                                R"("rejected":[{"role":"assistant","content":"no"}]})",
                                "f:1");
  const Example example = encoder.Encode(pair);
  const std::vector<int32_t> prompt = encoder.EncodePrompt(pair);
  for (const MarkedSequence& sequence : example.sequences) {
    ASSERT_EQ(sequence.prompt_tokens(), std::ssize(prompt));
    EXPECT_TRUE(std::equal(prompt.begin(), prompt.end(), sequence.ids.begin()));
  }
  EXPECT_EQ(LearntText(encoder, example.sequences[0]), "yes<|im_end|>");
  EXPECT_EQ(LearntText(encoder, example.sequences[1]), "no<|im_end|>");
  const Example plain =
      encoder.Encode(ParseRow(R"({"prompt":"1 + 1 =","completion":" 2"})", "f:2"));
  EXPECT_EQ(LearntText(encoder, plain.sequences[0]), " 2<|im_end|>");
}

}  // namespace
}  // namespace weft
