#include "nn/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "base/check.h"
#include "nn/safetensors.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

class Pair final : public Module {
 public:
  Pair(float weight, float bias)
      : weight_(Tensor::Full({2, 3}, weight).ToLayout(Layout::kPanels)),
        bias_(Tensor::Full({3}, bias)) {}
  void Collect(std::string_view prefix, std::vector<NamedParameter>& out) override {
    AddParameter(prefix, "weight", weight_, out);
    AddParameter(prefix, "bias", bias_, out);
  }
  Tensor weight_, bias_;
};

TEST(Module, ParametersAreNamedByPrefix) {
  Pair pair(1, 2);
  const auto parameters = pair.Parameters("policy.");
  ASSERT_EQ(parameters.size(), 2u);
  EXPECT_EQ(parameters[0].name.text(), "policy.weight");
  EXPECT_EQ(parameters[1].tensor, &pair.bias_);
  EXPECT_EQ(CountElements(parameters), 9);
}

TEST(Module, StateSurvivesAFileAndALayout) {
  Pair from(1, 2), to(0, 0);
  from.weight_.data<float>()[1] = 7;
  const std::string bytes = ToSafetensorsBytes(CopyState(from.Parameters()));
  const TensorMap read =
      ParseSafetensors({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "bytes");
  LoadState(to.Parameters(), read);
  EXPECT_EQ(to.weight_.layout(), Layout::kPanels);
  EXPECT_EQ(Hash(CopyState(to.Parameters())), Hash(CopyState(from.Parameters())));
}

TEST(Module, LoadListsEveryFaultAndWritesNothing) {
  Pair pair(1, 2);
  TensorMap state;
  state.Set("weight", Tensor::Full({3, 2}, 5));
  state.Set("extra", Tensor::Scalar(1));
  try {
    LoadState(pair.Parameters(), state);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("weight is F32 [3, 2], not F32 [2, 3]"));
    EXPECT_THAT(error.what(), HasSubstr("missing bias"));
    EXPECT_THAT(error.what(), HasSubstr("unexpected extra"));
  }
  EXPECT_EQ(pair.weight_.data<float>()[0], 1);
}

TEST(Module, LoadRefusesWhatIsNotFinite) {
  Pair pair(1, 2);
  TensorMap state = CopyState(pair.Parameters());
  state.At("bias").data<float>()[1] = std::numeric_limits<float>::quiet_NaN();
  try {
    LoadState(pair.Parameters(), state);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_THAT(error.what(), HasSubstr("bias [3] holds a value that is not finite"));
  }
  EXPECT_EQ(pair.bias_.data<float>()[1], 2);
}

TEST(Module, CopyAndLerpWorkInPlace) {
  Pair online(1, 2), target(0, 0);
  const std::byte* place = target.weight_.raw();
  LerpParameters(0.25f, online.Parameters(), target.Parameters());
  EXPECT_EQ(target.weight_.data<float>()[0], 0.25f);
  EXPECT_EQ(target.bias_.data<float>()[2], 0.5f);
  CopyParameters(online.Parameters(), target.Parameters());
  EXPECT_EQ(target.bias_.data<float>()[0], 2);
  EXPECT_EQ(target.weight_.raw(), place);
}

TEST(Module, SnapshotsAreApartFromTheParametersAndAdoptedWithoutACopy) {
  Pair learner(1, 2), actor(0, 0);
  SnapshotPool pool(learner.Parameters());
  AdoptSnapshot(actor.Parameters(), pool.Take());
  learner.bias_.Fill(9);
  EXPECT_EQ(actor.bias_.data<float>()[0], 2);
  const TensorMap snapshot = pool.Take();
  AdoptSnapshot(actor.Parameters(), snapshot);
  EXPECT_EQ(actor.bias_.raw(), snapshot.At("bias").raw());
  EXPECT_EQ(actor.bias_.data<float>()[0], 9);
}

TEST(Module, SnapshotsThatNobodyHoldsAreUsedAgain) {
  Pair learner(1, 2), actor(0, 0);
  SnapshotPool pool(learner.Parameters());
  AdoptSnapshot(actor.Parameters(), pool.Take());
  const std::byte* first = actor.bias_.raw();
  AdoptSnapshot(actor.Parameters(), pool.Take());
  const std::byte* second = actor.bias_.raw();
  EXPECT_NE(first, second);
  AdoptSnapshot(actor.Parameters(), pool.Take());
  EXPECT_EQ(actor.bias_.raw(), first);
}

TEST(Module, AdoptRefusesASnapshotOfAnotherModule) {
  Pair learner(1, 2), actor(0, 0);
  SnapshotPool pool(learner.Parameters("other."));
  EXPECT_THROW(AdoptSnapshot(actor.Parameters(), pool.Take()), Error);
}

}  // namespace
}  // namespace weft
