// Renderings of transformers' Jinja for every recorded template and conversation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "language/template/chat_template.h"
#include "tests/language/reference_files.h"

namespace weft {
namespace {

using ::testing::EndsWith;

// The text, or "error" and the message.
struct Outcome {
  std::string text, fault;
  std::vector<TextSpan> generation;
};

template <class Render>
Outcome Try(const Render& render) {
  Outcome outcome;
  try {
    RenderedChat chat = render();
    outcome.text = std::move(chat.text);
    outcome.generation = std::move(chat.generation);
  } catch (const Error& error) {
    outcome.fault = error.what();
    EXPECT_NE(outcome.fault, "");
  }
  return outcome;
}

void Compare(const JsonValue& expected, const Outcome& outcome) {
  if (const JsonValue* text = expected.Find("text")) {
    EXPECT_EQ(outcome.text, text->AsString());
    EXPECT_EQ(outcome.fault, "");
    return;
  }
  EXPECT_NE(outcome.fault, "") << "rendered as " << outcome.text;
  if (expected.Find("error")->AsString() == "TemplateError") {
    EXPECT_THAT(outcome.fault, EndsWith(expected.Find("message")->AsString()));
  }
}

class ChatTemplateReference : public ::testing::TestWithParam<const char*> {};

TEST_P(ChatTemplateReference, EveryConversationIsEqual) {
  const std::string root = ReferencePath("language/chat_templates");
  if (root.empty()) GTEST_SKIP() << "needs WEFT_REFERENCE/language/chat_templates";
  const std::string folder = root + "/" + GetParam();
  const JsonValue conversations = ReadJsonFile(root + "/conversations.json");
  const ChatTemplate chat = ChatTemplate::Load(folder);
  const JsonValue expected = ReadJsonFile(folder + "/expected.json");
  int compared = 0;
  for (const JsonValue& item : expected.Find("cases")->Items()) {
    int64_t index = -1;
    ASSERT_TRUE(item.Find("conversation")->GetInteger(index));
    const JsonValue& messages =
        conversations.Find("conversations")->Items()[static_cast<size_t>(index)];
    for (const auto& [kind, result] : item.Members()) {
      if (kind == "conversation" || result.IsNull()) continue;
      SCOPED_TRACE(std::to_string(index) + " " + kind);
      ChatOptions options;
      options.add_generation_prompt = kind == "with_generation_prompt" || kind == "with_tools";
      options.continue_final_message = kind == "continue_final_message";
      if (kind == "with_tools") options.tools = *conversations.Find("tools");
      const Outcome outcome = Try([&] { return chat.Render(messages, options); });
      Compare(result, outcome);
      ++compared;
      const JsonValue* spans = result.Find("assistant_spans");
      if (!spans || spans->IsNull()) continue;
      ASSERT_EQ(outcome.generation.size(), spans->Items().size());
      for (size_t i = 0; i < outcome.generation.size(); ++i) {
        EXPECT_EQ(std::to_string(outcome.generation[i].begin),
                  spans->Items()[i].Items()[0].NumberText());
        EXPECT_EQ(std::to_string(outcome.generation[i].end),
                  spans->Items()[i].Items()[1].NumberText());
      }
    }
  }
  EXPECT_GT(compared, 50);
}

INSTANTIATE_TEST_SUITE_P(All, ChatTemplateReference,
                         ::testing::Values("chatml_smollm2", "chatml_training", "gemma", "llama3",
                                           "mistral", "qwen2.5", "zephyr"));

TEST(ChatTemplateReference, EveryFeatureOfTheLanguageIsEqual) {
  const std::string path = ReferencePath("language/chat_templates/language_features.json");
  if (path.empty()) GTEST_SKIP() << "needs WEFT_REFERENCE/language/chat_templates";
  const JsonValue features = ReadJsonFile(path);
  JsonValue variables = JsonValue::MakeObject();
  for (const char* name : {"messages", "bos_token", "eos_token"}) {
    variables.Set(name, *features.Find(name));
  }
  const auto cases = features.Find("cases")->Items();
  EXPECT_GT(cases.size(), 130u);
  for (const JsonValue& item : cases) {
    const std::string& source = item.Find("template")->AsString();
    SCOPED_TRACE(source);
    Compare(item, Try([&] {
              return RenderedChat{ChatTemplate::FromText(source, "t").RenderWith(variables), {}};
            }));
  }
}

TEST(ChatTemplateReference, JsonIsWrittenAsPythonDoes) {
  const std::string path = ReferencePath("cases/files/chat/c62_templates.json");
  if (path.empty()) GTEST_SKIP() << "needs WEFT_REFERENCE/cases";
  const JsonValue cases = ReadJsonFile(path);
  EXPECT_EQ(cases.Items().size(), 6u);
  for (const JsonValue& item : cases.Items()) {
    const auto chat = ChatTemplate::FromText(item.Find("template")->AsString(), "t");
    EXPECT_EQ(chat.RenderWith(*item.Find("variables")),
              item.Find("expected")->Find("ok")->AsString());
  }
}

TEST(ChatTemplateReference, HostileTemplatesAreRefusedSoon) {
  const std::string folder = ReferencePath("hostile");
  if (folder.empty()) GTEST_SKIP() << "needs WEFT_REFERENCE/hostile";
  const JsonValue manifest = ReadJsonFile(folder + "/manifest.json");
  int files = 0;
  for (const JsonValue& entry : manifest.Find("files")->Items()) {
    const std::string& file = entry.Find("file")->AsString();
    if (!file.starts_with("jinja/")) continue;
    SCOPED_TRACE(file);
    ++files;
    EXPECT_THROW(ChatTemplate::Load(folder + "/" + file).Render(JsonValue::MakeArray()), Error);
  }
  EXPECT_EQ(files, 7);
}

}  // namespace
}  // namespace weft
