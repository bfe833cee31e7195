// The guards in front of yaml-cpp. The hostile files of the reference data are refused in time too.
#include "base/yaml.h"

#include <cstdlib>
#include <ctime>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "base/file.h"
#include "base/random.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The message of the config error that parsing throws, which must take less than 50 ms of this
// thread's time.
std::string Refused(std::string_view text) {
  const std::clock_t start = std::clock();
  std::string message;
  try {
    ParseYaml(text, "test.yaml");
    ADD_FAILURE() << "accepted: " << text.substr(0, 100);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    message = error.message();
  }
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC / 20);
  return message;
}

std::string Repeated(std::string_view part, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += part;
  return text;
}

TEST(Yaml, KeepsKindsTextQuotesAndLines) {
  const YamlNode root = ParseYaml(
      "# comment\n"
      "a: 1e3\n"
      "b: [x, \"y\"]\n"
      "c:\n"
      "  d: 'it''s'\n"
      "  e:\n"
      "f: ~\n",
      "test.yaml");
  EXPECT_THAT(root.keys, ElementsAre("a", "b", "c", "f"));
  EXPECT_EQ(root.Find("a")->scalar, "1e3");
  EXPECT_FALSE(root.Find("a")->quoted);
  EXPECT_EQ(root.Find("a")->line, 2);
  EXPECT_EQ(root.Find("b")->children[1].scalar, "y");
  EXPECT_TRUE(root.Find("b")->children[1].quoted);
  EXPECT_EQ(root.Find("c")->line, 4);
  EXPECT_EQ(root.Find("c")->Find("d")->scalar, "it's");
  EXPECT_EQ(root.Find("c")->Find("d")->line, 5);
  EXPECT_EQ(root.Find("c")->Find("e")->kind, YamlNode::Kind::kNull);
  EXPECT_EQ(root.Find("f")->kind, YamlNode::Kind::kNull);
  EXPECT_EQ(root.Find("g"), nullptr);
}

TEST(Yaml, TakesEmptyTextByteOrderMarkAndWindowsLines) {
  EXPECT_EQ(ParseYaml("", "test.yaml").kind, YamlNode::Kind::kNull);
  EXPECT_EQ(ParseYaml("# nothing\n", "test.yaml").kind, YamlNode::Kind::kNull);
  EXPECT_EQ(ParseYaml("\xEF\xBB\xBF"
                      "a: 1\r\nb: 2\r\n",
                      "test.yaml")
                .Find("b")
                ->scalar,
            "2");
}

TEST(Yaml, RefusesWhatSurprisesNamingTheLine) {
  EXPECT_THAT(Refused("a: 1\nb: &x 2\n"), StartsWith("test.yaml:2: an anchor"));
  EXPECT_THAT(Refused("a: &a [*a]\n"), HasSubstr("anchor"));
  EXPECT_THAT(Refused("a: *b\n"), StartsWith("test.yaml:1: "));
  EXPECT_THAT(Refused("a: !!int 3\n"), HasSubstr("tag"));
  EXPECT_THAT(Refused("a: !secret [1]\n"), HasSubstr("tag"));
  EXPECT_THAT(Refused("x: 1\n<<: {y: 2}\n"), StartsWith("test.yaml:2: a merge key"));
  EXPECT_THAT(
      Refused("lr: 1\nb: 2\nlr: 3\n"),
      StartsWith("test.yaml:3: the key lr is here a second time; it first stands on line 1"));
  EXPECT_THAT(Refused("a: {b: 1, b: 2}\n"), HasSubstr("the key b"));
  EXPECT_THAT(Refused("[a, b]: 1\n"), HasSubstr("as a key"));
  EXPECT_THAT(Refused("? {a: 1}\n: 2\n"), HasSubstr("as a key"));
  EXPECT_THAT(Refused("~: 1\n"), HasSubstr("empty key"));
  EXPECT_THAT(Refused("a: 1\n---\na: 2\n"), HasSubstr("second document"));
  EXPECT_THAT(Refused("a:\n\tb: 1\n"), StartsWith("test.yaml:2: a tab"));
  EXPECT_THAT(Refused("a: [1, 2\n"), HasSubstr("ends inside a quote or bracket"));
  EXPECT_THAT(Refused("a: \"abc\n"), HasSubstr("ends inside a quote or bracket"));
  EXPECT_THAT(Refused("a: 'abc\nb: 2\n"), HasSubstr("ends inside a quote or bracket"));
  EXPECT_THAT(Refused("a: b: c\n"), StartsWith("test.yaml:1: "));
}

