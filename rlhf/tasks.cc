#include "rlhf/tasks.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr int64_t kHeldOut = 200;

std::string NextQuery(SplitMix64& random, int64_t numbers) {
  std::vector<std::string> words;
  while (std::ssize(words) < numbers) {
    std::string word = std::to_string(10 + random.Next() % 90);
    if (std::ranges::find(words, word) == words.end()) words.push_back(std::move(word));
  }
  return Join(words, " ");
}

JsonValue Message(const char* role, const std::string& content) {
  JsonValue message = JsonValue::MakeObject();
  message.Set("role", JsonValue(role));
  message.Set("content", JsonValue(content));
  return message;
}

}  // namespace

uint64_t SplitMix64::Next() {
  uint64_t z = state_ += 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

Task::Task(const std::string& name) : name_(name) {
  if (name == "sort3") {
    system_ = "Sort the numbers from small to large.";
    worked_ = {"54 21 67", "86 30 42"};
    numbers_ = 3;
    max_new_tokens_ = 10;
  } else if (name == "max4") {
    system_ = "Give the largest number.";
    worked_ = {"54 21 67 18", "30 86 42 55"};
    numbers_ = 4;
    max_new_tokens_ = 4;
  } else if (name == "min3") {
    system_ = "Give the smallest number.";
    worked_ = {"54 21 67", "30 86 42"};
    numbers_ = 3;
    max_new_tokens_ = 4;
  } else {
    throw Error(ErrorCode::kConfig,
                "there is no task " + name + "; there are " + Join(Names(), ", "));
  }
  reserved_.insert(worked_.begin(), worked_.end());
  SplitMix64 random(1);
  while (std::ssize(held_out_) < kHeldOut) {
    const std::string query = NextQuery(random, numbers_);
    if (reserved_.insert(query).second) held_out_.push_back(MakePrompt(query));
  }
}

const std::vector<std::string>& Task::Names() {
  static const auto& names = *new std::vector<std::string>{"sort3", "max4", "min3"};
  return names;
}

std::vector<TaskPrompt> Task::Training(SplitMix64& stream, int64_t count) const {
  std::vector<TaskPrompt> prompts;
  while (std::ssize(prompts) < count) {
    const std::string query = NextQuery(stream, numbers_);
    if (!reserved_.contains(query)) prompts.push_back(MakePrompt(query));
  }
  return prompts;
}

std::string Task::Answer(const std::string& query) const {
  std::vector<std::string> words;  // of two digits, so text order is number order
  for (size_t at = 0; at < query.size(); at += 3) words.push_back(query.substr(at, 2));
  std::ranges::sort(words);
  if (name_ == "sort3") return Join(words, " ");
  return name_ == "max4" ? words.back() : words.front();
}

TaskPrompt Task::MakePrompt(const std::string& query) const {
  JsonValue messages = JsonValue::MakeArray();
  messages.Append(Message("system", system_));
  for (const std::string& worked : worked_) {
    messages.Append(Message("user", worked));
    messages.Append(Message("assistant", Answer(worked)));
  }
  messages.Append(Message("user", query));
  return {.messages = std::move(messages), .query = query, .expected = Answer(query)};
}

bool Task::Correct(std::string_view answer, std::string_view expected, bool finished) {
  constexpr std::string_view kWhite = " \t\n\r\v\f";
  const size_t begin = answer.find_first_not_of(kWhite);
  if (!finished || begin == std::string_view::npos) return false;
  return answer.substr(begin, answer.find_last_not_of(kWhite) + 1 - begin) == expected;
}

}  // namespace weft
