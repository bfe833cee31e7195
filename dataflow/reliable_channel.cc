#include "dataflow/reliable_channel.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"

namespace weft {
namespace {

constexpr size_t kWindowFrames = 256;
constexpr size_t kWindowBytes = size_t{64} << 20;
constexpr size_t kCarefulFrames = 16;  // in flight after a loss, doubled by every acknowledgement
constexpr auto kFirstTimeout = std::chrono::milliseconds(250);
constexpr auto kLastTimeout = std::chrono::milliseconds(2000);

}  // namespace

ReliableChannel::ReliableChannel(uint64_t session, Transmit transmit)
    : session_(session), transmit_(std::move(transmit)), window_(kWindowFrames) {}

void ReliableChannel::Send(std::vector<uint8_t> message) {
  if (message.size() <= kFrameHeaderBytes + kMaxPayloadBytes) {
    packets_.push_back({.sequence = next_sequence_++, .last = true, .frame = std::move(message)});
    return;
  }
  const std::span<const uint8_t> payload =
      std::span<const uint8_t>(message).subspan(kFrameHeaderBytes);
  for (size_t begin = 0; begin < payload.size(); begin += kMaxPayloadBytes) {
    const auto part = payload.subspan(begin, std::min(kMaxPayloadBytes, payload.size() - begin));
    std::vector<uint8_t> frame(kFrameHeaderBytes + part.size());
    std::copy(part.begin(), part.end(), frame.begin() + kFrameHeaderBytes);
    packets_.push_back({.sequence = next_sequence_++,
                        .last = begin + part.size() == payload.size(),
                        .frame = std::move(frame)});
  }
}

bool ReliableChannel::TransmitPacket(Packet& packet) {
  SealFrame({.kind = FrameKind::kData,
             .last = packet.last,
             .session = session_,
             .sequence = packet.sequence,
             .ack = received_},
            packet.frame);
  if (!transmit_(packet.frame)) return false;
  ack_due_ = false;
  return true;
}

void ReliableChannel::Tick(Time now) {
  if (std::exchange(progressed_, false)) {
    last_progress_ = now;
    timeout_ = kFirstTimeout;
    window_ = std::min(2 * window_, kWindowFrames);
  }
  if (in_flight_ > 0 && now - last_progress_ >= timeout_) {
    // All that is not acknowledged counts as lost and is sent again.
    in_flight_ = in_flight_bytes_ = 0;
    window_ = kCarefulFrames;
    last_progress_ = now;
    timeout_ = std::min(2 * timeout_, kLastTimeout);
  }
  while (in_flight_ < std::min(packets_.size(), window_)) {
    Packet& packet = packets_[in_flight_];
    if (in_flight_ > 0 && in_flight_bytes_ + packet.frame.size() > kWindowBytes) break;
    if (!TransmitPacket(packet)) break;
    if (packet.sequence > highest_sent_) {
      highest_sent_ = packet.sequence;
      if (in_flight_ == 0) {
        last_progress_ = now;
        timeout_ = kFirstTimeout;
      }
    }
    ++in_flight_;
    in_flight_bytes_ += packet.frame.size();
  }
  if (ack_due_) {
    std::array<uint8_t, kFrameHeaderBytes> frame;
    SealFrame({.kind = FrameKind::kAck,
               .last = true,
               .session = session_,
               .sequence = 0,
               .ack = received_},
              frame);
    if (transmit_(frame)) ack_due_ = false;
  }
}

void ReliableChannel::Heartbeat(std::span<const uint8_t> payload) {
  std::vector<uint8_t> frame(kFrameHeaderBytes + payload.size());
  std::copy(payload.begin(), payload.end(), frame.begin() + kFrameHeaderBytes);
  SealFrame({.kind = FrameKind::kHeartbeat,
             .last = true,
             .session = session_,
             .sequence = 0,
             .ack = received_},
            frame);
  transmit_(frame);
}

void ReliableChannel::OnFrame(const FrameHeader& header, std::span<const uint8_t> frame) {
  // An acknowledgement of what was never sent is no acknowledgement.
  while (header.ack <= highest_sent_ && !packets_.empty() &&
         packets_.front().sequence <= header.ack) {
    if (in_flight_ > 0) {
      in_flight_bytes_ -= packets_.front().frame.size();
      --in_flight_;
    }
    packets_.pop_front();
    progressed_ = true;
  }
  if (header.kind != FrameKind::kData) return;
  ack_due_ = true;
  if (header.sequence <= received_ || early_.contains(header.sequence)) {
    ++duplicates_;
    return;
  }
  if (header.sequence > received_ + kWindowFrames) return;  // beyond what an honest sender may send
  const auto payload = frame.subspan(kFrameHeaderBytes);
  if (header.sequence != received_ + 1) {
    early_.emplace(header.sequence,
                   std::pair(header.last, std::vector<uint8_t>(payload.begin(), payload.end())));
    return;
  }
  ++received_;
  Accept(payload, header.last);
  while (!early_.empty() && early_.begin()->first == received_ + 1) {
    ++received_;
    Accept(early_.begin()->second.second, early_.begin()->second.first);
    early_.erase(early_.begin());
  }
}

void ReliableChannel::Accept(std::span<const uint8_t> payload, bool last) {
  partial_.insert(partial_.end(), payload.begin(), payload.end());
  oversize_ |=
      !partial_.empty() && partial_.size() > MaxMessageBytes(static_cast<MessageType>(partial_[0]));
  if (!last || oversize_) return;
  messages_.push_back(std::exchange(partial_, {}));
}

bool ReliableChannel::Receive(std::vector<uint8_t>* message) {
  if (oversize_)
    throw Error(ErrorCode::kCorrupt,
                "a message from another process is larger than its type allows");
  if (messages_.empty()) return false;
  *message = std::move(messages_.front());
  messages_.pop_front();
  return true;
}

}  // namespace weft
