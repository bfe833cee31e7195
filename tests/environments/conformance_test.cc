#include "environments/verify/conformance.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <gtest/gtest.h>

#include "allocation_count.h"
#include "counter_environment.h"
#include "environments/availability.h"

namespace weft {
namespace {

class Conformance : public testing::TestWithParam<std::string> {};

TEST_P(Conformance, HoldsEveryClaim) {
  if (const std::string why = WhyUnavailable(Environments().At(GetParam())); !why.empty())
    GTEST_SKIP() << why;
  const auto checks = CheckConformance(GetParam(), AllocationCount);
  EXPECT_EQ(checks.size(), 11u);
  for (const ConformanceCheck& check : checks) EXPECT_EQ(check.problem, "") << check.claim;
}
INSTANTIATE_TEST_SUITE_P(Registry, Conformance, testing::ValuesIn(Environments().Names()),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

// Claims that an environment breaks, to show that each check can fail.
enum class Fault {
  kId,
  kBounds,
  kDeterministicReset,
  kForgetsOnSave,
  kAllocates,
  kSharesState,
  kDiscount
};
std::atomic<int64_t> shared_counter = 0;

class Broken final : public Environment {
 public:
  struct Arguments : NoArguments {
    explicit Arguments(Fault broken_fault) : fault(broken_fault) {}
    Fault fault;
  };
  explicit Broken(const Arguments& arguments)
      : fault_(arguments.fault), spec_(std::make_unique<EnvironmentSpec>()) {
    *spec_ = {.id = fault_ == Fault::kId ? "Other-v0" : "Broken-v0",
              .observation = {{.name = "observation", .shape = {1}, .low = {0}, .high = {1}}},
              .action = Discrete{.n = 2},
              .time_limit = 20};
  }
  const EnvironmentSpec& spec() const override { return *spec_; }
  void Reset(Rng& rng, StepRow out) override {
    value_ = rng.UniformFloat();
    if (fault_ == Fault::kDeterministicReset) value_ = 0.5f;
    Observe(out.observation);
    out.First();
  }
  void Step(ActionRow, Rng& rng, StepRow out) override {
    if (fault_ == Fault::kAllocates) keep_.assign(keep_.size() + 1000, 0);
    value_ = fault_ == Fault::kBounds ? 1.5f : value_ * 0.5f + 0.5f * rng.UniformFloat();
    if (fault_ == Fault::kSharesState) value_ = static_cast<float>(++shared_counter % 1000) / 1000;
    Observe(out.observation);
    out.Next(1, false);
    if (fault_ == Fault::kDiscount) out.discount = 0.5;
  }
  void GetState(std::vector<double>& state) const override { state = {value_}; }
  void SetState(std::span<const double> state) override { value_ = static_cast<float>(state[0]); }
  void Observe(ObservationRow out) override { out.Leaf<float>()[0] = value_; }
  void Save(Writer& out) const override {
    out.Write(fault_ == Fault::kForgetsOnSave ? 0.0f : value_);
  }
  void Load(Reader& in) override { value_ = in.Read<float>(); }

 private:
  Fault fault_;
  float value_ = 0;
  std::vector<char> keep_;
  std::unique_ptr<EnvironmentSpec> spec_;
};

TEST(CheckConformance, FindsEachFault) {
  const std::pair<Fault, const char*> faults[] = {
      {Fault::kId, "the spec is sound"},
      {Fault::kBounds, "steps follow the contract and observations keep their bounds"},
      {Fault::kDiscount, "steps follow the contract and observations keep their bounds"},
      {Fault::kDeterministicReset, "resets spread"},
      {Fault::kForgetsOnSave, "a saved state continues bit for bit"},
      {Fault::kAllocates, "a step allocates nothing"},
      {Fault::kSharesState, "a seed replays"},
      {Fault::kSharesState, "stepped each for itself, in every autoreset mode, it does the same"}};
  int number = 0;
  for (const auto& [fault, claim] : faults) {
    // The registry is filled before main as a rule; this name is looked up by this test alone.
    const std::string id = "Broken-v0-" + std::to_string(number++);
    Environments().Add(id, MakeEnvironmentEntry<Broken>("a broken environment", fault));
    bool found = false;
    for (const ConformanceCheck& check : CheckConformance(id, AllocationCount)) {
      found |= check.claim == claim && !check.problem.empty();
    }
    EXPECT_TRUE(found) << claim;
  }
}

TEST(CheckConformance, RefusesAnUnknownEnvironment) {
  EXPECT_THROW(CheckConformance("CartPole-v9"), Error);
}

}  // namespace
}  // namespace weft
