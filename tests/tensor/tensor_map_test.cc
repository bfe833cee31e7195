#include "tensor/tensor_map.h"

#include <gtest/gtest.h>
#include <thread>

namespace weft {
namespace {

TEST(TensorName, EqualNamesShareOnePointer) {
  const std::string text = "observation";
  EXPECT_EQ(TensorName("observation").text().data(), TensorName(text).text().data());
  EXPECT_FALSE(TensorName("observation") == TensorName("reward"));
}

TEST(TensorName, ThreadsInternTheSameName) {
  const char* seen[2] = {};
  std::thread other([&] { seen[0] = TensorName("interned_by_both").text().data(); });
  seen[1] = TensorName("interned_by_both").text().data();
  other.join();
  EXPECT_EQ(seen[0], seen[1]);
}

TEST(TensorMap, SetReplacesAndKeepsTheOrder) {
  TensorMap map;
  map.Set("b", Tensor::Scalar(1));
  map.Set("a", Tensor::Scalar(2));
  map.Set("b", Tensor::Scalar(3));
  ASSERT_EQ(map.size(), 2u);
  EXPECT_EQ(map.entry(0).first.text(), "b");
  EXPECT_EQ(map.At("b").Item(), 3);
  EXPECT_EQ(map.bytes(), 8u);
  map.Erase("b");
  EXPECT_FALSE(map.Has("b"));
  EXPECT_TRUE(map.Has("a"));
}

TEST(TensorMap, AtNamesWhatIsMissingAndWhatIsThere) {
  TensorMap map;
  map.Set("reward", Tensor::Scalar(1));
  try {
    map.At("rewards");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "there is no tensor \"rewards\"; there are: reward");
  }
}

TEST(TensorMap, ExtractUndoesMerge) {
  TensorMap inner, outer;
  inner.Set("layer0.weight", Tensor::Scalar(1));
  inner.Set("layer0.bias", Tensor::Scalar(2));
  outer.Set("actors.x", Tensor::Scalar(9));
  outer.Merge("actor", inner);
  EXPECT_TRUE(outer.Has("actor.layer0.bias"));
  const TensorMap back = outer.Extract("actor");
  EXPECT_EQ(back.size(), 2u);
  EXPECT_EQ(Hash(back), Hash(inner));
}

TEST(TensorMapHash, DependsOnNameTypeShapeAndEveryElementButNotOnLayout) {
  const Tensor matrix = Tensor::From<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  TensorMap map, other;
  map.Set("w", matrix);
  other.Set("w", matrix.ToLayout(Layout::kPanels));
  EXPECT_EQ(Hash(map), Hash(other));
  other.Set("w", matrix.Reshape({3, 2}));
  EXPECT_NE(Hash(map), Hash(other));
  Tensor changed = matrix.Clone();
  changed.data<float>()[5] = 6.0000005f;
  other.Set("w", changed);
  EXPECT_NE(Hash(map), Hash(other));
  TensorMap renamed;
  renamed.Set("v", matrix);
  EXPECT_NE(Hash(map), Hash(renamed));
}

}  // namespace
}  // namespace weft
