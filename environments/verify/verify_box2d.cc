#include "environments/verify/verify_box2d.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "environments/box2d/bipedal_walker_rules.h"
#include "environments/box2d/lunar_lander_rules.h"
#include "environments/verify/verify_statistics.h"

namespace weft {
namespace {

constexpr double kErrors = 4;  // standard errors that a mean may be off

// One recorded step.
struct Step {
  std::vector<double> observation, action;
  double x = 0;      // of the main body, m
  double angle = 0;  // of the main body, rad
  double previous_shaping = 0, shaping = 0;
  bool crashed = false, awake = true;
};

// What the rules make of one.
struct Judgement {
  double shaping = 0, reward = 0;
  bool terminal = false;
};

using Judge = std::function<Judgement(const Step&)>;

Judgement JudgeLanding(const Step& step, bool continuous) {
  const auto engines = continuous
                           ? lunar_lander::ContinuousEngines(step.action.at(0), step.action.at(1))
                           : lunar_lander::DiscreteEngines(static_cast<int64_t>(step.action.at(0)));
  const lunar_lander::Situation situation{
      .x = (step.x - 10) / 10, .crashed = step.crashed, .awake = step.awake};
  return {.shaping = lunar_lander::Shaping(std::span(step.observation).first<8>()),
          .reward = lunar_lander::Reward(step.shaping - step.previous_shaping, engines, situation),
          .terminal = situation.terminal()};
}

Judgement JudgeWalk(const Step& step) {
  const bipedal_walker::Situation situation{.x = step.x, .crashed = step.crashed};
  const double gain = step.shaping - step.previous_shaping;
  return {.shaping = bipedal_walker::Shaping(step.x, step.angle),
          .reward = bipedal_walker::Reward(gain, step.action, situation),
          .terminal = situation.terminal()};
}

Judge JudgeOf(const EnvironmentSpec& spec) {
  const bool continuous = spec.action.As<Box>() != nullptr;
  if (spec.id.starts_with("LunarLander"))
    return [=](const Step& step) { return JudgeLanding(step, continuous); };
  if (spec.id.starts_with("BipedalWalker")) return JudgeWalk;
  throw Error(ErrorCode::kInvalidArgument, spec.id + " does not shape its rewards");
}

// Of the original lander, in float32, as NumPy computes with its scalars.
std::vector<double> Heuristic(std::span<const double> observation, bool continuous) {
  std::array<float, 8> s;
  for (size_t i = 0; i < s.size(); ++i) s[i] = static_cast<float>(observation[i]);
  const float target = std::clamp(s[0] * 0.5f + s[2], -0.4f, 0.4f);
  float turn = (target - s[4]) * 0.5f - s[5];
  float rise = (0.55f * std::abs(s[0]) - s[1]) * 0.5f - s[3] * 0.5f;
  if (s[6] != 0 || s[7] != 0) {
    turn = 0;
    rise = -s[3] * 0.5f;
  }
  if (continuous) {
    const auto clip = [](float value) { return std::clamp(value, -1.0f, 1.0f); };
    return {clip(rise * 20 - 1), clip(-turn * 20)};
  }
  if (rise > std::abs(turn) && rise > 0.05f) return {2};
  if (turn < -0.05f) return {3};
  return {turn > 0.05f ? 1.0 : 0.0};
}

// The numbers of a JSON list.
std::vector<double> Numbers(const std::string& list) {
  std::vector<double> numbers;
  for (size_t begin = 0; begin < list.size();) {
    char* end = nullptr;
    const double number = std::strtod(list.c_str() + begin, &end);
    const auto stop = static_cast<size_t>(end - list.c_str());
    if (stop > begin) numbers.push_back(number);
    begin = std::max(begin + 1, stop);
  }
  return numbers;
}

void CheckSpec(const Recording& recording, const EnvironmentSpec& spec, Comparison& comparison) {
  const Leaf& leaf = spec.observation.at(0);
  comparison.CheckFloat32("observation_low", leaf.low,
                          Numbers(recording.Metadata("observation_low")), 0);
  comparison.CheckFloat32("observation_high", leaf.high,
                          Numbers(recording.Metadata("observation_high")), 0);
  comparison.Check("max_episode_steps", static_cast<double>(spec.time_limit),
                   Numbers(recording.Metadata("max_episode_steps")).at(0), 0);
}

void CheckSteps(const Recording& recording, const std::string& prefix, const Judge& judge,
                double reward_tolerance, Comparison& comparison) {
  for (int64_t i = 0; i < recording.Rows(prefix + "action"); ++i) {
    const auto number = [&](const char* name) { return recording.Number(prefix + name, i); };
    const Judgement judgement = judge({.observation = recording.Row(prefix + "obs", i),
                                       .action = recording.Row(prefix + "action", i),
                                       .x = number("pos_x"),
                                       .angle = number("angle"),
                                       .previous_shaping = number("prev_shaping"),
                                       .shaping = number("shaping"),
                                       .crashed = number("game_over") != 0,
                                       .awake = number("awake") != 0});
    comparison.Check(prefix + "shaping", judgement.shaping, number("shaping"), 1e-4);
    comparison.Check(prefix + "reward", judgement.reward, number("reward"), reward_tolerance);
    comparison.Check(prefix + "terminated", judgement.terminal, number("terminated"), 0);
  }
}

// The largest difference of two samples' distribution functions against what is exceeded with
// probability 0.001 (Kolmogorov's distribution, with Stephens' correction for small samples).
void CheckDistribution(const std::string& tensor, std::vector<double> got,
                       std::vector<double> expected, Comparison& comparison) {
  CheckMean(tensor, got, expected, kErrors, comparison);
  std::sort(got.begin(), got.end());
  std::sort(expected.begin(), expected.end());
  double largest = 0;
  const auto below = [](const std::vector<double>& sample, double value) {
    const auto count = std::upper_bound(sample.begin(), sample.end(), value) - sample.begin();
    return static_cast<double>(count) / static_cast<double>(sample.size());
  };
  for (const auto* sample : {&got, &expected}) {
    for (const double value : *sample)
      largest = std::max(largest, std::abs(below(got, value) - below(expected, value)));
  }
  const auto n = static_cast<double>(got.size()), m = static_cast<double>(expected.size());
  const double root = std::sqrt(n * m / (n + m));
  comparison.Check(tensor + " (distribution)", largest, 0, 1.9495 / (root + 0.12 + 0.11 / root));
}

void CheckEpisodes(const Recording& recording, const std::string& prefix, const Policy& policy,
                   bool lengths, EnvironmentRow& row, Comparison& comparison) {
  const Episodes episodes = PlayEpisodes(row, recording.Rows(prefix + "return"), policy);
  const auto check = [&](const char* name, const std::vector<double>& sample) {
    CheckDistribution(prefix + name, sample, recording.All(prefix + name), comparison);
  };
  check("return", episodes.returns);
  if (lengths) check("length", episodes.lengths);
  check("terminated", episodes.terminated);
  const std::string first = prefix + "reset_obs";
  if (!recording.Has(first)) return;
  for (size_t i = 0; i < episodes.first_observation.size(); ++i) {
    std::vector<double> expected;
    for (int64_t k = 0; k < recording.Rows(first); ++k)
      expected.push_back(recording.Row(first, k).at(i));
    CheckDistribution(first, episodes.first_observation[i], std::move(expected), comparison);
  }
}

}  // namespace

void VerifyShapedTraces(Recording& recording, EnvironmentRow& row, Comparison& comparison) {
  const EnvironmentSpec& spec = row.spec();
  const Judge judge = JudgeOf(spec);
  const bool real = spec.action.As<Box>() != nullptr;
  CheckSpec(recording, spec, comparison);
  for (const char* prefix : {"trace.", "heuristic_trace."}) {
    if (recording.Has(std::string(prefix) + "action"))
      CheckSteps(recording, prefix, judge, real ? 1e-6 : 0, comparison);
  }
  CheckEpisodes(recording, "random.", RandomPolicy(spec), true, row, comparison);
  if (!recording.Has("heuristic.return")) return;
  WEFT_CHECK_EQ(spec.observation.at(0).shape.elements(), 8) << "observation of the heuristic";
  for (int64_t i = 0; i < recording.Rows("heuristic.obs_in"); ++i) {
    comparison.Check("heuristic.action_out", Heuristic(recording.Row("heuristic.obs_in", i), real),
                     recording.Row("heuristic.action_out", i), real ? 1e-6 : 0);
  }
  const Policy heuristic = [&](std::span<const double> observation, void* action) {
    const std::vector<double> values = Heuristic(observation, real);
    if (!real) *static_cast<int64_t*>(action) = static_cast<int64_t>(values[0]);
    for (size_t i = 0; real && i < values.size(); ++i)
      static_cast<float*>(action)[i] = static_cast<float>(values[i]);
  };
  // It lands, and how long a landed robot takes to come to rest depends on Box2D's version.
  CheckEpisodes(recording, "heuristic.", heuristic, false, row, comparison);
}

}  // namespace weft
