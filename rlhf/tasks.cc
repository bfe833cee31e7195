#include "rlhf/tasks.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "base/check.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr int64_t kHeldOut = 200;
constexpr std::string_view kWhite = " \t\n\r\v\f";

JsonValue Message(const char* role, const std::string& content) {
  JsonValue message = JsonValue::MakeObject();
  message.Set("role", JsonValue(role));
  message.Set("content", JsonValue(content));
  return message;
}

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kWhite);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kWhite) + 1 - begin);
}

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  for (size_t at = 0; (at = text.find_first_not_of(kWhite, at)) != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kWhite, at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

// All of the text as a number of at most nine digits.
std::optional<int64_t> Number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool all = error == std::errc() && end == text.data() + text.size();
  if (!all || std::abs(value) >= 1'000'000'000) return std::nullopt;
  return value;
}

// "37 * 85" by what is behind "calc".
std::string Calculated(std::string_view call) {
  const std::vector<std::string> words = Words(call);
  if (words.size() != 3) return "error";
  const auto a = Number(words[0]), b = Number(words[2]);
  if (!a || !b) return "error";
  if (words[1] == "+") return std::to_string(*a + *b);
  if (words[1] == "-") return std::to_string(*a - *b);
  return words[1] == "*" ? std::to_string(*a * *b) : "error";
}

}  // namespace

struct Task::Form {
  std::string name, system;
  std::vector<std::string> worked;  // queries
  int64_t numbers;
  int64_t max_new_tokens;
  int64_t turns = 1;

  std::string Asked(const std::string& query) const {
    if (name != "product") return name == "guess" ? "Begin." : query;
    const std::vector<std::string> words = Words(query);
    return words[0] + " * " + words[1];
  }
  std::string Expected(const std::string& query) const {
    std::vector<std::string> words = Words(query);
    if (name == "guess") return query;
    if (name == "product") return Calculated(Asked(query));
    std::ranges::sort(words);  // of two digits, so text order is number order
    if (name == "sort3") return Join(words, " ");
    return name == "max4" ? words.back() : words.front();
  }
  // The assistant's turns and what is said to them, the assistant first and last.
  std::vector<std::string> Worked(const std::string& query) const {
    if (name == "product") return {"calc " + Asked(query), Expected(query), Expected(query)};
    if (name != "guess") return {Expected(query)};
    std::vector<std::string> said;
    const int64_t secret = *Number(query);
    for (int64_t low = 100, high = 999, guess = 0; guess != secret;) {
      if (!said.empty()) said.emplace_back(guess < secret ? "higher" : "lower");
      guess = (low + high) / 2;
      said.push_back(std::to_string(guess));
      (guess < secret ? low : high) = guess < secret ? guess + 1 : guess - 1;
    }
    return said;
  }
};

const Task::Form& Task::FormOf(const std::string& name) {
  static const auto& forms = *new std::vector<Form>{
      {"sort3", "Sort the numbers from small to large.", {"54 21 67", "86 30 42"}, 3, 10},
      {"max4", "Give the largest number.", {"54 21 67 18", "30 86 42 55"}, 4, 4},
      {"min3", "Give the smallest number.", {"54 21 67", "30 86 42"}, 3, 4},
      {"product",
       "Multiply with the calculator: write calc and the product, then give its answer.",
       {"54 21", "30 86"},
       2,
       16,
       3},
      {"guess",
       "Guess a number from 100 to 999. You are told whether it is higher or lower.",
       {"774", "324"},
       1,
       6,
       10}};
  const auto found = std::ranges::find(forms, name, &Form::name);
  if (found != forms.end()) return *found;
  std::vector<std::string> names;
  for (const Form& form : forms) names.push_back(form.name);
  throw Error(ErrorCode::kConfig, "there is no task " + name + "; there are " + Join(names, ", "));
}

uint64_t SplitMix64::Next() {
  uint64_t z = state_ += 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

Task::Task(const std::string& name) : form_(FormOf(name)) {
  reserved_.insert(form_.worked.begin(), form_.worked.end());
  SplitMix64 random(1);
  while (std::ssize(held_out_) < kHeldOut) {
    const std::string query = NextQuery(random);
    if (reserved_.insert(query).second) held_out_.push_back(MakePrompt(query));
  }
}

std::vector<std::string> Task::Names(int64_t turns) {
  std::vector<std::string> names;
  for (const char* name : {"sort3", "max4", "min3", "product", "guess"}) {
    if (turns == 0 || FormOf(name).turns == turns) names.emplace_back(name);
  }
  return names;
}

int64_t Task::Turns(const std::string& name) {
  return FormOf(name).turns;
}

int64_t Task::MaxNewTokens(const std::string& name) {
  return FormOf(name).max_new_tokens;
}

std::string Task::NextQuery(SplitMix64& random) const {
  if (form_.name == "guess") return std::to_string(100 + random.Next() % 900);
  std::vector<std::string> words;
  while (std::ssize(words) < form_.numbers) {
    std::string word = std::to_string(10 + random.Next() % 90);
    if (std::ranges::find(words, word) == words.end()) words.push_back(std::move(word));
  }
  return Join(words, " ");
}

std::vector<TaskPrompt> Task::Training(SplitMix64& stream, int64_t count) const {
  std::vector<TaskPrompt> prompts;
  while (std::ssize(prompts) < count) {
    const std::string query = NextQuery(stream);
    if (!reserved_.contains(query)) prompts.push_back(MakePrompt(query));
  }
  return prompts;
}

TaskPrompt Task::MakePrompt(const std::string& query) const {
  JsonValue messages = JsonValue::MakeArray();
  messages.Append(Message("system", form_.system));
  for (const std::string& worked : form_.worked) {
    messages.Append(Message("user", form_.Asked(worked)));
    const std::vector<std::string> turns = form_.Worked(worked);
    for (size_t i = 0; i < turns.size(); ++i) {
      messages.Append(Message(i % 2 == 0 ? "assistant" : "user", turns[i]));
    }
  }
  messages.Append(Message("user", form_.Asked(query)));
  return {.messages = std::move(messages), .query = query, .expected = form_.Expected(query)};
}

bool Task::Correct(std::string_view answer, std::string_view expected, bool finished) {
  const std::string_view words = Trimmed(answer);
  return finished && !words.empty() && words == expected;
}

TaskReply Task::Answer(std::string_view turn, std::string_view expected, bool finished) const {
  const std::string_view words = Trimmed(turn);
  if (!finished) return {};
  if (form_.name == "product") {
    if (words.starts_with("calc")) return {.text = Calculated(words.substr(4)), .over = false};
    return {.score = words == expected ? 1.0 : 0.0};
  }
  const auto guess = Number(words), secret = Number(expected);
  if (!guess || !secret || *guess < 100 || *guess > 999) return {};
  if (*guess == *secret) return {.score = 1};
  return {.text = *guess < *secret ? "higher" : "lower",
          .over = false,
          .score = 0.5 * (1 - static_cast<double>(std::abs(*guess - *secret)) / 900)};
}

}  // namespace weft
