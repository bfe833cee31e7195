#include "environments/verify/verify.h"

#include <cmath>
#include <functional>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/comparison.h"
#include "base/file.h"
#include "environments/availability.h"
#include "environments/environment_row.h"
#include "environments/verify/recording.h"
#include "environments/verify/verify_box2d.h"
#include "environments/verify/verify_games.h"
#include "environments/verify/verify_grids.h"
#include "environments/verify/verify_hands.h"
#include "environments/verify/verify_particles.h"
#include "environments/verify/verify_statistics.h"
#include "environments/verify/verify_suite.h"
#include "environments/verify/verify_tables.h"

namespace weft {
namespace {

// Where a family of files keeps the parts of a state, and what it allows.
struct Family {
  std::vector<std::string> parts;     // of a state, as suffixes: "state", or "qpos" and "qvel"
  std::string rollout;                // prefix of the rollouts' tensors
  std::string rollout_next;           // prefix of a part after a step of a rollout
  double step = 0, rollout_base = 0;  // absolute tolerance of states and observations
  double step_reward = 0;             // of rewards in single steps; 0: exact
  bool chaotic = true;                // tolerances grow with the recorded sensitivity, 1e4 times
};

Family FamilyOf(const Recording& recording) {
  if (recording.Has("rollout.start_qpos")) {
    return {.parts = {"qpos", "qvel"},
            .rollout = "rollout.",
            .rollout_next = "rollout.next_",
            .step = 1e-8,
            .rollout_base = 1e-9,
            .step_reward = 1e-8};
  }
  if (!recording.Has("ep.start_state")) {
    throw Error(ErrorCode::kInvalidArgument,
                recording.name() + " holds no transitions of a known form");
  }
  Family family{.parts = {"state"},
                .rollout = "ep.",
                .rollout_next = "ep.",
                .step = 1e-12,
                .rollout_base = 1e-12};
  const std::string environment = recording.Metadata("env");
  if (environment == "Pendulum-v1") family.step_reward = 1e-12;
  if (environment == "MountainCarContinuous-v0") {
    family.step = 3e-7;  // its state is float32
    family.step_reward = 1e-7;
    family.rollout_base = 1e-4;
    family.chaotic = false;
  }
  return family;
}

// JSON, but for infinity, is YAML.
std::string YamlOf(std::string json) {
  const std::string word = "Infinity";
  for (size_t at = 0; (at = json.find(word, at)) != std::string::npos;)
    json.replace(at, word.size(), ".inf");
  return json;
}

// The id of a recording's environment: those of dm_control's suite tell their domain and task,
// those of games have their names.
std::string IdOf(const SafetensorsMetadata& metadata) {
  const auto environment = metadata.find("env");
  if (environment == metadata.end()) return "";
  if (environment->second == "tic-tac-toe") return "TicTacToe-v0";
  if (environment->second == "Connect Four") return "ConnectFour-v0";
  return (metadata.contains("domain") ? "dm_control/" : "") + environment->second;
}

class Verifier {
 public:
  Verifier(const std::string& id, Recording recording)
      : recording_(std::move(recording)), comparison_(recording_.name()) {
    id_ = id.empty() ? IdOf(recording_.metadata()) : id;
    entry_ = FindEnvironment(id_);
  }

  VerifyReport Run() {
    if (HoldsTables(recording_)) {
      VerifyTables(recording_, *Make("", recording_.Has("action_mask") ? "action_mask=true" : ""),
                   comparison_);
      return comparison_.Report();
    }
    if (HoldsGames(recording_)) {
      VerifyGames(recording_, *Games().At(id_).make(*entry_.make_arguments()), comparison_);
      return comparison_.Report();
    }
    if (HoldsGrids(recording_)) {
      VerifyGrids(recording_, *Make(""), comparison_);
      return comparison_.Report();
    }
    if (HoldsHands(recording_)) {
      VerifyHands(
          recording_, [&](const std::string& arguments) { return Make(arguments); }, comparison_);
      return comparison_.Report();
    }
    if (HoldsParticles(recording_)) {
      WEFT_CHECK(entry_.make_multi_agent) << id_ << " has one agent only";
      MultiAgentRow row(entry_.make_multi_agent(*Arguments("", "")));
      VerifyParticles(recording_, row, comparison_);
      return comparison_.Report();
    }
    if (HoldsSuiteRollouts(recording_)) {
      VerifySuiteRollouts(recording_, *Make(""), comparison_);
      return comparison_.Report();
    }
    if (HoldsShapedTraces(recording_)) {
      VerifyShapedTraces(recording_, *Make(""), comparison_);
      return comparison_.Report();
    }
    family_ = FamilyOf(recording_);
    const auto row = Make("");
    CheckBounds(*row);
    if (recording_.Has("step.action")) {
      Steps(*row, "step.", false);
      if (recording_.Has("step_f32.reward")) Steps(*row, "step_f32.", true);
      if (recording_.Has("step.reward_sutton_barto"))
        SuttonBarto(*Make("{sutton_barto_reward: true}"));
    }
    Rollouts(*row);
    if (recording_.Has("ep.state")) RolloutSteps(*row);
    VerifyStatistics(recording_, *row, comparison_);
    return comparison_.Report();
  }

