// Checkable tasks: chats whose one right answer a program knows. Two worked turns show the form;
// the last turn asks. The prompts of a task are a sequence without end, the same for the same seed.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "language/json.h"

namespace weft {

// Steele et al. 2014.
class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t state) : state_(state) {}
  uint64_t Next();
  uint64_t state() const { return state_; }

 private:
  uint64_t state_;
};

struct TaskPrompt {
  JsonValue messages;    // as chat templates take them
  std::string query;     // "15 89 40"
  std::string expected;  // "15 40 89"
};

class Task {
 public:
  // sort3: three numbers from small to large; max4: the largest of four; min3: the smallest of
  // three. Numbers are two digits, none twice. Throws Error(kConfig) for another name.
  explicit Task(const std::string& name);
  static const std::vector<std::string>& Names();

  int64_t max_new_tokens() const { return max_new_tokens_; }
  // 200 prompts that training never sees.
  const std::vector<TaskPrompt>& held_out() const { return held_out_; }
  // The numbers that a run's prompts are made of, and the next `count` of these.
  static SplitMix64 Stream(uint64_t seed) { return SplitMix64(100 + seed); }
  std::vector<TaskPrompt> Training(SplitMix64& stream, int64_t count) const;

  // Whether the answer ended by itself and, without white space around it, is what was expected.
  static bool Correct(std::string_view answer, std::string_view expected, bool finished);

 private:
  TaskPrompt MakePrompt(const std::string& query) const;
  std::string Answer(const std::string& query) const;

  std::string name_, system_;
  std::vector<std::string> worked_;  // queries
  int64_t numbers_, max_new_tokens_;
  std::vector<TaskPrompt> held_out_;
  std::set<std::string> reserved_;  // worked and held-out queries
};

}  // namespace weft
