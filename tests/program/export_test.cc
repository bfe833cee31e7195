// Exported policies act in onnxruntime as they do here: trained for a moment, exported by the
// program, compared on random observations.
#include <gtest/gtest.h>
#include <set>

#include "base/file.h"
#include "program/policy.h"
#include "tests/nn/onnx_runtime.h"
#include "tests/program/weft_process.h"

namespace weft {
namespace {

constexpr int64_t kRows = 64;

// Large enough that normalisers and action bounds clip; of integers all values.
Tensor Observations(const Policy& policy, Rng& rng) {
  const Leaf& leaf = policy.spec().leaf("observation");
  Tensor x = Tensor::Empty(leaf.shape.Prepend(kRows), leaf.dtype);
  if (leaf.dtype == DType::kInt64) {
    const auto count = static_cast<uint64_t>(leaf.high[0] - leaf.low[0]) + 1;
    for (int64_t& value : x.data<int64_t>()) {
      value = static_cast<int64_t>(leaf.low[0]) + static_cast<int64_t>(rng.Below(count));
    }
    return x;
  }
  rng.FillNormal(x.data<float>());
  for (float& value : x.data<float>()) value *= 5;
  return x;
}

// Of every row two actions or more are legal; undefined when the environment has no mask.
Tensor Masks(const Policy& policy, Rng& rng) {
  if (!policy.spec().Has("action_mask")) return {};
  const int64_t actions = policy.spec().leaf("action_mask").shape.elements();
  Tensor mask = Tensor::Zeros({kRows, actions}, DType::kUInt8);
  for (int64_t row = 0; row < kRows; ++row) {
    Tensor of_row = mask.Row(row);
    const auto first = rng.Below(static_cast<uint64_t>(actions) - 1);
    of_row.data<uint8_t>()[first] = of_row.data<uint8_t>()[first + 1] = 1;
  }
  return mask;
}

// Trains, exports and loads one policy.
class Exported {
 public:
  explicit Exported(const std::string& yaml) {
    const WeftProcess weft;
    weft.Write("config.yaml", "threads: 1\nevaluation: {final_episodes: 1, every: 1e9}\n" + yaml);
    for (const char* command : {"train config.yaml run=one", "export one policy.onnx"}) {
      const auto result = weft.Run(command);
      if (result.status != 0) throw Error(ErrorCode::kInternal, result.error);
    }
    model = weft.Read("policy.onnx");
    policy.emplace(Policy::Load(weft.folder() + "/runs/one", kRows));
  }

