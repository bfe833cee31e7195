// The examples of protobuf.dev, "Encoding".
#include "base/protobuf.h"

#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace weft {
namespace {

std::string Hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) {
    char pair[4];
    std::snprintf(pair, sizeof(pair), "%02x", static_cast<uint8_t>(byte));
    text += pair;
  }
  return text;
}

TEST(ProtobufWriter, EncodesTheExamplesOfTheFormat) {
  ProtobufWriter inner;
  inner.Varint(1, 150);
  EXPECT_EQ(Hex(inner.bytes()), "089601");
  ProtobufWriter outer;
  outer.Message(3, inner);
  EXPECT_EQ(Hex(outer.bytes()), "1a03089601");
  ProtobufWriter text;
  text.Bytes(2, "testing");
  EXPECT_EQ(Hex(text.bytes()), "120774657374696e67");
  ProtobufWriter packed;
  packed.PackedVarints(6, std::vector<int64_t>{3, 270, 86942});
  EXPECT_EQ(Hex(packed.bytes()), "3206038e029ea705");
  ProtobufWriter negative;
  negative.Varint(1, -2);
  EXPECT_EQ(Hex(negative.bytes()), "08feffffffffffffffff01");
}

TEST(ProtobufWriter, EncodesFixedWidthsLittleEndianAndHighFieldNumbers) {
  ProtobufWriter writer;
  writer.Double(1, 1.0);
  writer.Float(2, -2.0f);
  EXPECT_EQ(Hex(writer.bytes()), "09000000000000f03f15000000c0");
  writer.Clear();
  writer.PackedFloats(16, std::vector<float>{1.0f});
  EXPECT_EQ(Hex(writer.bytes()), "8201040000803f");
  writer.Clear();
  writer.Varint(1, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Hex(writer.bytes()), "08ffffffffffffffff7f");
}

TEST(ProtobufWriter, PackedLengthCountsEveryByteOfLargeNumbers) {
  ProtobufWriter writer;
  writer.PackedVarints(1, std::vector<int64_t>{0, 127, 128, 16383, 16384, -1});
  const std::string bytes = writer.bytes();
  EXPECT_EQ(static_cast<size_t>(bytes[1]), bytes.size() - 2);
  EXPECT_EQ(bytes.size() - 2, 1u + 1 + 2 + 2 + 3 + 10);
}

}  // namespace
}  // namespace weft
