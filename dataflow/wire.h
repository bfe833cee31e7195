// The bytes that travel between processes (docs/wire_format.md): frames, and the forms of tensors
// and messages in them. Everything is little-endian. Reading checks every count and length against
// the bytes that are there before it allocates, and throws kCorrupt.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/archive.h"
#include "dataflow/message.h"
#include "dataflow/runtime.h"

namespace weft {

constexpr uint32_t kFrameMagic = 0x54464557;  // "WEFT"
constexpr uint8_t kWireVersion = 1;
constexpr size_t kFrameHeaderBytes = 40;
constexpr size_t kMaxPayloadBytes = size_t{1}
                                    << 20;  // of one frame; larger messages travel in several
constexpr uint64_t kMaxMessageBytes = uint64_t{1} << 36;
constexpr uint64_t kMaxControlBytes = uint64_t{1} << 20;  // of a message without tensors

enum class FrameKind : uint8_t { kData = 1, kAck = 2, kHeartbeat = 3 };

struct FrameHeader {
  FrameKind kind = FrameKind::kData;
  bool last = true;  // of its message
  uint64_t session = 0, sequence = 0, ack = 0;
};

// What a message is about; its first byte.
enum class MessageType : uint8_t {
  kHello = 1,     // worker: graph hash
  kWelcome,       // main: incarnations, and the saved state when a run is resumed
  kRefuse,        // main: why the worker may not take part
  kEdge,          // a message of the graph
  kCredit,        // how many messages readers have read
  kMetric,        // worker
  kError,         // worker: the error that ends the run
  kStop,          // worker: a fragment asks to stop
  kCheckpoint,    // worker: a fragment asks for a checkpoint
  kPark,          // main: park epoch, 0 to go on
  kPending,       // main: groups of Reduce that wait for replicas
  kQuiet,         // worker: quiet at a park epoch
  kTakeSnapshot,  // main
  kSnapshot,      // worker: states, unread messages, positions of its readers
  kContribution,  // worker: tensors of one replica for AllReduce
  kSum,           // main: their sum
  kRestarted,     // main: a process began anew
  kReport,        // main asks, worker tells who waits for whom
  kClose,         // main: the run is over
};
uint64_t MaxMessageBytes(MessageType type);

// Writes header and checksum into the first kFrameHeaderBytes of a frame whose payload follows.
void SealFrame(const FrameHeader& header, std::span<uint8_t> frame);
// Nothing when these bytes are no frame of this protocol, damaged, or of a wrong length.
std::optional<FrameHeader> OpenFrame(std::span<const uint8_t> frame);

// A message's bytes under construction, with room for a frame's header in front.
Writer BeginMessage(MessageType type);
// A whole message of a number.
std::vector<uint8_t> ShortMessage(MessageType type, uint64_t number);

void WriteTensor(Writer& out, const Tensor& tensor);
Tensor ReadTensor(Reader& in);
void WriteTensors(Writer& out, std::span<const Tensor> tensors);
std::vector<Tensor> ReadTensors(Reader& in);
void WriteMap(Writer& out, const TensorMap& map);
TensorMap ReadMap(Reader& in);
void WriteMessage(Writer& out, const Message& message);
Message ReadMessage(Reader& in);
void WriteCut(Writer& out, const Cut& cut);
Cut ReadCut(Reader& in);

}  // namespace weft
