// Checkable tasks: chats whose one right answer, or whose outcome, a program knows. Worked turns
// show the form; the last turn asks. The prompts of a task are a sequence without end, the same for
// the same seed.
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

// What a task of several turns says to one of them.
struct TaskReply {
  std::string text;
  bool over = true;  // nothing is said: the episode has ended
  double score = 0;  // what it is worth so far
};

class Task {
 public:
  // Of one turn: sort3: three numbers from small to large; max4: the largest of four; min3: the
  // smallest of three. Numbers are two digits, none twice. Of several turns: product: of two
  // two-digit numbers, by a calculator that answers "calc 37 * 85"; guess: a number of three digits
  // in ten guesses, each answered by "higher" or "lower". Throws Error(kConfig) for another name.
  explicit Task(const std::string& name);
  // All, or those of so many turns.
  static std::vector<std::string> Names(int64_t turns = 0);
  static int64_t Turns(const std::string& name);         // of the model at most
  static int64_t MaxNewTokens(const std::string& name);  // of a turn

  // 200 prompts that training never sees.
  const std::vector<TaskPrompt>& held_out() const { return held_out_; }
  // The numbers that a run's prompts are made of, and the next `count` of these.
  static SplitMix64 Stream(uint64_t seed) { return SplitMix64(100 + seed); }
  std::vector<TaskPrompt> Training(SplitMix64& stream, int64_t count) const;

  // Whether the answer ended by itself and, without white space around it, is what was expected.
  static bool Correct(std::string_view answer, std::string_view expected, bool finished);
  // To a turn of the model in an episode whose prompt expects something. product: the result of a
  // call, "error" for one that is none; anything else is the answer, worth 1 when it is right.
  // guess: worth 1 when hit, else up to 0.5 by how near it is; 0 for what is no number.
  TaskReply Answer(std::string_view turn, std::string_view expected, bool finished) const;

 private:
  struct Form;
  static const Form& FormOf(const std::string& name);

  std::string NextQuery(SplitMix64& random) const;
  TaskPrompt MakePrompt(const std::string& query) const;

  const Form& form_;
  std::vector<TaskPrompt> held_out_;
  std::set<std::string> reserved_;  // worked and held-out queries
};

}  // namespace weft
