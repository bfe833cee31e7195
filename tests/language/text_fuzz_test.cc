// Damaged tokenizer files and templates, and arbitrary bytes: each gives a result or an Error,
// within bounds, and what holds for all texts holds for these. Seeds are fixed.
#include <gtest/gtest.h>

#include "base/check.h"
#include "base/random.h"
#include "language/template/chat_template.h"
#include "language/tokenizer/tokenizer.h"
#include "language/tokenizer/train_bpe.h"
#include "language/tokenizer_files.h"
#include "language/unicode.h"
#include "tests/language/tokenizer_files.h"

namespace weft {
namespace {

std::string RandomBytes(Rng& rng, uint64_t longest) {
  constexpr std::string_view kParts[] = {
      "the", " word", "<|end|>",      "\xC3\xA9",         "e\xCC\x81", "  ",
      "\n",  "12",    "\xE2\x96\x81", "\xF0\x9F\x98\x80", "'ll"};
  std::string text;
  for (uint64_t i = rng.Below(longest + 1); i > 0; --i) {
    if (rng.Below(2) == 0) {
      text += kParts[rng.Below(std::size(kParts))];
    } else {
      text += static_cast<char>(rng.Below(256));
    }
  }
  return text;
}

// A few places of text overwritten, removed, doubled or replaced by one of words.
std::string Damaged(std::string text, Rng& rng, std::span<const std::string_view> words) {
  for (uint64_t i = 1 + rng.Below(3); i > 0 && !text.empty(); --i) {
    const size_t at = rng.Below(text.size());
    const size_t size = std::min<size_t>(text.size() - at, rng.Below(12));
    switch (rng.Below(4)) {
      case 0:
        text[at] = static_cast<char>(rng.Below(256));
        break;
      case 1:
        text.erase(at, size);
        break;
      case 2:
        text.insert(at, text.substr(at, size));
        break;
      default:
        text.replace(at, size, words[rng.Below(words.size())]);
    }
  }
  return text;
}

void CheckInvariants(const Tokenizer& tokenizer, const std::string& text) {
  const Encoding encoding = tokenizer.EncodeWithOffsets(text);
  ASSERT_EQ(encoding.ids, tokenizer.Encode(text));
  ASSERT_EQ(encoding.bytes.size(), encoding.ids.size());
  ASSERT_EQ(encoding.code_points.size(), encoding.ids.size());
  for (const auto& [begin, end] : encoding.bytes) {
    ASSERT_LE(0, begin);
    ASSERT_LE(begin, end);
    ASSERT_LE(end, static_cast<int64_t>(text.size()));
  }
  StreamDecoder stream(tokenizer);
  std::string streamed;
  for (const int32_t id : encoding.ids) streamed += stream.Add(id);
  const std::string decoded = tokenizer.Decode(encoding.ids);
  ASSERT_EQ(streamed + stream.Finish(), decoded);
  ASSERT_TRUE(IsUtf8(decoded));
}

TEST(TextFuzz, ByteLevelTokenizersGiveEveryTextBack) {
  const std::vector<std::string_view> texts = {"the word the words 12 12 \xC3\xA9 they'll\n the\n"};
  for (const char* pre : {"gpt-2", "smollm", "llama-bpe", "qwen2"}) {
    const Tokenizer tokenizer = Tokenizer::FromGguf(
        TrainBpe(texts, {.vocabulary = 280, .pre = pre, .specials = {"<|end|>"}}), "trained");
    Rng rng(11, Purpose::kTest);
    for (int round = 0; round < 2000; ++round) {
      const std::string text = RandomBytes(rng, 12);
      SCOPED_TRACE(text);
      CheckInvariants(tokenizer, text);
      std::string replaced;
      AppendReplaced(text, replaced);
      ASSERT_EQ(tokenizer.Decode(tokenizer.Encode(text)), replaced);
      // As plain text there are no control tokens.
      for (const int32_t id : tokenizer.Encode(text, {.parse_special = false})) {
        ASSERT_FALSE(tokenizer.IsSpecial(id));
      }
    }
  }
}

TEST(TextFuzz, DamagedTokenizersAreRefusedOrWork) {
  const std::string sequence =
      R"({"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"},
          {"type": "Replace", "pattern": {"Regex": "b+|\\s"}, "content": "a"},
          {"type": "Prepend", "prepend": " "}, {"type": "StripAccents"}]})";
  const std::string seeds[] = {
      SmallTokenizerJson(),
      SmallTokenizerWith("\"normalizer\": null", "\"normalizer\": " + sequence),
      SmallTokenizerWith(R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": true})",
                         R"({"type": "Sequence", "pretokenizers": [{"type": "Whitespace"},
                             {"type": "Metaspace", "split": true}, {"type": "Punctuation"},
                             {"type": "Split", "pattern": {"Regex": "a|b"},
                              "behavior": "MergedWithNext", "invert": true}]})"),
      SmallTokenizerWith(R"("decoder": {"type": "ByteLevel"})",
                         R"("decoder": {"type": "Sequence", "decoders": [{"type": "Replace",
                            "pattern": {"String": "a"}, "content": "b"}, {"type": "ByteFallback"},
                            {"type": "Fuse"}, {"type": "Strip", "start": 1, "stop": 1}]})"),
  };
  constexpr std::string_view kWords[] = {"null",      "true",    "[]",  "{}",          "-1",
                                         "1e9",       "\"a\"",   "0",   "\"\"",        "\\u0000",
                                         "ByteLevel", "Split",   "BPE", "99999999999", "(a*)*",
                                         "WordPiece", "Sequence"};
  Rng rng(12, Purpose::kTest);
  int loaded = 0;
  for (int round = 0; round < 4000; ++round) {
    const std::string json = Damaged(seeds[rng.Below(std::size(seeds))], rng, kWords);
    SCOPED_TRACE(json);
    try {
      const Tokenizer tokenizer = Tokenizer::FromJson(json, "damaged.json");
      ++loaded;
      CheckInvariants(tokenizer, RandomBytes(rng, 20));
      tokenizer.Encode("ab", {.add_special = true});
    } catch (const Error& error) {
      ASSERT_NE(error.message(), "");
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(loaded, 100);  // damage to texts and names goes unnoticed
}

TEST(TextFuzz, DamagedTemplatesAreRefusedOrRender) {
  constexpr std::string_view kSeeds[] = {
      "{%- set ns = namespace(a=1, b=[]) -%}\n{% for m in messages if m.role != 'x' %}\n"
      "  {{- '<' ~ m['role'] + '>' }}{{ m.content | trim | upper }}{% if loop.last %}!{% endif %}\n"
      "{% set ns.a = ns.a * 2 + loop.index0 // 3 %}{% else %}none{% endfor %}{{ ns.a }}",
      "{% macro f(a, b='x') %}{{ a[1:] ~ b }}{% endmacro %}{{ f(messages, b=2) | tojson(indent=2) "
      "}}"
      "{% call(x) f([1, 2]) %}{{ x }}{% endcall %}{# note #}{% raw %}{{ raw }}{% endraw %}",
      "{{ {'a': (1, 2.5), 'b': none}.items() | list | sort | join(', ') }}"
      "{{ '%5.2f|%s' % (1.5, 'a') }}{{ '{:>8}'.format('ab') }}{{ 'a,b'.split(',')[-1].title() }}",
      "{% with a = 'b' * 3 %}{% filter upper %}{{ a }}{% endfilter %}{% endwith %}"
      "{% generation %}{{ range(5) | map('string') | list }}{% endgeneration %}"
      "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | first }}",
  };
  constexpr std::string_view kWords[] = {"{{",
                                         "}}",
                                         "{%",
                                         "%}",
                                         "{%-",
                                         "-%}",
                                         "{#",
                                         "| list",
                                         "(",
                                         ")",
                                         "[",
                                         "]",
                                         "'",
                                         " not ",
                                         " in ",
                                         " is defined",
                                         "**",
                                         "99999999999",
                                         "range(99999)",
                                         "messages",
                                         "loop",
                                         "{% endfor %}",
                                         "{% if 1 %}",
                                         ".items()",
                                         "-1",
                                         " if 1 else "};
  const JsonValue messages = ParseJson(
      R"([{"role": "user", "content": " hi \u00e9 "}, {"role": "assistant", "content": "yo"}])",
      "m");
  Rng rng(13, Purpose::kTest);
  int rendered = 0;
  for (int round = 0; round < 6'000; ++round) {
    std::string source = Damaged(std::string(kSeeds[rng.Below(std::size(kSeeds))]), rng, kWords);
    try {
      const RenderedChat chat = ChatTemplate::FromText(source, "t").Render(messages);
      ++rendered;
      ASSERT_TRUE(IsUtf8(chat.text)) << source;
      for (const auto& [begin, end] : chat.generation) {
        ASSERT_LE(begin, end) << source;
        ASSERT_LE(end, static_cast<int64_t>(CountCodePoints(chat.text))) << source;
      }
    } catch (const Error& error) {
      ASSERT_TRUE(error.message().starts_with("t: ")) << source << ": " << error.message();
    }
  }
  EXPECT_GT(rendered, 300);
}

}  // namespace
}  // namespace weft
