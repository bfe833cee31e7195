// Rewards that a program reads off an answer's text.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "language/tokenizer/regex.h"
#include "rlhf/advantages.h"
#include "rlhf/rewards.h"
#include "rlhf/tasks.h"

namespace weft {
namespace {

// A reward that looks at one answer at a time.
class TextReward final : public Reward {
 public:
  using Function = std::function<double(const ScoredAnswer&)>;
  explicit TextReward(Function function) : function_(std::move(function)) {}

  std::vector<double> Score(const Context&, std::span<const ScoredAnswer> answers) override {
    std::vector<double> scores;
    for (const ScoredAnswer& answer : answers) scores.push_back(function_(answer));
    return scores;
  }

 private:
  const Function function_;
};

std::unique_ptr<Reward> Of(TextReward::Function function) {
  return std::make_unique<TextReward>(std::move(function));
}

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  bool within = false;
  for (const char c : text) {
    const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!space && !within) words.emplace_back();
    if (!space) words.back() += c;
    within = !space;
  }
  return words;
}

// Code points, an invalid byte counts as one.
int64_t Characters(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; });
}

// ---- Right or wrong

struct TaskReward final : RewardConfig {
  std::unique_ptr<Reward> Make(const RewardSetting&) const override {
    return Of(
        [](const ScoredAnswer& a) { return Task::Correct(a.answer, a.expected, a.finished); });
  }
};
WEFT_REGISTER_REWARD(TaskReward, "exact",
                     "1 if it ended by itself and is, without white space around it, what is "
                     "expected");

struct EpisodeReward final : RewardConfig {
  std::unique_ptr<Reward> Make(const RewardSetting&) const override {
    return Of([](const ScoredAnswer& a) { return a.outcome; });
  }
};
WEFT_REGISTER_REWARD(EpisodeReward, "episode", "what an episode's counterpart finds it worth");

// The last number behind "#### " in the last 300 characters (Cobbe et al. 2021; verl's reading).
std::string MarkedNumber(std::string_view answer) {
  if (answer.size() > 300) answer.remove_prefix(answer.size() - 300);
  std::string last;
  for (size_t at = answer.find("#### "); at != std::string_view::npos;
       at = answer.find("#### ", at + 1)) {
    size_t end = at + 5;
    const size_t begin = end;
    if (end < answer.size() && answer[end] == '-') ++end;
    while (end < answer.size() && (std::isdigit(static_cast<unsigned char>(answer[end])) != 0 ||
                                   answer[end] == ',' || answer[end] == '.')) {
      ++end;
    }
    std::string number(answer.substr(begin, end - begin));
    std::erase(number, ',');
    while (number.ends_with('.')) number.pop_back();
    if (!number.empty() && number != "-") last = number;
  }
  return last;
}

struct Gsm8kReward final : RewardConfig {
  std::unique_ptr<Reward> Make(const RewardSetting&) const override {
    return Of([](const ScoredAnswer& a) {
      return !a.expected.empty() && MarkedNumber(a.answer) == a.expected;
    });
  }
};
WEFT_REGISTER_REWARD(Gsm8kReward, "gsm8k",
                     "1 if the number behind the last #### is what is expected");

struct FinishedReward final : RewardConfig {
  std::unique_ptr<Reward> Make(const RewardSetting&) const override {
    return Of([](const ScoredAnswer& a) { return a.finished; });
  }
};
WEFT_REGISTER_REWARD(FinishedReward, "finished", "1 if it ended by itself");

// ---- Form

struct RegexReward final : RewardConfig {
  std::string pattern;
  bool whole = false;

  void Fields(FieldVisitor& v) override {
    RewardConfig::Fields(v);
    v.Field("pattern", pattern, "regular expression (PCRE2)");
    v.Field("whole", whole, "it must match the whole answer, not a part of it");
  }
  void Check() const override {
    if (pattern.empty()) throw ConfigProblem("pattern", "is missing");
    Compile();
  }
  Regex Compile() const {
    try {
      return Regex(whole ? "\\A(?:" + pattern + ")\\z" : pattern);
    } catch (const Error& error) {
      throw ConfigProblem("pattern", error.message());
    }
  }
  std::unique_ptr<Reward> Make(const RewardSetting&) const override {
    return Of([regex = std::make_shared<Regex>(Compile())](const ScoredAnswer& a) {
      std::vector<Match> matches;
      regex->Find(a.answer, {0, static_cast<uint32_t>(a.answer.size())}, matches);
      return std::ranges::any_of(matches, [](const Match& m) { return m.matches; });
    });
  }
};
WEFT_REGISTER_REWARD(RegexReward, "regex", "1 if a regular expression matches");

struct LengthReward final : RewardConfig {
  int64_t target = 50;
  std::string unit = "tokens";

