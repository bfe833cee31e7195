// Exactly-once, in-order messages over a carrier that may lose, double, reorder or damage frames,
// or break and come back. One end of one session. Frames are numbered from 1; the receiver
// acknowledges all up to a number, keeps those that came early and drops those it had; the sender
// keeps what is not acknowledged and sends it again after a time that doubles while nothing moves,
// few frames at first, more as acknowledgements come. Nothing here reads a clock or a socket.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "dataflow/wire.h"

namespace weft {

class ReliableChannel {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // Sends a frame on its way; false when the carrier takes none right now.
  using Transmit = std::function<bool(std::span<const uint8_t> frame)>;

  ReliableChannel(uint64_t session, Transmit transmit);

  // message: as BeginMessage made it, header room first. Sent by the next Tick that has room in the
  // window.
  void Send(std::vector<uint8_t> message);

  // A frame from the other end, already opened; the next whole messages are then there to Receive.
  void OnFrame(const FrameHeader& header, std::span<const uint8_t> frame);
  // The next message, type byte first; false when none is complete. Throws kCorrupt on one larger
  // than its type allows.
  bool Receive(std::vector<uint8_t>* message);

  // Sends what may be sent, again what is overdue, and an acknowledgement that is due.
  void Tick(Time now);
  // An unnumbered frame that may get lost.
  void Heartbeat(std::span<const uint8_t> payload);

  bool idle() const { return packets_.empty(); }  // everything sent is acknowledged
  uint64_t duplicates() const { return duplicates_; }

 private:
  struct Packet {
    uint64_t sequence;
    bool last;
    std::vector<uint8_t> frame;
  };
  bool TransmitPacket(Packet& packet);
  void Accept(std::span<const uint8_t> payload, bool last);

  const uint64_t session_;
  const Transmit transmit_;
  // Sending.
  std::deque<Packet> packets_;  // not acknowledged, by sequence
  uint64_t next_sequence_ = 1;
  uint64_t highest_sent_ = 0;
  size_t in_flight_ = 0;  // packets at the front that were sent and are not taken for lost
  size_t in_flight_bytes_ = 0;
  size_t window_;            // most packets in flight
  bool progressed_ = false;  // since the last Tick
  Time last_progress_{};
  std::chrono::milliseconds timeout_{0};
  // Receiving.
  uint64_t received_ = 0;  // all up to this sequence
  bool ack_due_ = false;
  std::map<uint64_t, std::pair<bool, std::vector<uint8_t>>> early_;  // last and payload by sequence
  std::vector<uint8_t> partial_;
  std::deque<std::vector<uint8_t>> messages_;
  bool oversize_ = false;
  uint64_t duplicates_ = 0;
};

}  // namespace weft
