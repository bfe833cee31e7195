#include <gtest/gtest.h>

#include "actors/rollout_recorder.h"
#include "actors/step_recorder.h"

namespace weft {
namespace {

// Step t of two rows: observation t and t + 100, reward t.
TensorMap StepAt(int t) {
  const auto value = static_cast<float>(t);
  TensorMap step;
  step.Set("observation", Tensor::From<float>({2, 1}, {value, value + 100}));
  step.Set("reward", Tensor::From<float>({2}, {value, value}));
  step.Set("discount", Tensor::From<float>({2}, {1, 1}));
  step.Set("type", Tensor::From<uint8_t>({2}, {1, 1}));
  return step;
}

TensorMap ChosenAt(int t) {
  TensorMap chosen;
  chosen.Set("action", Tensor::From<int64_t>({2}, {t, t + 1000}));
  chosen.Set("policy_state.hidden", Tensor::From<float>({2, 1}, {float(t), float(t)}));
  return chosen;
}

template <class T>
std::vector<T> Values(const Tensor& tensor) {
  const auto data = tensor.data<T>();
  return {data.begin(), data.end()};
}

TEST(RolloutRecorder, RewardBelongsToTheTransitionAndTheLastObservationIsThere) {
  RolloutRecorder recorder(/*steps=*/2, /*rows=*/2, /*first_row=*/4);
  recorder.Record(StepAt(0), ChosenAt(0));
  recorder.Record(StepAt(1), ChosenAt(1));
  const TensorMap rollout = recorder.Flush(StepAt(2));
  EXPECT_EQ(rollout.At("observation").shape(), Shape({3, 2, 1}));
  EXPECT_EQ(Values<float>(rollout.At("observation")), (std::vector<float>{0, 100, 1, 101, 2, 102}));
  EXPECT_EQ(Values<float>(rollout.At("reward")), (std::vector<float>{1, 1, 2, 2}));
  EXPECT_EQ(Values<int64_t>(rollout.At("action")), (std::vector<int64_t>{0, 1000, 1, 1001}));
  EXPECT_EQ(Values<int64_t>(rollout.At("row_id")), (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(rollout.At("policy_state.hidden").shape(), Shape({1, 2, 1}));
  EXPECT_EQ(Values<float>(rollout.At("policy_state.hidden")), (std::vector<float>{0, 0}))
      << "before step 0";
}

TEST(RolloutRecorder, TheNextRolloutStartsWithThePendingStep) {
  RolloutRecorder recorder(2, 2, 0);
  recorder.Record(StepAt(0), ChosenAt(0));
  recorder.Record(StepAt(1), ChosenAt(1));
  const TensorMap first = recorder.Flush(StepAt(2));
  recorder.Record(StepAt(2), ChosenAt(2));
  recorder.Record(StepAt(3), ChosenAt(3));
  const TensorMap second = recorder.Flush(StepAt(4));
  EXPECT_EQ(Values<float>(second.At("observation")), (std::vector<float>{2, 102, 3, 103, 4, 104}));
  EXPECT_EQ(Values<float>(first.At("observation"))[0], 0)
      << "a rollout that was handed on is not written again";
}

TEST(RolloutRecorder, ResumesInTheMiddleOfARollout) {
  RolloutRecorder first(2, 2, 0), second(2, 2, 0);
  first.Record(StepAt(0), ChosenAt(0));
  second.Load(first.Save());
  for (RolloutRecorder* recorder : {&first, &second}) recorder->Record(StepAt(1), ChosenAt(1));
  EXPECT_EQ(Hash(first.Flush(StepAt(2))), Hash(second.Flush(StepAt(2))));
}

TEST(StepRecorder, EachStepIsInOnePieceWithTheActionThatLedToIt) {
  StepRecorder recorder(/*steps=*/2);
  recorder.Record(StepAt(0), ChosenAt(10));
  recorder.Record(StepAt(1), ChosenAt(11));
  const TensorMap first = recorder.Flush(StepAt(2));
  EXPECT_EQ(Values<float>(first.At("observation")), (std::vector<float>{0, 100, 1, 101, 2, 102}));
  EXPECT_EQ(Values<int64_t>(first.At("action")), (std::vector<int64_t>{0, 0, 10, 1010, 11, 1011}));
  recorder.Record(StepAt(2), ChosenAt(12));
  recorder.Record(StepAt(3), ChosenAt(13));
  const TensorMap second = recorder.Flush(StepAt(4));
  EXPECT_EQ(Values<float>(second.At("observation")), (std::vector<float>{3, 103, 4, 104}));
  EXPECT_EQ(Values<int64_t>(second.At("action")), (std::vector<int64_t>{12, 1012, 13, 1013}));
}

TEST(StepRecorder, ResumesInTheMiddleOfAPiece) {
  StepRecorder first(2), second(2);
  first.Record(StepAt(0), ChosenAt(0));
  second.Load(first.Save());
  for (StepRecorder* recorder : {&first, &second}) recorder->Record(StepAt(1), ChosenAt(1));
  EXPECT_EQ(Hash(first.Flush(StepAt(2))), Hash(second.Flush(StepAt(2))));
}

}  // namespace
}  // namespace weft