 private:
  // The recording's keyword arguments, or `arguments` as YAML; `more` is one further, KEY=VALUE.
  std::unique_ptr<Config> Arguments(const std::string& arguments, const std::string& more) const {
    auto config = entry_.make_arguments();
    const std::string given = arguments.empty() ? YamlOf(recording_.Metadata("kwargs")) : arguments;
    ConfigSource source = ConfigSource::Text(given.empty() ? "{}" : given, recording_.name());
    if (!more.empty()) source.Override(more);
    source.Parse(*config);
    return config;
  }

  // The environment with these arguments.
  std::unique_ptr<EnvironmentRow> Make(const std::string& arguments,
                                       const std::string& more = "") const {
    WEFT_CHECK(entry_.make) << id_ << " has several agents";
    return std::make_unique<EnvironmentRow>(entry_.make(*Arguments(arguments, more)));
  }

  void CheckBounds(const EnvironmentRow& row) {
    if (!recording_.Has("model.ctrlrange")) return;
    const auto* box = row.spec().action.As<Box>();
    WEFT_CHECK(box != nullptr) << id_ << " has bounds in " << recording_.name();
    std::vector<double> bounds;
    for (size_t i = 0; i < box->low.size(); ++i)
      bounds.insert(bounds.end(), {box->low[i], box->high[i]});
    comparison_.Check("model.ctrlrange", bounds, recording_.All("model.ctrlrange"), 1e-12);
  }

  // A state: the tensors prefix + part, one after the other.
  std::vector<double> State(const std::string& prefix, int64_t index) const {
    std::vector<double> state;
    for (const std::string& part : family_.parts) {
      const std::vector<double> values = recording_.Row(prefix + part, index);
      state.insert(state.end(), values.begin(), values.end());
    }
    return state;
  }

  void CheckState(const std::string& prefix, int64_t index, const EnvironmentRow& row,
                  double tolerance) {
    const std::vector<double> state = row.State();
    size_t begin = 0;
    for (const std::string& part : family_.parts) {
      const std::vector<double> expected = recording_.Row(prefix + part, index);
      WEFT_CHECK(begin + expected.size() <= state.size())
          << id_ << " has a state of " << state.size() << " numbers, not that of "
          << recording_.name();
      const auto got = std::span(state).subspan(begin, expected.size());
      comparison_.Check(prefix + part, got, expected, tolerance);
      begin += expected.size();
    }
  }

  void CheckObservation(const std::string& tensor, int64_t index, const EnvironmentRow& row,
                        double tolerance) {
    if (!recording_.Has(tensor)) return;
    const std::vector<double> expected = recording_.Row(tensor, index);
    if (recording_.IsFloat32(tensor)) {
      comparison_.CheckFloat32(tensor, row.Observation(), expected, tolerance);
    } else {
      comparison_.Check(tensor, row.Observation(), expected, tolerance);
    }
  }

  // What the step led to, in the tensors prefix + reward, terminated, obs and info.
  void CheckOutcome(const std::string& prefix, int64_t index, const EnvironmentRow& row,
                    double tolerance, double reward_tolerance, bool exact) {
    CheckObservation(prefix + "obs", index, row, tolerance);
    if (reward_tolerance > 0 || exact) {
      comparison_.Check(prefix + "reward", row.reward(),
                        recording_.Number(prefix + "reward", index), reward_tolerance);
    }
    if (exact && recording_.Has(prefix + "terminated")) {
      const bool terminated = row.type() == StepType::kLast && row.discount() == 0;
      comparison_.Check(prefix + "terminated", terminated,
                        recording_.Number(prefix + "terminated", index), 0);
    }
    const std::vector<double> info = row.Info();
    for (size_t i = 0; i < info.size(); ++i) {
      const std::string& name = row.spec().info[i];
      const size_t bracket = name.find('[');  // element 1 of a vector is NAME[1]
      const size_t element =
          bracket == std::string::npos ? 0 : std::stoul(name.substr(bracket + 1));
      const std::string tensor = prefix + "info." + name.substr(0, bracket);
      if (!recording_.Has(tensor)) continue;
      comparison_.Check(tensor, info[i], recording_.Row(tensor, index).at(element),
                        reward_tolerance);
    }
  }

  double Sensitivity(const std::string& tensor, int64_t index) const {
    return family_.chaotic && recording_.Has(tensor) ? recording_.Number(tensor, index) : 0;
  }