  std::string model;
  std::optional<Policy> policy;
};

// Returns the values that occur in the actions.
std::set<double> ExpectEqualActions(const std::string& yaml) {
  Exported exported(yaml);
  Rng rng(1, Purpose::kTest);
  const Tensor x = Observations(*exported.policy, rng);
  const Tensor mask = Masks(*exported.policy, rng);
  const Tensor action = exported.policy->Act(x, {}, mask);
  std::set<double> different;
  for (int64_t i = 0; i < action.elements(); ++i) {
    different.insert(action.dtype() == DType::kInt64
                         ? static_cast<double>(action.data<int64_t>()[static_cast<size_t>(i)])
                         : action.data<float>()[static_cast<size_t>(i)]);
  }
  EXPECT_GE(different.size(), 2u) << "a constant policy shows nothing";
  TensorMap values;
  values.Set("observation", x);
  values.Set("action", action);
  if (mask.defined()) {
    values.Set("action_mask", mask);
    for (int64_t row = 0; row < kRows; ++row) {
      const auto chosen = static_cast<size_t>(action.Row(row).Item());
      EXPECT_EQ(mask.Row(row).data<uint8_t>()[chosen], 1) << "row " << row;
    }
  }
  ExpectOnnxRuntimeAgrees(exported.model, values, 1e-5);
  return different;
}

constexpr char kPpo[] =
    "algorithm: ppo\ntotal_steps: 2000\nrollout_steps: 64\nminibatch: 64\nepochs: 4\n";

TEST(Export, PpoWithANormaliserActsAsHere) {
  ExpectEqualActions(std::string(kPpo) +
                     "environment: {id: CartPole-v1, rows: 4, normalise_observation: {enabled: "
                     "true, clip: 2}}\n");
}

TEST(Export, PpoKeepsTheBoundsOfActions) {
  const auto actions = ExpectEqualActions(
      std::string(kPpo) +
      "environment: {id: MountainCarContinuous-v0, rows: 4}\nlearning_rate: 0.1\n");
  EXPECT_TRUE(actions.contains(1) || actions.contains(-1)) << "no action is beyond its bounds";
}

TEST(Export, DuelingDqnActsAsHere) {
  ExpectEqualActions(
      "algorithm: dqn\ntotal_steps: 1000\nenvironment: {id: CartPole-v1}\ndueling: true\n"
      "replay: {capacity: 1000, min_size: 100, batch_size: 32}\nnetwork: {hidden: [32, 32]}\n");
}

TEST(Export, IntegerObservationsAreOneHotAsHere) {
  ExpectEqualActions(std::string(kPpo) +
                     "environment: {id: FrozenLake-v1, rows: 4, normalise_observation: {enabled: "
                     "true}}\nlearning_rate: 0.02\n");
}

TEST(Export, SacActsAsHere) {
  ExpectEqualActions(
      "algorithm: sac\ntotal_steps: 600\nenvironment: {id: Pendulum-v1}\n"
      "replay: {capacity: 1000, min_size: 100, batch_size: 32}\nnetwork: {hidden: [32, 32]}\n");
}

constexpr char kMaskedTaxi[] = "environment: {id: Taxi-v4, arguments: {action_mask: true}}\n";

TEST(Export, PpoObeysTheActionMaskAsHere) {
  ExpectEqualActions(std::string(kPpo) + kMaskedTaxi);
}

TEST(Export, DqnObeysTheActionMaskAsHere) {
  ExpectEqualActions(
      std::string("algorithm: dqn\ntotal_steps: 1000\n") + kMaskedTaxi +
      "replay: {capacity: 1000, min_size: 100, batch_size: 32}\nnetwork: {hidden: [32, 32]}\n");
}

class RecurrentExport : public testing::TestWithParam<std::string> {};

TEST_P(RecurrentExport, RemembersAsHere) {
  Exported exported(std::string(kPpo) + "environment: {id: Probe-Memory-v0, rows: 4, arguments: " +
                    "{continuous: true}}\nnetwork: {recurrent: " + GetParam() +
                    ", recurrent_size: 16}\n");
  Policy& policy = *exported.policy;
  Rng rng(1, Purpose::kTest);
  for (int step = 0; step < 2; ++step) policy.Act(Observations(policy, rng));
  // The third step: its state goes in, and comes out changed.
  TensorMap values;
  values.Merge("state", policy.agent().State().Extract("policy"));
  const Tensor x = Observations(policy, rng);
  values.Set("observation", x);
  values.Set("action", policy.Act(x));
  values.Merge("next_state", policy.agent().State().Extract("policy"));
  ExpectOnnxRuntimeAgrees(exported.model, values, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Cells, RecurrentExport, testing::Values("lstm", "gru"));

TEST(LoadedPolicy, ForgetsAtTheFirstStepOfAnEpisode) {
  Exported exported(std::string(kPpo) + "environment: {id: Probe-Memory-v0, rows: 4, arguments: " +
                    "{continuous: true}}\nnetwork: {recurrent: gru, recurrent_size: 16}\n");
  Policy& policy = *exported.policy;
  Rng rng(1, Purpose::kTest);
  const Tensor x = Observations(policy, rng), y = Observations(policy, rng);
  const Tensor fresh = policy.Act(y).Clone();
  Tensor first = Tensor::Zeros({kRows}, DType::kUInt8);
  policy.Act(x);
  first.data<uint8_t>()[3] = 1;
  const Tensor later = policy.Act(y, first);
  for (size_t row = 0; row < static_cast<size_t>(kRows); ++row) {
    const bool same = fresh.data<float>()[row] == later.data<float>()[row];
    EXPECT_EQ(same, row == 3) << "row " << row;
  }
}

TEST(LoadedPolicy, RefusesObservationsOfAnotherShape) {
  Exported exported(std::string(kPpo) + "environment: {id: CartPole-v1, rows: 4}\n");
  EXPECT_THROW(exported.policy->Act(Tensor::Zeros({kRows, 3})), Error);
  EXPECT_THROW(exported.policy->Act(Tensor::Zeros({1, 4})), Error);
}

}  // namespace
}  // namespace weft