  void Fields(FieldVisitor& v) override {
    RewardConfig::Fields(v);
    v.Field("target", target, "the best length", Range::AtLeast(1));
    v.Choice("unit", unit, {"tokens", "words", "characters"}, "what is counted");
  }
  std::unique_ptr<Reward> Make(const RewardSetting&) const override {
    return Of([*this](const ScoredAnswer& a) {
      const int64_t length = unit == "tokens"  ? std::ssize(a.answer_ids)
                             : unit == "words" ? std::ssize(Words(a.answer))
                                               : Characters(a.answer);
      const auto miss = static_cast<double>(std::abs(length - target));
      return 1 - std::min(1.0, miss / static_cast<double>(target));
    });
  }
};
WEFT_REGISTER_REWARD(LengthReward, "length",
                     "1 at the target length, falling to 0 at none and at twice the target");

struct OverlongReward final : RewardConfig {
  int64_t max_tokens = 256, buffer = 64;

  void Fields(FieldVisitor& v) override {
    RewardConfig::Fields(v);
    v.Field("max_tokens", max_tokens, "tokens at which it is -1", Range::AtLeast(1));
    v.Field("buffer", buffer, "tokens over which it falls to that", Range::AtLeast(1));
  }
  void Check() const override {
    if (buffer > max_tokens) throw ConfigProblem("buffer", "must not be above max_tokens");
  }
  std::unique_ptr<Reward> Make(const RewardSetting&) const override {
    return Of([*this](const ScoredAnswer& a) {
      return OverlongPenalty(std::ssize(a.answer_ids), max_tokens, buffer, 1);
    });
  }
};
WEFT_REGISTER_REWARD(OverlongReward, "overlong", "DAPO's soft punishment of long answers, 0 to -1");

// ---- Words

struct LettersReward final : RewardConfig {
  std::string letters = "e";

  void Fields(FieldVisitor& v) override {
    RewardConfig::Fields(v);
    v.Field("letters", letters, "ASCII characters that count");
  }
  void Check() const override {
    if (letters.empty()) throw ConfigProblem("letters", "is empty");
  }
  std::unique_ptr<Reward> Make(const RewardSetting&) const override {
    return Of([*this](const ScoredAnswer& a) {
      const auto count = std::ranges::count_if(
          a.answer, [&](char c) { return letters.find(c) != std::string::npos; });
      return static_cast<double>(count) /
             static_cast<double>(std::max<int64_t>(1, Characters(a.answer)));
    });
  }
};
WEFT_REGISTER_REWARD(LettersReward, "letters", "the share of some letters in all characters");

struct RepetitionReward final : RewardConfig {
  int64_t n = 3;

  void Fields(FieldVisitor& v) override {
    RewardConfig::Fields(v);
    v.Field("n", n, "words of a group", Range::Between(1, 16));
  }
  std::unique_ptr<Reward> Make(const RewardSetting&) const override {
    return Of([*this](const ScoredAnswer& a) {
      const std::vector<std::string> words = Words(a.answer);
      const int64_t groups = std::ssize(words) - n + 1;
      if (groups <= 0) return 0.0;
      std::map<std::vector<std::string>, int64_t> seen;
      for (int64_t i = 0; i < groups; ++i) ++seen[{words.begin() + i, words.begin() + i + n}];
      return static_cast<double>(seen.size()) / static_cast<double>(groups) - 1;
    });
  }
};
WEFT_REGISTER_REWARD(RepetitionReward, "repetition",
                     "less the share of groups of words that were there before");

// Groups of vowels, a silent e at the end left out.
int64_t Syllables(std::string_view word) {
  int64_t count = 0;
  bool vowel = false;
  std::string letters;
  for (const char c : word) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  for (const char c : letters) {
    const bool is = std::string_view("aeiouy").find(c) != std::string_view::npos;
    count += is && !vowel;
    vowel = is;
  }
  if (count > 1 && letters.ends_with('e') && !letters.ends_with("le")) --count;
  return std::max<int64_t>(count, 1);
}

// Flesch 1948.
double ReadingEase(std::string_view text) {
  const std::vector<std::string> words = Words(text);
  if (words.empty()) return 0;
  int64_t syllables = 0, sentences = 0;
  for (const std::string& word : words) {
    syllables += Syllables(word);
    sentences += word.ends_with('.') || word.ends_with('!') || word.ends_with('?');
  }
  const auto count = static_cast<double>(words.size());
  return 206.835 - 1.015 * count / static_cast<double>(std::max<int64_t>(1, sentences)) -
         84.6 * static_cast<double>(syllables) / count;
}

struct ReadabilityReward final : RewardConfig {
  std::unique_ptr<Reward> Make(const RewardSetting&) const override {
    return Of([](const ScoredAnswer& a) { return ReadingEase(a.answer) / 100; });
  }
};
WEFT_REGISTER_REWARD(ReadabilityReward, "readability", "Flesch's reading ease / 100, of English");

}  // namespace
}  // namespace weft
