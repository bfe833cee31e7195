#include "dataflow/wire.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/random.h"

namespace weft {
namespace {

std::vector<uint8_t> Frame() {
  std::vector<uint8_t> frame(kFrameHeaderBytes + 33, 5);
  SealFrame({.kind = FrameKind::kData,
             .last = false,
             .session = 0x1122334455667788,
             .sequence = 9,
             .ack = 8},
            frame);
  return frame;
}

TEST(Wire, AFrameIsLaidOutAsDocumented) {
  const std::vector<uint8_t> frame = Frame();
  EXPECT_EQ(std::string(frame.begin(), frame.begin() + 4), "WEFT");
  EXPECT_EQ(frame[4], 1);     // version
  EXPECT_EQ(frame[5], 1);     // data
  EXPECT_EQ(frame[6], 0);     // not the last of its message
  EXPECT_EQ(frame[8], 0x88);  // session, little-endian
  EXPECT_EQ(frame[16], 9);    // sequence
  EXPECT_EQ(frame[24], 8);    // acknowledgement
  EXPECT_EQ(frame[32], 33);   // payload bytes
  const auto header = OpenFrame(frame);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->session, 0x1122334455667788u);
  EXPECT_EQ(header->sequence, 9u);
  EXPECT_EQ(header->ack, 8u);
  EXPECT_FALSE(header->last);
}

TEST(Wire, EveryFlippedBitOfAFrameIsNoticed) {
  for (size_t bit = 0; bit < Frame().size() * 8; ++bit) {
    std::vector<uint8_t> frame = Frame();
    frame[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
    EXPECT_FALSE(OpenFrame(frame).has_value()) << "bit " << bit;
  }
}

TEST(Wire, EveryCutOrLengthenedFrameIsNoticed) {
  std::vector<uint8_t> frame = Frame();
  for (size_t size = 0; size < frame.size(); ++size) {
    EXPECT_FALSE(OpenFrame(std::span<const uint8_t>(frame).first(size)).has_value());
  }
  frame.push_back(0);
  EXPECT_FALSE(OpenFrame(frame).has_value());
  frame.resize(kFrameHeaderBytes + kMaxPayloadBytes + 1);
  SealFrame({}, frame);
  EXPECT_FALSE(OpenFrame(frame).has_value());
}

TensorMap Everything() {
  TensorMap map;
  map.Set("f32", Tensor::From<float>(Shape{2, 3}, {1, 2, 3, 4, 5, 6}));
  map.Set("f64", Tensor::From<double>(Shape{}, {0.1}));
  map.Set("i32", Tensor::From<int32_t>(Shape{1, 1, 1, 1, 1, 1}, {-7}));
  map.Set("i64", Tensor::From<int64_t>(Shape{0, 4}, {}));
  map.Set("u8", Tensor::From<uint8_t>(Shape{3}, {1, 2, 255}));
  map.Set("panels", Tensor::From<float>(Shape{2, 3}, {1, 2, 3, 4, 5, 6}).ToLayout(Layout::kPanels));
  return map;
}

TEST(Wire, MessagesAndCutsComeBackAsTheyWere) {
  Writer out;
  WriteMessage(out, Message{.body = Everything(), .version = -3});
  WriteCut(out, Cut{{"a.0", Everything()}, {"channel:x", {}}});
  Reader in(out.bytes());
  const Message message = ReadMessage(in);
  const Cut cut = ReadCut(in);
  EXPECT_TRUE(in.AtEnd());
  EXPECT_EQ(message.version, -3);
  EXPECT_EQ(Hash(message.body), Hash(Everything()));
  EXPECT_EQ(message.body.At("panels").layout(), Layout::kPanels);
  EXPECT_EQ(cut.size(), 2u);
  EXPECT_EQ(Hash(cut.at("a.0")), Hash(Everything()));
}

TEST(Wire, EveryCutMessageIsAnError) {
  Writer out;
  WriteMessage(out, Message{.body = Everything(), .version = 1});
  for (size_t size = 0; size < out.bytes().size(); ++size) {
    Reader in(std::span<const uint8_t>(out.bytes()).first(size));
    EXPECT_THROW(ReadMessage(in), Error) << "the first " << size << " bytes";
  }
}

TEST(Wire, DamagedMessagesAreErrorsOrOtherMessagesAndNeverMore) {
  Writer out;
  WriteMessage(out, Message{.body = Everything(), .version = 1});
  Rng rng(3, Purpose::kTest);
  int errors = 0;
  for (int i = 0; i < 3000; ++i) {
    std::vector<uint8_t> bytes = out.bytes();
    for (uint64_t flips = 1 + rng.Below(3); flips > 0; --flips) {
      bytes[rng.Below(bytes.size())] = static_cast<uint8_t>(rng.Below(256));
    }
    try {
      Reader in(bytes);
      EXPECT_LE(ReadMessage(in).body.bytes(), bytes.size());
    } catch (const Error&) {
      ++errors;
    }
  }
  EXPECT_GT(errors, 500);
}

TEST(Wire, AbsurdShapesAreRefusedBeforeAnythingIsAllocated) {
  const auto tensor = [](std::vector<int64_t> dims, uint64_t bytes) {
    Writer out;
    out.Write(static_cast<uint8_t>(DType::kFloat32));
    out.Write(uint8_t{0});
    out.Write(static_cast<uint8_t>(dims.size()));
    for (const int64_t dim : dims) out.Write(dim);
    out.Write(bytes);
    return out.Take();
  };
  const int64_t huge = int64_t{1} << 62;
  for (const auto& bytes : {tensor({huge, 4}, 0), tensor({-1}, 4), tensor({huge}, 0),
                            tensor({1 << 30}, uint64_t{4} << 30), tensor({0, huge}, 0),
                            tensor({1, 2, 3, 4, 5, 6, 7}, 20160), tensor({huge, 0}, 0)}) {
    Reader in(bytes);
    EXPECT_THROW(ReadTensor(in), Error);
  }
  const auto empty = tensor({0, 5}, 0);
  Reader in(empty);
  EXPECT_EQ(ReadTensor(in).shape(), (Shape{0, 5}));
}

}  // namespace
}  // namespace weft
