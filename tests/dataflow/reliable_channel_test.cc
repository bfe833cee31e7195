// Two ends of a channel over a carrier that loses, doubles, reorders and damages frames, on a clock
// of the test's own.
#include "dataflow/reliable_channel.h"

#include <algorithm>
#include <deque>
#include <gtest/gtest.h>
#include <vector>

#include "base/check.h"
#include "base/random.h"

namespace weft {
namespace {

using std::chrono::milliseconds;

class Carrier {
 public:
  double lose = 0, twice = 0, damage = 0;
  int spread = 1;  // ticks over which frames are scattered
  bool cut = false;

  explicit Carrier(uint64_t seed) : rng_(seed, Purpose::kTest) {}

  bool Take(std::span<const uint8_t> frame) {
    ++frames;
    if (cut) return true;
    for (int copies = rng_.Uniform() < twice ? 2 : 1; copies > 0; --copies) {
      if (rng_.Uniform() < lose) continue;
      std::vector<uint8_t> copy(frame.begin(), frame.end());
      if (rng_.Uniform() < damage)
        copy[rng_.Below(copy.size())] ^= static_cast<uint8_t>(1 + rng_.Below(255));
      waiting_.push_back({rng_.Below(static_cast<uint64_t>(spread)), std::move(copy)});
    }
    return true;
  }
  // Frames whose time has come, into the other end.
  void Deliver(uint64_t session, ReliableChannel* to) {
    std::deque<std::pair<uint64_t, std::vector<uint8_t>>> later;
    for (auto& [delay, frame] : waiting_) {
      if (delay > 0) {
        later.emplace_back(delay - 1, std::move(frame));
        continue;
      }
      const auto header = OpenFrame(frame);
      if (header && header->session == session) to->OnFrame(*header, frame);
    }
    waiting_ = std::move(later);
  }

  int64_t frames = 0;

 private:
  Rng rng_;
  std::deque<std::pair<uint64_t, std::vector<uint8_t>>> waiting_;
};

std::vector<uint8_t> Numbered(uint64_t number, size_t size) {
  Writer out = BeginMessage(MessageType::kEdge);
  out.Write(number);
  for (size_t i = 0; i < size; ++i) out.Write(static_cast<uint8_t>(number + i));
  return out.Take();
}

// The number of a message, checked byte by byte.
uint64_t NumberOf(const std::vector<uint8_t>& message) {
  Reader in(message);
  EXPECT_EQ(in.Read<uint8_t>(), static_cast<uint8_t>(MessageType::kEdge));
  const auto number = in.Read<uint64_t>();
  for (uint8_t expected = static_cast<uint8_t>(number); !in.AtEnd(); ++expected) {
    EXPECT_EQ(in.Read<uint8_t>(), expected);
  }
  return number;
}

struct Pair {
  explicit Pair(uint64_t seed) : to_b(seed), to_a(seed + 1) {}

  void Tick(milliseconds step = milliseconds(1)) {
    now += step;
    a.Tick(now);
    b.Tick(now);
    to_b.Deliver(7, &b);
    to_a.Deliver(7, &a);
    std::vector<uint8_t> message;
    while (b.Receive(&message)) at_b.push_back(NumberOf(message));
    while (a.Receive(&message)) at_a.push_back(NumberOf(message));
  }