  // Single steps from step.state; `single` gives the action as f32 and compares with the tensors of
  // prefix.
  void Steps(EnvironmentRow& row, const std::string& prefix, bool single) {
    for (int64_t i = 0; i < recording_.Rows("step.action"); ++i) {
      row.SetState(State("step.", i));
      if (!single) CheckObservation("step.start_obs", i, row, 1e-12);
      row.Step(recording_.Action("step.action", i, single), rng_);
      const double sensitivity = Sensitivity("step.sensitivity", i);
      const double tolerance = single ? 1e-7 : family_.step + 1e4 * sensitivity;
      const double reward = single ? 1e-7 : family_.step_reward > 0 ? tolerance : 0;
      CheckState(prefix + "next_", i, row, tolerance);
      CheckOutcome(prefix, i, row, tolerance, reward, sensitivity < 1e-8);
    }
  }

  void SuttonBarto(EnvironmentRow& row) {
    for (int64_t i = 0; i < recording_.Rows("step.action"); ++i) {
      row.SetState(State("step.", i));
      row.Step(recording_.Action("step.action", i), rng_);
      comparison_.Check("step.reward_sutton_barto", row.reward(),
                        recording_.Number("step.reward_sutton_barto", i), 0);
    }
  }

  // Open-loop: only the first state of each rollout is given.
  void Rollouts(EnvironmentRow& row) {
    const std::string& prefix = family_.rollout;
    const std::vector<double> offset = recording_.All(prefix + "offset");
    for (size_t rollout = 0; rollout + 1 < offset.size(); ++rollout) {
      const auto index = static_cast<int64_t>(rollout);
      row.SetState(State(prefix + "start_", index));
      CheckObservation(prefix + "start_obs", index, row, 1e-12);
      const auto end = static_cast<int64_t>(offset[rollout + 1]);
      for (auto i = static_cast<int64_t>(offset[rollout]); i < end; ++i) {
        row.Step(recording_.Action(prefix + "action", i), rng_);
        const double sensitivity = Sensitivity(prefix + "sensitivity", i);
        const double tolerance = family_.rollout_base + 1e4 * sensitivity;
        // A classic reward changes up to some ten times as fast as the state.
        const double reward = family_.step_reward > 0 ? 10 * tolerance : 0;
        CheckState(family_.rollout_next, i, row, tolerance);
        CheckOutcome(prefix, i, row, tolerance, reward, sensitivity < 1e-8);
      }
    }
  }

  // The steps of classic rollouts one by one, each from the recorded state before it.
  void RolloutSteps(EnvironmentRow& row) {
    const std::vector<double> offset = recording_.All("ep.offset");
    for (size_t rollout = 0; rollout + 1 < offset.size(); ++rollout) {
      std::vector<double> state = State("ep.start_", static_cast<int64_t>(rollout));
      const auto end = static_cast<int64_t>(offset[rollout + 1]);
      for (auto i = static_cast<int64_t>(offset[rollout]); i < end; ++i) {
        row.SetState(state);
        row.Step(recording_.Action("ep.action", i), rng_);
        state = State("ep.", i);
        comparison_.Check("ep.state (step by step)", row.State(), state, family_.step);
      }
    }
  }

  Recording recording_;
  Family family_;
  Comparison comparison_;
  std::string id_;
  EnvironmentEntry entry_;
  Rng rng_{0, Purpose::kTest};
};

// "" when the file can be verified, else why not.
std::string Obstacle(const std::string& path) {
  const MappedFile file(path);
  const SafetensorsHeader header = ParseSafetensorsHeader(file.bytes(), path);
  if (header.metadata.contains("sigmoids")) return "";
  // Of one file for many tasks: these are there together, or not at all.
  std::string id = IdOf(header.metadata);
  if (id == kSuiteReturns) id = "dm_control/walker-walk";
  if (id == kParticleReturns) id = "simple_v3";
  if (id.empty()) return "names no environment";
  const EnvironmentEntry* entry = Environments().Find(id);
  return entry == nullptr ? id + " is not registered" : WhyUnavailable(*entry);
}

}  // namespace

VerifyReport VerifyEnvironmentFile(const std::string& id, const std::string& path) {
  Recording recording(path);
  if (HoldsTolerances(recording)) {
    Comparison comparison(recording.name());
    VerifyTolerances(recording, comparison);
    return comparison.Report();
  }
  if (HoldsSuiteReturns(recording)) {
    Comparison comparison(recording.name());
    VerifySuiteReturns(recording, comparison);
    return comparison.Report();
  }
  if (HoldsParticleReturns(recording)) {
    Comparison comparison(recording.name());
    VerifyParticleReturns(recording, comparison);
    return comparison.Report();
  }
  return Verifier(id, std::move(recording)).Run();
}

VerifyReport VerifyEnvironmentFolder(const std::string& folder) {
  VerifyReport report;
  for (const std::string& name : ListDirectory(folder)) {
    if (!name.ends_with(".safetensors")) continue;
    const std::string path = folder + "/" + name;
    if (const std::string obstacle = Obstacle(path); !obstacle.empty()) {
      report.skipped.push_back(name + ": " + obstacle);
    } else {
      Merge(VerifyEnvironmentFile("", path), report);
    }
  }
  return report;
}

}  // namespace weft
