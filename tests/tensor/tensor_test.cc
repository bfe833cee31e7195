#include "tensor/tensor.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "tensor/cached_memory.h"

namespace weft {
namespace {

Tensor Counting(const Shape& shape) {
  Tensor tensor = Tensor::Empty(shape);
  std::iota(tensor.data<float>().begin(), tensor.data<float>().end(), 0.0f);
  return tensor;
}

std::string MessageOf(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

TEST(Shape, CountsElementsAndIndexesFromTheEnd) {
  const Shape shape = {2, 3, 4};
  EXPECT_EQ(shape.elements(), 24);
  EXPECT_EQ(shape.dim(-1), 4);
  EXPECT_EQ(shape.WithDim(-1, 7), Shape({2, 3, 7}));
  EXPECT_EQ(shape.Prepend(5), Shape({5, 2, 3, 4}));
  EXPECT_EQ(shape.DropFirst(), Shape({3, 4}));
  EXPECT_EQ(shape.ToString(), "[2, 3, 4]");
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_THROW(shape.dim(3), Error);
  EXPECT_THROW(Shape({1, -1}), Error);
  EXPECT_THROW(Shape({1, 1, 1, 1, 1, 1, 1}), Error);
  EXPECT_THROW(Shape({int64_t{1} << 40, int64_t{1} << 40}), Error);
}

TEST(Tensor, SliceRowAndReshapeShareTheMemory) {
  Tensor tensor = Counting({4, 3});
  const Tensor rows = tensor.Slice(1, 3);
  EXPECT_EQ(rows.shape(), Shape({2, 3}));
  EXPECT_EQ(rows.data<float>()[0], 3);
  EXPECT_EQ(tensor.Row(3).shape(), Shape({3}));
  tensor.data<float>()[3] = 42;
  EXPECT_EQ(rows.data<float>()[0], 42);
  EXPECT_EQ(rows.Reshape({3, 2}).data<float>()[0], 42);
  EXPECT_FALSE(tensor.unique());
  EXPECT_EQ(tensor.Slice(4, 4).elements(), 0);
  EXPECT_NE(MessageOf([&] { tensor.Slice(1, 5); }).find("[1, 5)"), std::string::npos);
  EXPECT_NE(MessageOf([&] { tensor.Reshape({5}); }).find("[4, 3] to [5]"), std::string::npos);
}

TEST(Tensor, DataChecksTheType) {
  const Tensor tensor = Tensor::Zeros({2}, DType::kInt64);
  EXPECT_NE(MessageOf([&] { tensor.data<float>(); }).find("are I64, not F32"), std::string::npos);
}

TEST(Tensor, ScalarsOfEveryTypeKeepTheirValue) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat64, DType::kInt32,
                            DType::kInt64, DType::kUInt8}) {
    EXPECT_EQ(Tensor::Scalar(200, dtype).Item(), 200) << dtype;
    EXPECT_EQ(Tensor::Scalar(200, dtype).bytes(), SizeOf(dtype));
  }
  EXPECT_THROW(Tensor::Scalar(256, DType::kUInt8), Error);
  EXPECT_THROW(Counting({2}).Item(), Error);
}

