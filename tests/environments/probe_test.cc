#include <functional>
#include <gtest/gtest.h>
#include <memory>

#include "environments/environment_row.h"

namespace weft {
namespace {

struct Outcome {
  double total = 0;   // mean return
  int64_t steps = 0;  // of the last episode
};

// Mean return of `episodes` episodes of a policy, which sees the first observation of the episode
// and the newest.
Outcome Play(const std::string& id, bool continuous, int episodes,
             const std::function<double(const std::vector<double>& first,
                                        const std::vector<double>& now)>& policy) {
  const EnvironmentEntry& entry = Environments().At(id);
  const auto arguments = entry.make_arguments();
  if (continuous) ConfigSource::Text("continuous: true", "test").Parse(*arguments);
  EnvironmentRow row(entry.make(*arguments));
  Rng rng(1, Purpose::kTest);
  Outcome outcome;
  for (int episode = 0; episode < episodes; ++episode) {
    row.Reset(rng);
    const std::vector<double> first = row.Observation();
    outcome.steps = 0;
    do {
      const double choice = policy(first, row.Observation());
      const float real = static_cast<float>(choice);
      const auto index = static_cast<int64_t>(choice);
      row.Step(continuous ? ActionRow(&real, DType::kFloat32) : ActionRow(&index, DType::kInt64),
               rng);
      outcome.total += row.reward() / episodes;
      ++outcome.steps;
    } while (row.type() != StepType::kLast);
    EXPECT_EQ(row.discount(), 0);
  }
  return outcome;
}

constexpr int kEpisodes = 2000;
constexpr double kError = 0.1;  // over four standard errors of a mean of -1 and 1

TEST(Probe, ValueAndCreditPayOneWhateverIsDone) {
  for (const double action : {0.0, 1.0}) {
    const auto policy = [&](const auto&, const auto&) { return action; };
    const Outcome value = Play("Probe-Value-v0", false, 10, policy);
    EXPECT_NEAR(value.total, 1, 1e-9);
    EXPECT_EQ(value.steps, 1);
    const Outcome credit = Play("Probe-Credit-v0", true, 10, policy);
    EXPECT_NEAR(credit.total, 1, 1e-9);
    EXPECT_EQ(credit.steps, 2);
  }
}

TEST(Probe, RewardPaysWhatIsObserved) {
  EnvironmentRow row(Environments()
                         .At("Probe-Reward-v0")
                         .make(*Environments().At("Probe-Reward-v0").make_arguments()));
  Rng rng(1, Purpose::kTest);
  double sum = 0;
  for (int i = 0; i < kEpisodes; ++i) {
    row.Reset(rng);
    const double cue = row.Observation()[0];
    ASSERT_EQ(std::abs(cue), 1);
    const int64_t action = 0;
    row.Step({&action, DType::kInt64}, rng);
    EXPECT_EQ(row.reward(), cue);
    sum += cue / kEpisodes;
  }
  EXPECT_NEAR(sum, 0, kError);
}

TEST(Probe, PolicyPaysOneForTheRightActionAndNothingByChance) {
  const auto right = [](const auto&, const auto& now) { return now[0] > 0 ? 1.0 : 0.0; };
  EXPECT_NEAR(Play("Probe-Policy-v0", false, kEpisodes, right).total, 1, 1e-9);
  const auto wrong = [](const auto&, const auto& now) { return now[0] > 0 ? 0.0 : 1.0; };
  EXPECT_NEAR(Play("Probe-Policy-v0", false, kEpisodes, wrong).total, -1, 1e-9);
  const auto blind = [](const auto&, const auto&) { return 1.0; };
  EXPECT_NEAR(Play("Probe-Policy-v0", false, kEpisodes, blind).total, 0, kError);
  const auto half = [](const auto&, const auto& now) { return 0.5 * now[0]; };
  EXPECT_NEAR(Play("Probe-Policy-v0", true, kEpisodes, half).total, 1, 1e-12);
}

TEST(Probe, MemoryNeedsTheFirstObservation) {
  const auto remember = [](const auto& first, const auto&) { return first[0] > 0 ? 1.0 : 0.0; };
  const Outcome outcome = Play("Probe-Memory-v0", false, kEpisodes, remember);
  EXPECT_NEAR(outcome.total, 1, 1e-9);
  EXPECT_EQ(outcome.steps, 4);  // cue, two blanks, question
  const auto half = [](const auto& first, const auto&) { return 0.5 * first[0]; };
  EXPECT_NEAR(Play("Probe-Memory-v0", true, kEpisodes, half).total, 1, 1e-12);
  // Without memory: the best of the two constant answers, and 0 for the continuous form.
  for (const double answer : {0.0, 1.0}) {
    const auto constant = [&](const auto&, const auto&) { return answer; };
    EXPECT_NEAR(Play("Probe-Memory-v0", false, kEpisodes, constant).total, 0, kError);
  }
  const auto zero = [](const auto&, const auto&) { return 0.0; };
  EXPECT_NEAR(Play("Probe-Memory-v0", true, kEpisodes, zero).total, 0.75, 1e-12);
}

TEST(Probe, MemoryShowsTheSameQuestionForBothCues) {
  const EnvironmentEntry& entry = Environments().At("Probe-Memory-v0");
  EnvironmentRow row(entry.make(*entry.make_arguments()));
  for (const double cue : {-1.0, 1.0}) {
    row.SetState(std::vector<double>{0, cue});
    EXPECT_EQ(row.Observation(), (std::vector<double>{cue, 0}));
    row.SetState(std::vector<double>{1, cue});
    EXPECT_EQ(row.Observation(), (std::vector<double>{0, 0}));
    row.SetState(std::vector<double>{3, cue});
    EXPECT_EQ(row.Observation(), (std::vector<double>{0, 1}));
  }
}

}  // namespace
}  // namespace weft
