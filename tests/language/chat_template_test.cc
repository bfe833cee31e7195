#include "language/template/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "language/gguf_tokenizer.h"
#include "language/tokenizer/tokenizer.h"
#include "tests/base/temporary_folder.h"
#include "tests/language/reference_files.h"
#include "tests/language/tokenizer_files.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Messages = std::vector<std::pair<std::string, std::string>>;

std::string Rendered(const std::string& source, const ChatOptions& options = {},
                     const Messages& messages = {}) {
  return ChatTemplate::FromText(source, "t.jinja", "<s>", "</s>").Render(messages, options).text;
}

std::string Fault(const std::string& source, const ChatOptions& options = {},
                  const Messages& messages = {}) {
  try {
    const std::string text = Rendered(source, options, messages);
    ADD_FAILURE() << source.substr(0, 200) << " rendered " << text.substr(0, 200);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(ChatTemplate, RendersMessagesAndSpecialTokens) {
  const std::string source =
      "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content | trim }}{{ eos_token }}\n"
      "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";
  EXPECT_EQ(Rendered(source, {.add_generation_prompt = true}, {{"user", " hi "}, {"bot", "x"}}),
            "<s>[user] hi</s>\n[bot] x</s>\n[assistant]");
}

TEST(ChatTemplate, SpansOfGenerationBlocksMaskTheAssistantsTokens) {
  const auto chat = ChatTemplate::FromText(
      "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% else %}"
      "{% generation %}{{ m.content }}<|end|>{% endgeneration %}{% endif %}{% endfor %}",
      "t");
  const RenderedChat rendered =
      chat.Render(Messages{{"user", "a\xC3\xA9"}, {"assistant", "abc"}, {"user", " a"}});
  EXPECT_EQ(rendered.text,
            "a\xC3\xA9"
            "abc<|end|> a");
  EXPECT_THAT(rendered.generation, ElementsAre(TextSpan{2, 12}));  // in code points
  const Tokenizer tokenizer = Tokenizer::FromJson(SmallTokenizerJson(), "small.json");
  const Encoding encoding = tokenizer.EncodeWithOffsets(rendered.text);
  EXPECT_THAT(encoding.ids, ElementsAre(0, 7, 8, 5, 9, 6));
  EXPECT_THAT(TokensWithin(encoding, rendered.generation), ElementsAre(0, 0, 0, 1, 1, 0));
}

TEST(ChatTemplate, EndsInsideTheLastMessageToGoOnWithIt) {
  const std::string source =
      "{% for m in messages %}{{ m.role }}: {{ m.content }}</s>\n{% endfor %}";
  const ChatOptions options = {.continue_final_message = true};
  EXPECT_EQ(Rendered(source, options, {{"user", "q"}, {"bot", "Once upon "}}),
            "user: q</s>\nbot: Once upon ");
  EXPECT_THAT(Fault("{{ messages[0].role }}", options, {{"user", "q"}, {"bot", "Once"}}),
              HasSubstr("does not appear"));
}

TEST(ChatTemplate, ReadsTheClockItIsGiven) {
  ChatOptions options;
  options.clock = [] {
    std::tm time{};
    time.tm_year = 124;
    time.tm_mon = 6;
    time.tm_mday = 26;
    return time;
  };
  EXPECT_EQ(Rendered("{{ strftime_now('%d %b %Y') }}", options), "26 Jul 2024");
}

TEST(ChatTemplate, TakesToolsAndFurtherNames) {
  ChatOptions options;
  options.tools = ParseJson(R"([{"name": "add", "n": 1e-7}])", "tools");
  options.variables = ParseJson(R"({"enable_thinking": false})", "variables");
  EXPECT_EQ(Rendered("{% for t in tools %}{{ t | tojson }}{% endfor %}{{ enable_thinking }}"
                     "{{ documents is none }}",
                     options),
            "{\"name\": \"add\", \"n\": 1e-07}FalseTrue");
}

TEST(ChatTemplate, ComesFromAFolderAFileOrAGguf) {
  const TemporaryFolder folder;
  EXPECT_THROW(ChatTemplate::Load(folder.path()), Error);
  const std::string config = folder.Path("tokenizer_config.json");
  WriteFileAtomic(config, R"({"bos_token": {"content": "<b>"}, "chat_template": [
      {"name": "default", "template": "plain{{ bos_token }}"},
      {"name": "tool_use", "template": "tools"}, {"name": "rag", "template": "documents"}]})");
  const ChatTemplate named = ChatTemplate::Load(folder.path());
  EXPECT_EQ(named.Render(Messages{}).text, "plain<b>");
  ChatOptions options;
  options.tools = ParseJson("[1]", "tools");
  EXPECT_EQ(named.Render(Messages{}, options).text, "tools");
  EXPECT_EQ(named.Render(Messages{}, {.template_name = "rag"}).text, "documents");
  EXPECT_THROW(named.Render(Messages{}, {.template_name = "none"}), Error);

  WriteFileAtomic(config, R"({"eos_token": "<e>", "chat_template": "string{{ eos_token }}"})");
  EXPECT_EQ(ChatTemplate::Load(config).Render(Messages{}).text, "string<e>");
  WriteFileAtomic(folder.Path("chat_template.jinja"), "file{{ eos_token }}");
  EXPECT_EQ(ChatTemplate::Load(folder.path()).Render(Messages{}).text, "file<e>");

  GgufTokenizer gguf;
  gguf.tokens = {"a", "<end>"};
  gguf.eos = 1;
  gguf.chat_template = "gguf{{ eos_token }}{{ bos_token }}";
  EXPECT_EQ(ChatTemplate::FromGguf(gguf, "m.gguf").Render(Messages{}).text, "gguf<end>");
}