TEST(Tensor, BFloat16RoundsToNearestEven) {
  EXPECT_EQ(ToBFloat16(1.0f).bits, 0x3f80);
  EXPECT_EQ(ToBFloat16(1.00390625f).bits, 0x3f80);    // halfway, to even below
  EXPECT_EQ(ToBFloat16(1.01171875f).bits, 0x3f82);    // halfway, to even above
  EXPECT_EQ(ToBFloat16(1.0039063692f).bits, 0x3f81);  // just over halfway
  EXPECT_TRUE(std::isnan(ToFloat(ToBFloat16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_TRUE(std::isinf(ToFloat(ToBFloat16(std::numeric_limits<float>::max()))));
}

TEST(Tensor, UniqueUntilCopied) {
  Tensor tensor = Counting({2});
  EXPECT_TRUE(tensor.unique());
  {
    const Tensor copy = tensor;
    EXPECT_FALSE(tensor.unique());
  }
  EXPECT_TRUE(tensor.unique());
  const Tensor moved = std::move(tensor);
  EXPECT_TRUE(moved.unique());
  float memory[2] = {1, 2};
  EXPECT_FALSE(Tensor::View(memory, {2}, DType::kFloat32).unique());
}

TEST(Tensor, CopyFromWantsTheSameShapeTypeAndLayout) {
  Tensor to = Tensor::Zeros({2, 3});
  to.CopyFrom(Counting({2, 3}));
  EXPECT_EQ(to.data<float>()[5], 5);
  EXPECT_THROW(to.CopyFrom(Counting({3, 2})), Error);
  EXPECT_THROW(to.CopyFrom(Tensor::Zeros({2, 3}, DType::kInt32)), Error);
  EXPECT_THROW(to.CopyFrom(Tensor::Zeros({2, 3}, DType::kFloat32, Layout::kPanels)), Error);
}

// [K][64] for the first 64 columns, then [K][16] for the 6 that remain, padded.
TEST(TensorPanels, LieAsDocumented) {
  const Tensor rows = Counting({3, 70});
  const Tensor panels = rows.ToLayout(Layout::kPanels);
  EXPECT_EQ(panels.stored_elements(), 3 * 80);
  EXPECT_EQ(panels.elements(), 210);
  EXPECT_EQ(panels.data<float>()[1 * 64 + 5], 70 + 5);
  EXPECT_EQ(panels.data<float>()[3 * 64 + 2 * 16 + 5], 2 * 70 + 69);
  EXPECT_EQ(panels.data<float>()[3 * 64 + 2 * 16 + 6], 0);
  const Tensor back = panels.ToLayout(Layout::kRowMajor);
  EXPECT_EQ(0, std::memcmp(back.raw(), rows.raw(), rows.bytes()));
}

TEST(TensorPanels, FillLeavesThePaddingZero) {
  Tensor panels = Tensor::Zeros({2, 3}, DType::kFloat32, Layout::kPanels);
  panels.Fill(7);
  EXPECT_EQ(panels.data<float>()[2], 7);
  EXPECT_EQ(panels.data<float>()[3], 0);
}

TEST(TensorPanels, TransposedIsRenewedAfterAWriteAndOnlyThen) {
  Tensor weight = Counting({2, 3}).ToLayout(Layout::kPanels);
  EXPECT_EQ(weight.TransposedPanels().shape(), Shape({3, 2}));
  EXPECT_EQ(weight.TransposedPanels().data<float>()[1], 3);  // (0, 1) of the transposed is (1, 0)
  const float* at = weight.TransposedPanels().data<float>().data();
  weight.data<float>()[16] = 30;  // (1, 0)
  EXPECT_EQ(weight.TransposedPanels().data<float>()[1], 3) << "renewed without a mark";
  weight.MarkWritten();
  EXPECT_EQ(weight.TransposedPanels().data<float>()[1], 30);
  EXPECT_EQ(weight.TransposedPanels().data<float>().data(), at);
  EXPECT_THROW(Counting({2, 3}).TransposedPanels(), Error);
}

TEST(TensorPart, SharesTheMemoryAndIsMarkedWithTheWhole) {
  Tensor block = Tensor::Zeros({64});
  Tensor weight = block.Part(16, {2, 3}, Layout::kPanels);
  Tensor bias = block.Part(48, {16});
  EXPECT_EQ(weight.TransposedPanels().data<float>()[1], 0);
  block.data<float>()[16 + 16] = 5;  // (1, 0)
  block.MarkWritten();
  EXPECT_EQ(weight.TransposedPanels().data<float>()[1], 5);
  EXPECT_THROW(block.Part(49, {16}), Error);
  EXPECT_THROW(bias.Part(0, {1}), Error);
  block = Tensor();
  bias.Fill(3);  // still alive
  EXPECT_EQ(bias.data<float>()[15], 3);
}

#ifndef NDEBUG
TEST(Tensor, UninitialisedElementsAreVisibleInDebugBuilds) {
  EXPECT_TRUE(std::isnan(Tensor::Empty({3}).data<float>()[2]));
  EXPECT_EQ(Tensor::Empty({3}, DType::kInt64).data<int64_t>()[2], -4242);
}
#endif

TEST(TensorAllocator, AStepThatRepeatsAsksTheSystemForNothing) {
  const auto step = [] {
    std::vector<Tensor> live;
    for (const int64_t rows : {1, 3, 64, 500, 2000, 70000, 2000000})
      live.push_back(Tensor::Empty({rows, 5}));
  };
  step();
  step();  // the first one may have pushed out what earlier tests left
  const int64_t before = TensorAllocator().system_calls;
  for (int i = 0; i < 5; ++i) step();
  EXPECT_EQ(TensorAllocator().system_calls, before);
}

TEST(TensorAllocator, BlocksThatEndOnAnotherThreadComeBack) {
  const auto exchange = [] {
    std::vector<Tensor> sent;
    for (int i = 0; i < 300; ++i)
      sent.push_back(Tensor::Empty({10000}));  // 12 MB: more than a thread keeps
    std::thread([taken = std::move(sent)]() mutable { taken.clear(); }).join();
  };
  exchange();
  exchange();  // the first one may have pushed out what earlier tests left
  const int64_t before = TensorAllocator().system_calls;
  for (int i = 0; i < 5; ++i) exchange();
  EXPECT_EQ(TensorAllocator().system_calls, before);
}

TEST(TensorAllocator, CountsBytesInUse) {
  const int64_t before = TensorAllocator().bytes_in_use;
  {
    const Tensor tensor = Tensor::Empty({1024});
    EXPECT_EQ(TensorAllocator().bytes_in_use - before, 4096 + 64);
  }
  EXPECT_EQ(TensorAllocator().bytes_in_use, before);
}

TEST(TensorAllocator, CacheIsBoundedByThePeakInUse) {
  for (int64_t size = 1; size < 40; ++size) {
    const Tensor tensor =
        Tensor::Empty({size, 1 << 18});  // 1 to 39 MiB, 24 classes, 400 MiB when all were kept
  }
  EXPECT_LT(TensorAllocator().bytes_cached, int64_t{100} << 20);
}

TEST(TensorAllocator, WhatIsKeptCanBeGivenBack) {
  { const Tensor tensor = Tensor::Empty({3, 1 << 20}); }
  EXPECT_GT(TensorAllocator().bytes_cached, int64_t{12} << 20);
  FreeCachedMemory();
  EXPECT_LT(TensorAllocator().bytes_cached, int64_t{12} << 20);
}

TEST(TensorAllocator, BlocksAreAligned) {
  for (const int64_t size : {1, 100, 100000, 10000000}) {
    const Tensor tensor = Tensor::Empty({size});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.raw()) % 64, 0u);
  }
}

}  // namespace
}  // namespace weft
