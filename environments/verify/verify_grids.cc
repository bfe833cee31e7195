#include "environments/verify/verify_grids.h"

#include <cmath>
#include <vector>

#include "base/check.h"
#include "environments/minigrid/grid_world.h"

namespace weft {
namespace {

constexpr double kErrors = 6;  // standard errors that a frequency may be off
constexpr size_t kHeader = 7;  // numbers of a state before the cells: agent, carried object, steps
constexpr size_t kObjects = 11, kDirections = 4;

void CheckStep(const Recording& recording, int64_t index, const EnvironmentRow& row,
               Comparison& comparison) {
  const std::vector<double> state = row.State(), observation = row.Observation();
  const auto part = [&](size_t begin, size_t count) {
    return std::span(state).subspan(begin, count);
  };
  comparison.Check("agent", part(0, 3), recording.Row("agent", index), 0);
  comparison.Check("carrying", part(3, 3), recording.Row("carrying", index), 0);
  comparison.Check("grid", part(kHeader, state.size() - kHeader), recording.Row("grid", index), 0);
  comparison.Check("obs", std::span(observation).first(observation.size() - 1),
                   recording.Row("obs", index), 0);
  comparison.Check("agent", observation.back(), recording.Row("agent", index)[2], 0);
  comparison.Check("reward", row.reward(), recording.Number("reward", index), 1e-12);
  comparison.Check("terminated", row.type() == StepType::kLast,
                   recording.Number("terminated", index), 0);
  comparison.Check("truncated", state[6] >= static_cast<double>(row.spec().time_limit),
                   recording.Number("truncated", index), 0);
}

void CheckLayouts(const Recording& recording, EnvironmentRow& row, Comparison& comparison) {
  if (!recording.Has("layouts.objects")) return;
  const std::vector<double> objects = recording.All("layouts.objects"),
                            agents = recording.All("layouts.agent");
  const double resets = recording.Number("layouts.resets", 0);
  WEFT_CHECK(resets >= 1 && resets <= 1e6) << "layouts.resets of " << recording.name();
  std::vector<double> got_objects(objects.size()), got_agents(agents.size());
  const size_t cells = objects.size() / kObjects;
  WEFT_CHECK_EQ(agents.size(), cells * kDirections) << "layouts.agent of " << recording.name();
  const size_t height = static_cast<size_t>(std::lround(recording.Number("layouts.height", 0)));
  Rng rng(7, Purpose::kTest);
  for (int64_t i = 0; i < static_cast<int64_t>(resets); ++i) {
    row.Reset(rng);
    const std::vector<double> state = row.State();
    WEFT_CHECK_EQ(state.size(), kHeader + 3 * cells) << "grid of " << recording.name();
    for (size_t cell = 0; cell < cells; ++cell) {
      const auto object = static_cast<size_t>(state[kHeader + 3 * cell]);
      got_objects.at(cell * kObjects + object) += 1 / resets;
    }
    const size_t cell = static_cast<size_t>(state[0]) * height + static_cast<size_t>(state[1]);
    got_agents.at(cell * kDirections + static_cast<size_t>(state[2])) += 1 / resets;
  }
  const auto check = [&](const char* tensor, const std::vector<double>& got,
                         const std::vector<double>& expected) {
    for (size_t i = 0; i < got.size(); ++i) {
      const double frequency = (got[i] + expected[i]) / 2;
      const double error = std::sqrt(2 * frequency * (1 - frequency) / resets);
      comparison.Check(tensor, got[i], expected[i], kErrors * error + 1e-9);
    }
  };
  check("layouts.objects", got_objects, objects);
  check("layouts.agent", got_agents, agents);
}

}  // namespace

void VerifyGrids(const Recording& recording, EnvironmentRow& row, Comparison& comparison) {
  WEFT_CHECK(dynamic_cast<const GridWorld*>(&row.environment()) != nullptr)
      << row.spec().id << " has no grid, " << recording.name() << " holds one";
  CheckLayouts(recording, row, comparison);
  const std::vector<double> offset = recording.All("offset");
  Rng rng(8, Purpose::kTest);
  for (size_t episode = 0; episode + 1 < offset.size(); ++episode) {
    const auto begin = static_cast<int64_t>(offset[episode]),
               end = static_cast<int64_t>(offset[episode + 1]);
    std::vector<double> state = recording.Row("agent", begin);
    state.resize(kHeader);  // nothing carried, no steps
    const std::vector<double> grid = recording.Row("grid", begin);
    state.insert(state.end(), grid.begin(), grid.end());
    row.SetState(state);
    CheckStep(recording, begin, row, comparison);
    for (int64_t i = begin + 1; i < end; ++i) {
      const auto action = static_cast<int64_t>(recording.Number("action", i));
      row.Step({&action, DType::kInt64}, rng);
      CheckStep(recording, i, row, comparison);
    }
  }
}

}  // namespace weft