TEST(Yaml, RefusesBytesThatAreNoText) {
  EXPECT_THAT(Refused("a: 1\nb: \xFF\n"), StartsWith("test.yaml:2: bytes"));
  EXPECT_THAT(Refused("a: \xC0\xAF\n"), HasSubstr("UTF-8"));          // overlong
  EXPECT_THAT(Refused("a: \xED\xA0\x80\n"), HasSubstr("UTF-8"));      // surrogate
  EXPECT_THAT(Refused("a: \xF4\x90\x80\x80\n"), HasSubstr("UTF-8"));  // above U+10FFFF
  EXPECT_THAT(Refused("a: \xE2\x82"), HasSubstr("UTF-8"));            // cut
  EXPECT_THAT(Refused(std::string_view("a: \0b\n", 6)), HasSubstr("control"));
  EXPECT_THAT(Refused("a: \x1b[0m\n"), HasSubstr("control"));
  EXPECT_THAT(Refused(std::string_view("\xFF\xFE"
                                       "a\0",
                                       4)),
              HasSubstr("UTF-8"));  // UTF-16
  EXPECT_EQ(ParseYaml("a: \xE2\x82\xAC \xF0\x9F\x98\x80\n", "t").Find("a")->scalar,
            "\xE2\x82\xAC \xF0\x9F\x98\x80");
}

TEST(Yaml, RefusesDepthAndNumberInTime) {
  EXPECT_THAT(Refused(Repeated("[", 100000)), HasSubstr("open brackets"));
  EXPECT_THAT(Refused(Repeated("{a: ", 100000)), HasSubstr("open brackets"));
  EXPECT_THAT(Refused(Repeated("[", 999)), StartsWith("test.yaml:1: "));
  EXPECT_THAT(Refused("a: " + Repeated("[", 40) + Repeated("]", 40)),
              HasSubstr("more than 32 levels"));
  EXPECT_THAT(Refused(Repeated("- ", 100000)), HasSubstr("more than 32 levels"));
  EXPECT_THAT(Refused(Repeated("? ", 100000)), StartsWith("test.yaml:"));
  EXPECT_THAT(Refused("a: " + std::string(2 << 20, 'x')), HasSubstr("1 MiB"));
  std::string deepest = "a: ";
  deepest += Repeated("[", 31) + "1" + Repeated("]", 31);
  EXPECT_NO_THROW(ParseYaml(deepest, "test.yaml"));
}

TEST(Yaml, RefusesTheValueAfterTheHundredThousandth) {
  try {
    ParseYaml("a: [" + Repeated("1,", 120000) + "1]", "test.yaml");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("more than 100000 values"));
  }
}

TEST(Yaml, ManyDifferentKeysTakeLinearTime) {
  std::string text;
  for (int i = 0; i < 40000; ++i) text += "k" + std::to_string(i) + ": 1\n";
  EXPECT_EQ(ParseYaml(text, "test.yaml").keys.size(), 40000u);
}

// Any bytes give a tree or a config error, nothing else.
TEST(Yaml, TruncatedAndDamagedTextNeverDoesAnythingElse) {
  const std::string text =
      "algorithm: ppo\nseed: 12345678901\nname: \"a \\\"quoted\\\" text\"\n"
      "environment:\n  id: 'HalfCheetah-v5'\n  wrappers:\n    - frame_stack\n"
      "    - {name: scale, low: -1.0, high: 1e3}\nhidden: [64, 64]\nnotes: |\n  block\n  text\n";
  const auto parse = [](std::string_view bytes) {
    try {
      ParseYaml(bytes, "test.yaml");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
    }
  };
  for (size_t size = 0; size <= text.size(); ++size) parse(std::string_view(text).substr(0, size));
  Rng rng(2, Purpose::kTest);
  constexpr std::string_view kAlphabet = "\n\t :-[]{},&*!|>'\"%@`#?~<a0.e\\\x80";
  for (int trial = 0; trial < 5000; ++trial) {
    std::string damaged = text;
    for (uint64_t i = 1 + rng.Below(4); i > 0; --i) {
      const size_t at = rng.Below(damaged.size());
      const char byte = kAlphabet[rng.Below(kAlphabet.size())];
      if (rng.Below(2) == 0) {
        damaged[at] = byte;
      } else {
        damaged.insert(at, 1 + rng.Below(3), byte);
      }
    }
    parse(damaged);
  }
}

TEST(Yaml, HostileFilesOfTheReferenceGiveOneClearError) {
  const char* reference = std::getenv("WEFT_REFERENCE");
  if (reference == nullptr) GTEST_SKIP() << "WEFT_REFERENCE is unset: hostile/yaml is not there";
  const std::string folder = std::string(reference) + "/hostile/yaml";
  int files = 0;
  for (const std::string& name : ListDirectory(folder)) {
    SCOPED_TRACE(name);
    const std::string bytes = ReadFile(folder + "/" + name);
    // Well-formed text, whose values are refused by the type of their key (config_test).
    if (name == "values-huge_int.yaml" || name == "values-norway.yaml") {
      EXPECT_NO_THROW(ParseYaml(bytes, name));
    } else {
      EXPECT_THAT(Refused(bytes), StartsWith("test.yaml:"));
    }
    ++files;
  }
  EXPECT_EQ(files, 13);
}

}  // namespace
}  // namespace weft
