#include "dataflow/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "base/check.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Message One(const Shape& shape, std::vector<float> values, int64_t version = 3) {
  Message message{.body = {}, .version = version};
  message.body.Set("x", Tensor::From<float>(shape, std::span<const float>(values)));
  return message;
}

std::vector<float> Values(const Message& message) {
  const auto values = message.body.At("x").data<float>();
  return {values.begin(), values.end()};
}

TEST(Rows, ConcatenatesAlongTheFirstDimension) {
  std::vector<Message> parts = {One({1, 2}, {1, 2}), One({2, 2}, {3, 4, 5, 6})};
  const Message whole = ConcatenateRows(parts, 0, false, "edge");
  EXPECT_EQ(whole.version, 3);
  EXPECT_EQ(whole.body.At("x").shape(), (Shape{3, 2}));
  EXPECT_THAT(Values(whole), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Rows, ConcatenatesAlongAnInnerDimension) {
  // [T=2, N=1 and 2, 1]
  std::vector<Message> parts = {One({2, 1, 1}, {1, 4}), One({2, 2, 1}, {2, 3, 5, 6})};
  const Message whole = ConcatenateRows(parts, 1, false, "edge");
  EXPECT_EQ(whole.body.At("x").shape(), (Shape{2, 3, 1}));
  EXPECT_THAT(Values(whole), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Rows, SplitUndoesConcatenation) {
  const Message whole = One({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_THAT(Values(SplitRows(whole, 1, 0, 2, "edge")), ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(Values(SplitRows(whole, 1, 1, 2, "edge")), ElementsAre(3, 4, 7, 8));
  EXPECT_THAT(Values(SplitRows(whole, 0, 1, 2, "edge")), ElementsAre(5, 6, 7, 8));
  std::vector<Message> parts = {
      SplitRows(whole, 1, 0, 4, "edge"), SplitRows(whole, 1, 1, 4, "edge"),
      SplitRows(whole, 1, 2, 4, "edge"), SplitRows(whole, 1, 3, 4, "edge")};
  EXPECT_EQ(Hash(ConcatenateRows(parts, 1, false, "edge").body), Hash(whole.body));
}

TEST(Rows, EmptyRowsPassThrough) {
  std::vector<Message> parts = {One({0, 2}, {}), One({1, 2}, {1, 2})};
  EXPECT_THAT(Values(ConcatenateRows(parts, 0, false, "edge")), ElementsAre(1, 2));
}

template <class F>
std::string MessageOf(F action) {
  try {
    action();
  } catch (const Error& error) {
    return error.message();
  }
  return "nothing was thrown";
}

TEST(Rows, NamesTheLeafThatDoesNotFit) {
  std::vector<Message> shapes = {One({1, 2}, {1, 2}), One({1, 3}, {3, 4, 5})};
  EXPECT_THAT(
      MessageOf([&] { ConcatenateRows(shapes, 0, false, "a.x -> b.x"); }),
      HasSubstr(
          "a.x -> b.x: leaf \"x\" is F32 [1, 2] from one writer and F32 [1, 3] from another"));
  std::vector<Message> flat = {One({2}, {1, 2}), One({2}, {1, 2})};
  EXPECT_THAT(MessageOf([&] { ConcatenateRows(flat, 1, false, "e"); }),
              HasSubstr("leaf \"x\" of shape [2] has no rows in dimension 1"));
  EXPECT_THAT(MessageOf([&] {
                SplitRows(One({3}, {1, 2, 3}), 0, 0, 2, "e");
              }),
              HasSubstr("does not split into 2"));
}

TEST(Rows, VersionsMustMatchUnlessAWriterBeganAnew) {
  std::vector<Message> parts = {One({1}, {1}, 4), One({1}, {2}, 5)};
  EXPECT_THAT(MessageOf([&] { ConcatenateRows(parts, 0, false, "e"); }),
              HasSubstr("versions 4 and 5"));
  EXPECT_EQ(ConcatenateRows(parts, 0, true, "e").version, 5);
}

}  // namespace
}  // namespace weft
