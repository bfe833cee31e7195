#include "environments/verify/verify_hands.h"

#include <cmath>
#include <vector>

#include "base/check.h"

namespace weft {
namespace {

constexpr double kErrors = 6;  // standard errors that a frequency may be off
constexpr int64_t kDraws = 130000;

// The flat maps of a JSON list of maps.
std::vector<std::string> Maps(const std::string& list) {
  std::vector<std::string> maps;
  for (size_t begin = list.find('{'); begin != std::string::npos; begin = list.find('{', begin)) {
    const size_t end = list.find('}', begin);
    if (end == std::string::npos) break;
    maps.push_back(list.substr(begin, end + 1 - begin));
    begin = end;
  }
  return maps;
}

// The dealer's open card is the first of the deck at a reset.
void CheckDeck(const Recording& recording, EnvironmentRow& row, Comparison& comparison) {
  std::vector<double> expected(11), frequency(11);
  for (const double card : recording.All("deck"))
    expected.at(static_cast<size_t>(card)) += 1.0 / static_cast<double>(recording.Rows("deck"));
  Rng rng(5, Purpose::kTest);
  for (int64_t i = 0; i < kDraws; ++i) {
    row.Reset(rng);
    frequency[static_cast<size_t>(row.Observation()[1])] += 1.0 / kDraws;
  }
  for (size_t card = 0; card < expected.size(); ++card) {
    const double variance = expected[card] * (1 - expected[card]) / kDraws;
    comparison.Check("deck (drawn)", frequency[card], expected[card],
                     kErrors * std::sqrt(variance));
  }
}

}  // namespace

void VerifyHands(
    const Recording& recording,
    const std::function<std::unique_ptr<EnvironmentRow>(const std::string& arguments)>& make,
    Comparison& comparison) {
  std::vector<std::unique_ptr<EnvironmentRow>> variants;
  for (const std::string& arguments : Maps(recording.Metadata("variants")))
    variants.push_back(make(arguments));
  WEFT_CHECK(!variants.empty()) << recording.name() << " names no variants";
  CheckDeck(recording, *variants[0], comparison);

  Rng rng(6, Purpose::kTest);
  for (int64_t i = 0; i < recording.Rows("trace"); ++i) {
    const std::vector<double> line = recording.Row("trace", i);
    WEFT_CHECK(line.size() == 8 && line[1] >= 0 && line[1] < static_cast<double>(variants.size()))
        << "trace of " << recording.name() << ", row " << i;
    EnvironmentRow& row = *variants[static_cast<size_t>(line[1])];
    const auto action = static_cast<int64_t>(line[2]);
    if (action < 0) {
      // Empty hands, and the recorded cards to draw from.
      std::vector<double> state(7);
      const std::vector<double> cards = recording.Row("cards", static_cast<int64_t>(line[0]));
      state.insert(state.end(), cards.begin(), cards.end());
      row.environment().SetState(state);
      row.Reset(rng);
    } else {
      row.Step({&action, DType::kInt64}, rng);
    }
    comparison.Check("trace.observation", row.Observation(), std::span(line).subspan(3, 3), 0);
    comparison.Check("trace.terminated", row.type() == StepType::kLast, line[6], 0);
    comparison.Check("trace.reward", 2 * row.reward(), line[7], 0);
  }
}

}  // namespace weft
