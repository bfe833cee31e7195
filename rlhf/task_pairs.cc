#include "rlhf/task_pairs.h"

#include <algorithm>

#include "base/random.h"
#include "base/text.h"
#include "rlhf/tasks.h"

namespace weft {
namespace {

std::vector<std::string> Numbers(const std::string& text) {
  std::vector<std::string> numbers;  // of two digits, so text order is number order
  for (size_t at = 0; at < text.size(); at += 3) numbers.push_back(text.substr(at, 2));
  return numbers;
}

std::string NumberIn(Rng& rng, int64_t low, int64_t high) {
  return std::to_string(low +
                        static_cast<int64_t>(rng.Below(static_cast<uint64_t>(high - low + 1))));
}

// Right for other numbers than the prompt's; "" where there is no such answer.
std::string OtherRight(const std::string& task, const std::string& expected, Rng& rng) {
  if (task == "max4") return expected == "99" ? "" : NumberIn(rng, std::stoll(expected) + 1, 99);
  if (task == "min3") return expected == "10" ? "" : NumberIn(rng, 10, std::stoll(expected) - 1);
  std::vector<std::string> numbers = Numbers(expected);
  const std::vector<std::string> right = numbers;
  std::string& replaced = numbers[rng.Below(numbers.size())];
  do {
    replaced = NumberIn(rng, 10, 99);
  } while (std::ranges::find(right, replaced) != right.end());
  std::ranges::sort(numbers);
  return Join(numbers, " ");
}

std::string Wrong(const std::string& task, const TaskPrompt& prompt, Rng& rng) {
  std::vector<std::string> numbers = Numbers(prompt.query);
  if (task == "sort3") {
    std::vector<int64_t> order(numbers.size());
    std::string answer;
    do {
      for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
      rng.Shuffle(order);
      std::vector<std::string> words;
      for (const int64_t i : order) words.push_back(numbers[static_cast<size_t>(i)]);
      answer = Join(words, " ");
    } while (answer == prompt.expected);
    return answer;
  }
  std::erase(numbers, prompt.expected);
  return numbers[rng.Below(numbers.size())];
}

JsonValue Said(const std::string& words) {
  return JsonValue::MakeArray(
      {JsonValue::MakeObject({{"role", JsonValue("assistant")}, {"content", JsonValue(words)}})});
}

}  // namespace

std::vector<DataRow> BalancedPairs(const std::string& name, uint64_t seed, int64_t count,
                                   bool held_out) {
  const Task task(name);
  SplitMix64 stream = Task::Stream(seed);
  std::vector<TaskPrompt> prompts = held_out ? task.held_out() : task.Training(stream, count);
  if (count < std::ssize(prompts)) prompts.resize(static_cast<size_t>(count));
  Rng rng(held_out ? 0 : seed, Purpose::kReplay, (uint64_t{1} << 39) + (held_out ? 1 : 0));
  std::vector<DataRow> rows;
  for (const TaskPrompt& prompt : prompts) {
    std::string rejected;
    if (rows.size() % 2 == 1) rejected = OtherRight(name, prompt.expected, rng);
    if (rejected.empty()) rejected = Wrong(name, prompt, rng);
    rows.push_back({.kind = RowKind::kPair,
                    .place = name + " pair " + std::to_string(rows.size()),
                    .text = {},
                    .messages = {},
                    .prompt = prompt.messages,
                    .chosen = Said(prompt.expected),
                    .rejected = Said(rejected)});
  }
  return rows;
}

}  // namespace weft