TEST(ChatTemplate, NamesFileLineAndReason) {
  EXPECT_EQ(Fault("a\n\n{{ nothing.x }}"), "t.jinja: line 3: 'nothing' is undefined");
  EXPECT_EQ(Fault("{% if a %}\n{{ raise_exception('no ' ~ 1) }}{% else %}\n"
                  "{{ raise_exception('yes') }}{% endif %}"),
            "t.jinja: line 3: yes");
  EXPECT_THAT(Fault("\n{{ 1 + }}"), HasSubstr("t.jinja: line 2: unexpected the end of the tag"));
  EXPECT_THAT(Fault("{% for x in y %}"), HasSubstr("'endfor' or 'else'"));
  EXPECT_THAT(Fault("{{ 'a"), HasSubstr("the string is not closed"));
  EXPECT_THAT(Fault("{% include 'a' %}"), HasSubstr("include is not supported"));
  EXPECT_THAT(Fault("{{ 'a' | random }}"), HasSubstr("No filter named 'random'"));
}

TEST(ChatTemplate, CallsMacrosWithDefaultsAndCallers) {
  EXPECT_EQ(Rendered("{% macro f(a, b=a ~ '!') %}<{{ a }}{{ b }}>{% endmacro %}"
                     "{{ f(1) }}{{ f(1, b=2) }}"),
            "<11!><12>");
  EXPECT_EQ(Rendered("{% macro box(n) %}[{{ caller(n) }}]{% endmacro %}"
                     "{% call(x) box(7) %}got {{ x }}{% endcall %}"),
            "[got 7]");
  EXPECT_EQ(Rendered("{% macro down(n) %}{{ n }}{% if n > 0 %}{{ down(n - 1) }}{% endif %}"
                     "{% endmacro %}{{ down(3) }}"),
            "3210");
  // Names of the block that a macro stands in are kept with it.
  EXPECT_EQ(Rendered("{% set ns = namespace(f=none) %}{% for i in [1, 2] %}"
                     "{% macro f() %}{{ i }}{% endmacro %}"
                     "{% if i == 1 %}{% set ns.f = f %}{% endif %}{% endfor %}{{ ns.f() }}"),
            "1");
}

TEST(ChatTemplate, BoundsTimeMemoryAndDepth) {
  for (const char* source : {
           "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
           "{{ 'x' * 100000000000 }}",
           "{{ [1] * 9999999999 }}",
           "{% set ns = namespace(x='x') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}"
           "{% endfor %}",
           // Lists that share their parts: 2^99 leaves.
           "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}"
           "{% endfor %}{{ ns.x }}",
           "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}"
           "{% endfor %}{{ ns.x == ns.x }}{{ ns.x | tojson }}",
           // A chain of lists that would overflow the stack when it is freed.
           "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}"
           "{% endfor %}",
           "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
           "{{ '%99999999999d' % 1 }}",
           "{{ '{:>99999999999}'.format(1) }}",
           "{{ 'a' | indent(1) | center(999999999999) }}",
           "{{ ('ab' * 9999).replace('a', 'a' * 99999) }}",
           "{{ range(0, 9223372036854775807, 1) }}",
           "{{ 9 ** 9 ** 9 ** 9 }}",
           "{{ 170141183460469231731687303715884105727 + 1 }}",
           "{{ -170141183460469231731687303715884105728 // -1 }}",
       }) {
    SCOPED_TRACE(source);
    EXPECT_NE(Fault(source), "");
  }
  for (const auto& [begin, end] : {std::pair("(", ")"), std::pair("[", "]"), std::pair("-", ""),
                                   std::pair("not ", ""), std::pair("{1:", "}")}) {
    std::string source, closing;
    for (int i = 0; i < 50'000; ++i) {
      source += begin;
      closing += end;
    }
    source += "1" + closing;
    EXPECT_THAT(Fault("{{ " + source + " }}"), HasSubstr("250"));
  }
  std::string sum = "{{ 1", blocks;
  for (int i = 0; i < 50'000; ++i) sum += " + 1";
  EXPECT_THAT(Fault(sum + " }}"), HasSubstr("nested deeper than 250"));
  for (int i = 0; i < 50'000; ++i) blocks += "{% if 1 %}";
  EXPECT_THAT(Fault(blocks), HasSubstr("nested deeper than 250"));
}

TEST(ChatTemplate, LeavesNoNamespacesInCircles) {  // the leak checker of sanitizer builds looks
  EXPECT_EQ(Rendered("{% set a = namespace() %}{% set b = namespace(a=a) %}{% set a.b = [b] %}"
                     "{% set a.loop = none %}{% for i in [1, 2] %}{% set a.loop = loop %}"
                     "{{ loop.changed(loop) }}{% endfor %}"),
            "TrueFalse");
}

TEST(ChatTemplate, HostileFilesAreRefused) {
  const std::string folder = ReferencePath("hostile");
  if (folder.empty()) GTEST_SKIP() << "needs WEFT_REFERENCE/hostile";
  const JsonValue manifest = ReadJsonFile(folder + "/manifest.json");
  int files = 0;
  for (const JsonValue& entry : manifest.Find("files")->Items()) {
    const std::string& file = entry.Find("file")->AsString();
    if (!file.starts_with("jinja/")) continue;
    SCOPED_TRACE(file);
    ++files;
    EXPECT_THROW(ChatTemplate::Load(folder + "/" + file).Render(Messages{}), Error);
  }
  EXPECT_EQ(files, 7);
}

}  // namespace
}  // namespace weft
