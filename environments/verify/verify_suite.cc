#include "environments/verify/verify_suite.h"

#include <cmath>

#include "base/check.h"
#include "environments/dm_control/tolerance.h"
#include "environments/verify/verify_statistics.h"

namespace weft {
namespace {

// The metadata of a file names the leaves and their shapes: {"position": [8], "height": []}.
std::string Leaves(const EnvironmentSpec& spec) {
  std::string text;
  for (const Leaf& leaf : spec.observation) {
    text += (text.empty() ? "{" : ", ") + ("\"" + leaf.name) + "\": [";
    for (int i = 0; i < leaf.shape.rank(); ++i)
      text += (i == 0 ? "" : ", ") + std::to_string(leaf.shape[i]);
    text += "]";
  }
  return text + "}";
}

}  // namespace

void VerifySuiteRollouts(Recording& recording, EnvironmentRow& row, Comparison& comparison) {
  WEFT_CHECK_EQ(Leaves(row.spec()), recording.Metadata("observation"))
      << "observation of " << recording.name();
  const bool limited = recording.Metadata("step_limit") != "null";
  WEFT_CHECK_EQ(row.spec().time_limit,
                limited ? std::lround(std::stod(recording.Metadata("step_limit"))) : 0)
      << "step limit of " << recording.name();
  Rng rng(1, Purpose::kTest);
  // Tensors are [rollout, time, ..]; those of the start have no time.
  const auto part = [&](const std::string& tensor, int64_t rollout, int64_t t, int64_t times) {
    const std::vector<double> all = recording.Row(tensor, rollout);
    const auto size = static_cast<std::ptrdiff_t>(all.size()) / times;
    return std::vector<double>(all.begin() + t * size, all.begin() + (t + 1) * size);
  };
  for (int64_t rollout = 0; rollout < recording.Rows("rollout.action"); ++rollout) {
    std::vector<double> start = recording.Row("start.integration_state", rollout);
    for (const std::string& edit : recording.Names("edit.")) {
      const std::vector<double> values = recording.Row(edit, rollout);
      start.insert(start.end(), values.begin(), values.end());
    }
    row.SetState(start);
    const std::vector<double> types = recording.Row("rollout.step_type", rollout);
    const auto steps = std::ssize(types) - 1;
    comparison.Check("rollout.obs", row.Observation(), part("rollout.obs", rollout, 0, steps + 1),
                     1e-9);
    for (int64_t t = 0; t < steps && types[static_cast<size_t>(t) + 1] >= 0; ++t) {
      row.Step(recording.ActionAt("rollout.action", rollout, t), rng);
      const double sensitivity = part("rollout.sensitivity", rollout, t, steps)[0];
      const double tolerance = 1e-9 + 1e4 * sensitivity;
      const std::vector<double> state = row.State();
      size_t begin = 1;  // after the time
      for (const char* name : {"rollout.qpos", "rollout.qvel", "rollout.act"}) {
        if (!recording.Has(name)) continue;
        const std::vector<double> expected = part(name, rollout, t, steps);
        comparison.Check(name, std::span(state).subspan(begin, expected.size()), expected,
                         tolerance);
        begin += expected.size();
      }
      comparison.Check("rollout.obs", row.Observation(),
                       part("rollout.obs", rollout, t + 1, steps + 1), tolerance);
      comparison.Check("rollout.reward", row.reward(), part("rollout.reward", rollout, t, steps)[0],
                       tolerance);
      if (sensitivity >= 1e-8) continue;
      comparison.Check("rollout.discount", row.discount(),
                       part("rollout.discount", rollout, t, steps)[0], 0);
      comparison.Check("rollout.step_type", static_cast<double>(row.type()),
                       types[static_cast<size_t>(t) + 1], 0);
    }
  }
}

void VerifySuiteReturns(const Recording& recording, Comparison& comparison) {
  const std::string suffix = ".return";
  for (const std::string& name : recording.Names("")) {
    if (!name.ends_with(suffix)) continue;
    const std::string task = name.substr(0, name.size() - suffix.size());
    const EnvironmentEntry& entry = Environments().At("dm_control/" + task);
    EnvironmentRow row(entry.make(*entry.make_arguments()));
    VerifyReturns(recording, task + ".", 4, row, comparison);
  }
}

void VerifyTolerances(const Recording& recording, Comparison& comparison) {
  for (int64_t i = 0; i < recording.Rows("input"); ++i) {
    const std::vector<double> input = recording.Row("input", i);
    const double value = Tolerance(input[5], input[2], input[3],
                                   {.margin = input[4],
                                    .sigmoid = static_cast<Sigmoid>(std::lround(input[0])),
                                    .value_at_margin = input[1]});
    comparison.Check("value", value, recording.Number("value", i), 1e-12);
  }
}

}  // namespace weft
