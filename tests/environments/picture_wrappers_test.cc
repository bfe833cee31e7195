// Expected values: OpenCV 5.0.0's resize with INTER_AREA and Gymnasium 1.4.0's
// GrayscaleObservation of the same formula.
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "allocation_count.h"
#include "base/thread_pool.h"
#include "environments/register_environment.h"
#include "environments/wrappers.h"

namespace weft {
namespace {

using testing::ElementsAre;

constexpr int64_t kHeight = 10, kWidth = 14;

uint8_t PixelAt(int64_t y, int64_t x, int64_t c) {
  return static_cast<uint8_t>((37 * y * y + 11 * x * (y + 1) + 59 * c) % 256);
}

// Observes one picture [H, W, 3], or [3, H, W], and a number.
class Picture final : public Environment {
 public:
  struct Arguments : NoArguments {
    bool channels_first = false;
    double high = 255;  // of the picture; less: codes
  };
  explicit Picture(const Arguments& arguments)
      : channels_first_(arguments.channels_first), spec_(std::make_unique<EnvironmentSpec>()) {
    *spec_ = {.id = "Picture-v0",
              .observation = {{.name = "number", .shape = {}},
                              {.name = "picture",
                               .shape = channels_first_ ? Shape{3, kHeight, kWidth}
                                                        : Shape{kHeight, kWidth, 3},
                               .dtype = DType::kUInt8,
                               .low = {0},
                               .high = {arguments.high}}},
              .action = Discrete{.n = 2},
              .time_limit = 3};
  }
  const EnvironmentSpec& spec() const override { return *spec_; }
  void Reset(Rng&, StepRow out) override {
    Observe(out.observation);
    out.First();
  }
  void Step(ActionRow, Rng&, StepRow out) override {
    Observe(out.observation);
    out.Next(1, false);
  }
  void GetState(std::vector<double>& state) const override { state = {}; }
  void SetState(std::span<const double>) override {}
  void Observe(ObservationRow out) override {
    *out.Leaf<float>(0) = 7;
    uint8_t* to = out.Leaf<uint8_t>(1);
    for (int64_t y = 0; y < kHeight; ++y) {
      for (int64_t x = 0; x < kWidth; ++x) {
        for (int64_t c = 0; c < 3; ++c)
          to[channels_first_ ? (c * kHeight + y) * kWidth + x : (y * kWidth + x) * 3 + c] =
              PixelAt(y, x, c);
      }
    }
  }

 private:
  bool channels_first_;
  std::unique_ptr<EnvironmentSpec> spec_;
};

std::unique_ptr<BatchEnvironment> Pictures(bool channels_first, int64_t rows = 2,
                                           double high = 255) {
  Picture::Arguments arguments;
  arguments.channels_first = channels_first;
  arguments.high = high;
  return std::make_unique<BatchOf<Picture>>(arguments, BatchOptions{.rows = rows});
}

// The picture of the last row after a step, [C, H, W].
Tensor Shown(BatchEnvironment& batch) {
  TimeStep step = batch.MakeTimeStep();
  batch.Reset(step);
  batch.Step(Tensor::Zeros({batch.rows()}, DType::kInt64), step);
  EXPECT_EQ(step.observation.At("number").data<float>()[0], 7) << "other leaves stay";
  EXPECT_EQ(step.reward.data<float>()[1], 1);
  return step.observation.At("picture").Row(batch.rows() - 1).Clone();
}

void ExpectWithinOne(const Tensor& plane, const std::vector<int>& expected) {
  const auto pixels = plane.data<uint8_t>();
  ASSERT_EQ(pixels.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_LE(std::abs(pixels[i] - expected[i]), 1) << "pixel " << i;
}

TEST(Resize, IsWithinOneOfOpenCvsAreas) {
  for (const bool channels_first : {false, true}) {
    const auto batch = Resize(Pictures(channels_first), 6, 4);
    EXPECT_EQ(batch->spec().leaf("picture").shape, Shape({3, 4, 6}));
    const Tensor picture = Shown(*batch);
    ExpectWithinOne(picture.Row(0), {59,  89,  98,  146, 118, 90,  125, 187, 95,  134, 123, 111,
                                     127, 100, 117, 146, 126, 151, 101, 135, 125, 144, 98,  139});
    ExpectWithinOne(picture.Row(2), {125, 171, 128, 132, 156, 157, 163, 93,  155, 121, 131, 164,
                                     135, 145, 111, 125, 171, 108, 110, 136, 119, 123, 142, 140});
  }
}

TEST(Resize, AveragesFourPointsWhenItHalves) {
  const Tensor picture = Shown(*Resize(Pictures(true), 7, 5));
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t y = 0; y < 5; ++y) {
      for (int64_t x = 0; x < 7; ++x) {
        const int sum = PixelAt(2 * y, 2 * x, c) + PixelAt(2 * y, 2 * x + 1, c) +
                        PixelAt(2 * y + 1, 2 * x, c) + PixelAt(2 * y + 1, 2 * x + 1, c);
        const int got = picture.Row(c).Row(y).data<uint8_t>()[static_cast<size_t>(x)];
        EXPECT_LE(std::abs(4 * got - sum), 2) << c << " " << y << " " << x;
      }
    }
  }
}

TEST(Resize, LeavesAPictureOfItsSizeAsItIs) {
  const Tensor picture = Shown(*Resize(Pictures(false), kWidth, kHeight));
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t y = 0; y < kHeight; ++y) {
      for (int64_t x = 0; x < kWidth; ++x)
        ASSERT_EQ(picture.Row(c).Row(y).data<uint8_t>()[static_cast<size_t>(x)], PixelAt(y, x, c));
    }
  }
}