  Carrier to_b, to_a;
  ReliableChannel a{7, [this](std::span<const uint8_t> frame) { return to_b.Take(frame); }};
  ReliableChannel b{7, [this](std::span<const uint8_t> frame) { return to_a.Take(frame); }};
  ReliableChannel::Time now{};
  std::vector<uint64_t> at_a, at_b;
};

void ExpectAllInOrder(const std::vector<uint64_t>& numbers, uint64_t count) {
  ASSERT_EQ(numbers.size(), count);
  for (uint64_t i = 0; i < count; ++i) ASSERT_EQ(numbers[i], i);
}

TEST(ReliableChannel, AppliesExactlyWhatWasProducedOverABadLink) {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    Pair pair(seed);
    for (Carrier* carrier : {&pair.to_a, &pair.to_b}) {
      carrier->lose = 0.1;
      carrier->twice = 0.05;
      carrier->damage = 0.02;
      carrier->spread = 4;
    }
    constexpr uint64_t kMessages = 2000;
    for (uint64_t sent = 0, ticks = 0; pair.at_b.size() < kMessages || pair.at_a.size() < kMessages;
         ++ticks) {
      ASSERT_LT(ticks, 2000000u) << "no progress";
      if (sent < kMessages) {
        pair.a.Send(Numbered(sent, sent % 97));
        pair.b.Send(Numbered(sent, sent % 31));
        ++sent;
      }
      pair.Tick(milliseconds(20));
    }
    ExpectAllInOrder(pair.at_b, kMessages);
    ExpectAllInOrder(pair.at_a, kMessages);
    EXPECT_GT(pair.b.duplicates(), 0u);
  }
}

TEST(ReliableChannel, NothingIsLostInACutOfThreeSeconds) {
  Pair pair(5);
  for (uint64_t i = 0; i < 600; ++i) {
    pair.a.Send(Numbered(i, 10));
    if (i == 100) pair.to_b.cut = pair.to_a.cut = true;
    if (i == 400) pair.to_b.cut = pair.to_a.cut = false;
    pair.Tick(milliseconds(10));
  }
  for (int i = 0; i < 1000 && pair.at_b.size() < 600; ++i) pair.Tick(milliseconds(10));
  ExpectAllInOrder(pair.at_b, 600);
}

TEST(ReliableChannel, LargeMessagesTravelInSeveralFrames) {
  Pair pair(6);
  pair.to_b.lose = 0.2;
  pair.to_b.spread = 3;
  const size_t size = 3 * kMaxPayloadBytes + 17;
  pair.a.Send(Numbered(0, size));
  pair.a.Send(Numbered(1, 0));
  for (int i = 0; i < 1000 && pair.at_b.size() < 2; ++i) pair.Tick(milliseconds(50));
  ExpectAllInOrder(pair.at_b, 2);
  for (int i = 0; i < 100 && !pair.a.idle(); ++i) pair.Tick(milliseconds(50));
  EXPECT_TRUE(pair.a.idle());
}

TEST(ReliableChannel, ASilentPeerBoundsWhatIsSent) {
  Pair pair(7);
  pair.to_a.cut = true;
  for (uint64_t i = 0; i < 5000; ++i) pair.a.Send(Numbered(i, 0));
  for (int i = 0; i < 100; ++i) pair.Tick(milliseconds(1));
  EXPECT_EQ(pair.at_b.size(), 256u);
  EXPECT_EQ(pair.to_b.frames, 256);
  // Sent again with growing pauses, a few frames at a time.
  for (int i = 0; i < 100; ++i) pair.Tick(milliseconds(100));
  EXPECT_LE(pair.to_b.frames, 256 + 8 * 16);
  EXPECT_EQ(pair.at_b.size(), 256u);
}

TEST(ReliableChannel, AMessageLargerThanItsTypeAllowsIsRefused) {
  Pair pair(8);
  Writer out = BeginMessage(MessageType::kMetric);
  std::vector<uint8_t> large(kMaxControlBytes + 10);
  out.Append(large);
  pair.a.Send(out.Take());
  EXPECT_THROW(
      {
        for (int i = 0; i < 10; ++i) pair.Tick();
      },
      Error);
}

TEST(ReliableChannel, AcknowledgementsOfWhatWasNeverSentAreIgnored) {
  Pair pair(9);
  pair.to_b.cut = true;
  pair.a.Send(Numbered(0, 5));
  pair.Tick();
  std::vector<uint8_t> frame(kFrameHeaderBytes);
  SealFrame({.kind = FrameKind::kAck, .last = true, .session = 7, .sequence = 0, .ack = 1000},
            frame);
  pair.a.OnFrame(*OpenFrame(frame), frame);
  EXPECT_FALSE(pair.a.idle());
  pair.to_b.cut = false;
  for (int i = 0; i < 10 && pair.at_b.empty(); ++i) pair.Tick(milliseconds(500));
  ExpectAllInOrder(pair.at_b, 1);
}

}  // namespace
}  // namespace weft
