// What runs do when something is wrong with an environment or the numbers: one error that names the
// place, and nothing non-finite is kept.
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <stdexcept>

#include "environments/register_environment.h"
#include "tests/algorithms/run_algorithm.h"

namespace weft {
namespace {

// Goes wrong in the way asked for at its tenth step in all.
class Faulty final : public Environment {
 public:
  struct Arguments : Config {
    std::string fault = "none";
    void Fields(FieldVisitor& v) override {
      v.Choice("fault", fault, {"none", "reward", "observation", "throw"}, "what goes wrong");
    }
  };

  explicit Faulty(const Arguments& arguments) : fault_(arguments.fault) {
    spec_ = {.id = "Faulty-v0",
             .observation = {{.name = "observation", .shape = {1}, .low = {-1}, .high = {1}}},
             .action = Discrete{.n = 2}};
  }

  const EnvironmentSpec& spec() const override { return spec_; }
  void Reset(Rng&, StepRow out) override {
    out.First();
    Observe(out.observation);
  }
  void Step(ActionRow, Rng&, StepRow out) override {
    const bool now = ++steps_ == 10;
    if (now && fault_ == "throw") throw std::runtime_error("the robot fell off the table");
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    out.Next(now && fault_ == "reward" ? kNan : 1, steps_ % 4 == 0);
    out.observation.Leaf<float>()[0] =
        now && fault_ == "observation" ? static_cast<float>(kNan) : 0;
  }
  void Observe(ObservationRow out) override { out.Leaf<float>()[0] = 0; }
  void GetState(std::vector<double>& state) const override {
    state = {static_cast<double>(steps_)};
  }
  void SetState(std::span<const double> state) override { steps_ = static_cast<int64_t>(state[0]); }
  void Save(Writer& out) const override { out.Write(steps_); }
  void Load(Reader& in) override { steps_ = in.Read<int64_t>(); }

 private:
  EnvironmentSpec spec_;
  std::string fault_;
  int64_t steps_ = 0;
};
WEFT_REGISTER_ENVIRONMENT(Faulty, "Faulty-v0", "goes wrong when asked to");

// Counts from -1, as some spaces do, and refuses foreign actions. Always taking +1 for ten steps
// gives 10.
class Shifted final : public Environment {
 public:
  struct Arguments : Config {
    bool two = false;
    void Fields(FieldVisitor& v) override {
      v.Field("two", two, "two actions, from -1 and from 5");
    }
  };

  explicit Shifted(const Arguments& arguments) : two_(arguments.two) {
    spec_ = {.id = "Shifted-v0",
             .observation = {{.name = "observation", .shape = {1}, .low = {0}, .high = {1}}},
             .action = two_ ? Space(MultiDiscrete{.n = {3, 2}, .start = {-1, 5}})
                            : Space(Discrete{.n = 3, .start = -1}),
             .time_limit = 10};
  }

  const EnvironmentSpec& spec() const override { return spec_; }
  void Reset(Rng&, StepRow out) override {
    out.First();
    Observe(out.observation);
  }
  void Step(ActionRow action, Rng&, StepRow out) override {
    WEFT_CHECK(action.index(0) >= -1 && action.index(0) <= 1) << "a foreign action";
    if (two_) {
      WEFT_CHECK(action.index(1) == 5 || action.index(1) == 6) << "a foreign action";
    }
    out.Next(
        static_cast<double>(action.index(0)) + (two_ ? static_cast<double>(action.index(1)) : 0),
        false);
    Observe(out.observation);
  }
  void Observe(ObservationRow out) override { out.Leaf<float>()[0] = 1; }
  void GetState(std::vector<double>& state) const override { state.clear(); }
  void SetState(std::span<const double>) override {}
  void Save(Writer&) const override {}
  void Load(Reader&) override {}

 private:
  EnvironmentSpec spec_;
  bool two_;
};
WEFT_REGISTER_ENVIRONMENT(Shifted, "Shifted-v0", "actions that do not count from 0");

std::string ConfigFor(const std::string& algorithm, const std::string& environment) {
  return "algorithm: " + algorithm +
         "\nseed: 1\ntotal_steps: 5000\nthreads: 1\nenvironment: " + environment +
         "\nevaluation: {every: 1000000}\nnetwork: {hidden: [16]}\nlearning_rate: 3e-3\n" +
         (algorithm == "ppo" ? "rollout_steps: 16\nminibatch: 32\n"
                             : "train_every: 4\ntarget_every: 50\ngamma: 0.5\n"
                               "replay: {capacity: 5000, batch_size: 32, min_size: 100}\n");
}

struct Fault {
  const char* kind;
  ErrorCode code;
  const char* says;
};

class EnvironmentFault : public testing::TestWithParam<std::tuple<const char*, Fault>> {};

TEST_P(EnvironmentFault, StopsTheRunNamingEnvironmentRowAndSeed) {
  const auto& [algorithm, fault] = GetParam();
  for (const char* placement : {"serial", "threads"}) {
    const auto config = AlgorithmFrom(
        ConfigFor(algorithm,
                  std::string("{id: Faulty-v0, rows: 2, arguments: {fault: ") + fault.kind + "}}"),
        {std::string("placement=") + placement, "threads=2"});
    try {
      RunAlgorithm(*config);
      FAIL() << "the fault went unseen";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), fault.code) << error.what();
      for (const char* word :
           {"environment[", "step", "Faulty-v0", "row 0", "seed 1", fault.says}) {
        EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
            << word << " in: " << error.what();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, EnvironmentFault,
    testing::Combine(testing::Values("ppo", "dqn"),
                     testing::Values(Fault{"reward", ErrorCode::kDiverged, "reward"},
                                     Fault{"observation", ErrorCode::kDiverged, "observation"},
                                     Fault{"throw", ErrorCode::kInternal, "fell off the table"})));

TEST(Divergence, NamesTheLearnerTheStepAndTheOp) {
  for (const char* algorithm : {"ppo", "dqn"}) {
    const auto config = AlgorithmFrom(ConfigFor(algorithm, "{id: Probe-Policy-v0, rows: 2}"),
                                      {"learning_rate=1e30"});
    try {
      RunAlgorithm(*config);
      FAIL() << "a learning rate of 1e30 went unseen";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDiverged);
      EXPECT_NE(std::string(error.what()).find("learner[0], step"), std::string::npos)
          << error.what();
    }
  }
}

class ShiftedActions : public testing::TestWithParam<const char*> {};

TEST_P(ShiftedActions, AreShiftedOnceInActingWarmUpAndEvaluation) {
  const auto config = AlgorithmFrom(ConfigFor(GetParam(), "{id: Shifted-v0, rows: 2}"));
  EXPECT_EQ(EvaluateRun(*config, RunAlgorithm(*config)).mean, 10);
}
INSTANTIATE_TEST_SUITE_P(Algorithms, ShiftedActions, testing::Values("ppo", "dqn"));

TEST(ShiftedActions, OfSeveralPartsToo) {
  const auto config =
      AlgorithmFrom(ConfigFor("ppo", "{id: Shifted-v0, rows: 2, arguments: {two: true}}"));
  EXPECT_EQ(EvaluateRun(*config, RunAlgorithm(*config)).mean, 70);
}

}  // namespace
}  // namespace weft