TEST(Resize, IsTheSameOnThreads) {
  ThreadPool pool(3);
  const Tensor one = Shown(*Resize(Pictures(true, 7), 6, 4));
  const Tensor many = Shown(*Resize(Pictures(true, 7), 6, 4, &pool));
  EXPECT_TRUE(std::ranges::equal(one.data<uint8_t>(), many.data<uint8_t>()));
}

TEST(Resize, RefusesToEnlargeAndWhatIsNoPicture) {
  EXPECT_THROW(Resize(Pictures(true), kWidth + 1, 4), ConfigProblem);
  EXPECT_THROW(Resize(Pictures(true, 2, 10), 4, 4), ConfigProblem);  // codes from 0 to 10
}

TEST(Grayscale, WeighsColoursAsGymnasiumDoes) {
  for (const bool channels_first : {false, true}) {
    const auto batch = Grayscale(Pictures(channels_first));
    EXPECT_EQ(batch->spec().leaf("picture").shape, Shape({1, kHeight, kWidth}));
    const Tensor picture = Shown(*batch).Row(0);
    EXPECT_THAT(picture.Row(0).data<uint8_t>(),
                ElementsAre(50, 61, 72, 83, 94, 105, 116, 127, 138, 149, 160, 171, 182, 175));
    EXPECT_THAT(picture.Row(3).data<uint8_t>(),
                ElementsAre(127, 171, 197, 58, 102, 91, 135, 179, 205, 66, 55, 99, 143, 187));
  }
}

TEST(Grayscale, MakesOneOfEachThreeChannelsOfAStack) {
  const auto batch = Grayscale(FrameStack(Pictures(true), 2));
  EXPECT_EQ(batch->spec().leaf("picture").shape, Shape({2, kHeight, kWidth}));
  const Tensor picture = Shown(*batch);
  EXPECT_EQ(picture.Row(0).data<uint8_t>()[0], 50);
  EXPECT_EQ(picture.Row(1).data<uint8_t>()[1], 61);
  EXPECT_THROW(Grayscale(Grayscale(Pictures(true))), ConfigProblem) << "that is gray already";
}

TEST(PictureWrappers, AllocateNothingInAStep) {
  const auto batch = FrameStack(Resize(Grayscale(Pictures(false)), 5, 5), 2);
  TimeStep step = batch->MakeTimeStep();
  const Tensor action = Tensor::Zeros({2}, DType::kInt64);
  batch->Reset(step);
  const int64_t before = AllocationCount();
  for (int i = 0; i < 10; ++i) batch->Step(action, step);
  EXPECT_EQ(AllocationCount(), before);
}

}  // namespace
}  // namespace weft
