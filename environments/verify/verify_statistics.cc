#include "environments/verify/verify_statistics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace weft {
namespace {

constexpr double kErrors = 5;  // standard errors that a mean may be off
constexpr int kResets = 2000;  // as many as were recorded

struct Moments {
  double mean = 0, deviation = 0;
  double min = std::numeric_limits<double>::infinity(), max = -min;
};

Moments MomentsOf(std::span<const double> values) {
  Moments moments;
  const auto n = static_cast<double>(values.size());
  for (const double value : values) {
    moments.mean += value / n;
    moments.min = std::min(moments.min, value);
    moments.max = std::max(moments.max, value);
  }
  double squares = 0;
  for (const double value : values) squares += (value - moments.mean) * (value - moments.mean);
  moments.deviation = n > 1 ? std::sqrt(squares / (n - 1)) : 0;
  return moments;
}

// samples: one vector per coordinate.
void CheckMoments(const Recording& recording, const std::string& prefix,
                  const std::vector<std::vector<double>>& samples, Comparison& comparison) {
  if (!recording.Has(prefix + "mean")) return;
  const auto mean = recording.All(prefix + "mean"), deviation = recording.All(prefix + "std"),
             min = recording.All(prefix + "min"), max = recording.All(prefix + "max");
  WEFT_CHECK_EQ(mean.size(), samples.size()) << prefix << "mean of " << recording.name();
  for (size_t i = 0; i < samples.size(); ++i) {
    const Moments got = MomentsOf(samples[i]);
    const double error = deviation[i] * std::sqrt(2.0 / kResets);
    // Extremes of a uniform sample, which spans 3.46 deviations, lie at its bounds; those of one
    // with tails scatter by up to half a deviation.
    const double range = max[i] - min[i];
    const double extreme = range < 3.7 * deviation[i] ? 0.02 * range : kErrors * 0.5 * deviation[i];
    comparison.Check(prefix + "mean", got.mean, mean[i], kErrors * error + 1e-12);
    comparison.Check(prefix + "std", got.deviation, deviation[i], kErrors * error + 1e-12);
    comparison.Check(prefix + "min", got.min, min[i], extreme + 1e-12);
    comparison.Check(prefix + "max", got.max, max[i], extreme + 1e-12);
  }
}

void CheckResets(const Recording& recording, EnvironmentRow& row, Comparison& comparison) {
  if (recording.Names("reset.").empty()) return;
  Rng rng(1, Purpose::kTest);
  std::vector<std::vector<double>> states, observations;
  const auto add = [](const std::vector<double>& values,
                      std::vector<std::vector<double>>& samples) {
    samples.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) samples[i].push_back(values[i]);
  };
  for (int i = 0; i < kResets; ++i) {
    row.Reset(rng);
    add(row.State(), states);
    add(row.Observation(), observations);
  }
  if (recording.Has("reset.mean")) return CheckMoments(recording, "reset.", states, comparison);
  const auto nq = static_cast<std::ptrdiff_t>(recording.All("reset.qpos.mean").size());
  CheckMoments(recording, "reset.obs.", observations, comparison);
  CheckMoments(recording, "reset.qpos.", {states.begin(), states.begin() + nq}, comparison);
  CheckMoments(recording, "reset.qvel.", {states.begin() + nq, states.end()}, comparison);
}

}  // namespace

Episodes PlayEpisodes(EnvironmentRow& row, int64_t count, const Policy& policy) {
  Rng rng(2, Purpose::kTest);
  const EnvironmentSpec& spec = row.spec();
  std::vector<double> action(
      static_cast<size_t>(std::max<int64_t>(1, spec.action.shape().elements())));
  Episodes episodes;
  for (int64_t episode = 0; episode < count; ++episode) {
    double sum = 0;
    int64_t steps = 0;
    row.Reset(rng);
    std::vector<double> observation = row.Observation();
    episodes.first_observation.resize(observation.size());
    for (size_t i = 0; i < observation.size(); ++i)
      episodes.first_observation[i].push_back(observation[i]);
    do {
      policy(observation, action.data());
      row.Step({action.data(), spec.action.dtype()}, rng);
      observation = row.Observation();
      sum += row.reward();
      ++steps;
    } while (row.type() != StepType::kLast && steps != spec.time_limit);
    episodes.returns.push_back(sum);
    episodes.lengths.push_back(static_cast<double>(steps));
    episodes.terminated.push_back(row.type() == StepType::kLast && row.discount() == 0 ? 1 : 0);
  }
  return episodes;
}

Policy RandomPolicy(const EnvironmentSpec& spec) {
  return [&spec, rng = Rng(3, Purpose::kTest)](std::span<const double>, void* action) mutable {
    spec.action.Sample(rng, action);
  };
}

void CheckMean(const std::string& tensor, std::span<const double> got,
               std::span<const double> expected, double errors, Comparison& comparison) {
  const Moments ours = MomentsOf(got), theirs = MomentsOf(expected);
  const double variance =
      ours.deviation * ours.deviation / static_cast<double>(got.size()) +
      theirs.deviation * theirs.deviation / static_cast<double>(expected.size());
  comparison.Check(tensor + " (mean)", ours.mean, theirs.mean,
                   errors * std::sqrt(variance) + 1e-12);
}

void VerifyReturns(const Recording& recording, const std::string& prefix, double errors,
                   EnvironmentRow& row, Comparison& comparison) {
  const Episodes episodes =
      PlayEpisodes(row, recording.Rows(prefix + "return"), RandomPolicy(row.spec()));
  CheckMean(prefix + "return", episodes.returns, recording.All(prefix + "return"), errors,
            comparison);
  CheckMean(prefix + "length", episodes.lengths, recording.All(prefix + "length"), errors,
            comparison);
}

void VerifyStatistics(Recording& recording, EnvironmentRow& row, Comparison& comparison) {
  CheckResets(recording, row, comparison);
  if (recording.Has("random.return")) VerifyReturns(recording, "random.", kErrors, row, comparison);
}

}  // namespace weft
