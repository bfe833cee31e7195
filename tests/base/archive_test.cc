#include "base/archive.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace weft {
namespace {

TEST(Archive, GivesBackWhatWasWrittenInOrder) {
  Writer writer;
  writer.Write(int32_t{-5});
  writer.Write(std::string("text"));
  writer.Write(std::span<const double>(std::vector<double>{1.5, -0.0}));
  writer.Write(Rng(3, Purpose::kTest).state());
  writer.Write(std::span<const float>());
  Reader reader(writer.bytes());
  EXPECT_EQ(reader.Read<int32_t>(), -5);
  EXPECT_EQ(reader.ReadString(), "text");
  const auto doubles = reader.ReadVector<double>();
  ASSERT_EQ(doubles.size(), 2u);
  EXPECT_EQ(doubles[0], 1.5);
  EXPECT_TRUE(std::signbit(doubles[1]));
  EXPECT_EQ(reader.Read<Rng::State>(), Rng(3, Purpose::kTest).state());
  EXPECT_TRUE(reader.ReadVector<float>().empty());
  EXPECT_TRUE(reader.AtEnd());
}

TEST(Archive, EveryTruncationThrowsCorrupt) {
  Writer writer;
  writer.Write(std::string("some text"));
  writer.Write(int64_t{1});
  for (size_t size = 0; size < writer.bytes().size(); ++size) {
    Reader reader(std::span(writer.bytes()).first(size));
    try {
      reader.ReadString();
      reader.Read<int64_t>();
      FAIL() << size << " bytes were enough";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    }
  }
}

TEST(Archive, AHugeLengthThrowsBeforeItAllocates) {
  Writer writer;
  writer.Write(~uint64_t{0} / 8 + 2);  // times 8 bytes wraps around
  Reader reader(writer.bytes());
  EXPECT_THROW(reader.ReadVector<double>(), Error);
}

}  // namespace
}  // namespace weft
