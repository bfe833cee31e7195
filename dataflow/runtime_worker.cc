// The worker's side of a run in several processes: its runners have threads of their own, the
// calling thread speaks with the main process.
#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "dataflow/exchange.h"
#include "dataflow/outbox.h"
#include "dataflow/process.h"
#include "dataflow/reliable_channel.h"
#include "dataflow/runtime.h"
#include "dataflow/wire.h"
#include "dataflow/wiring.h"
#include "dataflow/zmq_socket.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kHeartbeatInterval = std::chrono::milliseconds(200);
constexpr auto kCloseTime = std::chrono::seconds(2);
constexpr int kWaitMilliseconds = 50;

class WorkerProcess {
 public:
  WorkerProcess(const FragmentGraph& graph, const Placement& placement, int process,
                const Rendezvous& rendezvous);
  void Run();

 private:
  void Receive();
  void OnMessage(std::span<const uint8_t> message);
  void OnWelcome(Reader& in);
  void SendRequests();
  void SendQuiet();
  void SendSnapshot(uint64_t epoch);
  void Heartbeat(Clock::time_point now);

  const FragmentGraph& graph_;
  const int process_;
  PollBell bell_;
  Outbox outbox_;
  std::unique_ptr<ZmqSocket> socket_;
  ReliableChannel channel_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Exchange> exchange_;
  const uint64_t session_, graph_hash_;
  Cut resume_;  // lives as long as the runners, who read it when they start
  bool welcomed_ = false, closed_ = false;
  bool told_stop_ = false, told_error_ = false;
  uint64_t told_quiet_ = 0;
  Clock::time_point last_heartbeat_{};
};

WorkerProcess::WorkerProcess(const FragmentGraph& graph, const Placement& placement, int process,
                             const Rendezvous& rendezvous)
    : graph_(graph),
      process_(process),
      outbox_(&bell_),
      socket_(ZmqSocket::Connect(rendezvous.endpoint)),
      channel_(rendezvous.session,
               [this](std::span<const uint8_t> frame) { return socket_->Send("", frame); }),
      session_(rendezvous.session),
      graph_hash_(GraphHash(graph, placement)) {
  engine_ = std::make_unique<Engine>(
      graph, placement,
      Engine::Options{.process = process,
                      .incarnation = rendezvous.incarnation,
                      .coordinator = &bell_,
                      .metrics =
                          [this](int node, int replica, std::string_view name, double value) {
                            Writer out = BeginMessage(MessageType::kMetric);
                            out.Write(static_cast<uint32_t>(node));
                            out.Write(static_cast<uint32_t>(replica));
                            out.Write(value);
                            out.Write(std::string(name));
                            outbox_.Put(0, out.Take());
                          },
                      .carrier =
                          [this](int node, int replica, std::span<const Tensor> tensors) {
                            Writer out = BeginMessage(MessageType::kContribution);
                            out.Write(static_cast<uint32_t>(node));
                            out.Write(static_cast<uint32_t>(replica));
                            WriteTensors(out, tensors);
                            outbox_.Put(0, out.Take());
                          }});
  exchange_ = std::make_unique<Exchange>(
      engine_.get(), process, placement.processes,
      [this](int, std::vector<uint8_t> message) { channel_.Send(std::move(message)); });
}

void WorkerProcess::Run() {
  channel_.Send(ShortMessage(MessageType::kHello, graph_hash_));
  while (!closed_) {
    bell_.Clear();
    const auto now = Clock::now();
    Receive();
    if (welcomed_ && !closed_) {
      // Looked at before the outbox is emptied: whatever was put there while a replica was inside a
      // step goes first.
      const bool quiet = engine_->Quiet();
      for (auto& [process, message] : outbox_.Take()) channel_.Send(std::move(message));
      SendRequests();
      exchange_->Flow();
      if (quiet) SendQuiet();
    }
    Heartbeat(now);
    channel_.Tick(now);
    if (!closed_) socket_->Wait(bell_.descriptor(), kWaitMilliseconds);
  }
  // The last words (an error, the acknowledgement of the close) may still be on their way.
  engine_->Close();
  const auto deadline = Clock::now() + kCloseTime;
  while (!channel_.idle() && Clock::now() < deadline) {
    Receive();
    channel_.Tick(Clock::now());
    socket_->Wait(bell_.descriptor(), 5);
  }
}

void WorkerProcess::Receive() {
  std::string peer;
  std::vector<uint8_t> frame, message;
  while (socket_->Receive(&peer, &frame)) {
    const auto header = OpenFrame(frame);
    if (!header || header->session != session_) continue;
    channel_.OnFrame(*header, frame);
    while (channel_.Receive(&message)) {
      if (!closed_) OnMessage(message);
    }
  }
}

void WorkerProcess::OnMessage(std::span<const uint8_t> message) {
  Reader in(message);
  const auto type = static_cast<MessageType>(in.Read<uint8_t>());
  Control& control = engine_->control();
  switch (type) {
    case MessageType::kWelcome:
      OnWelcome(in);
      break;
    case MessageType::kRefuse:
      throw Error(ErrorCode::kInvalidArgument, in.ReadString());
    case MessageType::kEdge:
    case MessageType::kCredit:
      if (in.Read<uint16_t>() != process_)
        throw Error(ErrorCode::kCorrupt, "a message for another process came here");
      if (type == MessageType::kEdge) {
        exchange_->OnEdge(in);
      } else {
        exchange_->OnCredit(in);
      }
      break;
    case MessageType::kPark: {
      const auto epoch = in.Read<uint64_t>();
      for (size_t node = 0; node < graph_.nodes().size(); ++node) {
        if (ReduceGroup* group = engine_->group(static_cast<int>(node))) group->SetWanted(false);
      }
      control.SetPark(epoch);
      break;
    }
    case MessageType::kPending:
      for (auto count = in.Read<uint32_t>(); count > 0; --count) {
        const auto node = in.Read<uint32_t>();
        if (node >= graph_.nodes().size())
          throw Error(ErrorCode::kCorrupt, "news of a sum that does not exist");
        if (ReduceGroup* group = engine_->group(static_cast<int>(node))) group->SetWanted(true);
      }
      control.SetPending();
      break;
    case MessageType::kTakeSnapshot:
      SendSnapshot(in.Read<uint64_t>());
      break;
    case MessageType::kSum: {
      const auto node = in.Read<uint32_t>();
      if (node >= graph_.nodes().size() || engine_->group(static_cast<int>(node)) == nullptr) {
        throw Error(ErrorCode::kCorrupt, "a sum that does not exist");
      }
      engine_->group(static_cast<int>(node))->TakeSum(ReadTensors(in));
      break;
    }
    case MessageType::kRestarted: {
      const auto process = in.Read<uint16_t>();
      exchange_->OnRestarted(process, static_cast<int>(in.Read<uint32_t>()));
      break;
    }
    case MessageType::kReport: {
      Writer out = BeginMessage(MessageType::kReport);
      out.Write(engine_->Describe());
      channel_.Send(out.Take());
      break;
    }
    case MessageType::kClose:
      closed_ = true;
      break;
    default:
      throw Error(ErrorCode::kCorrupt, "the main process sent a message of type " +
                                           std::to_string(static_cast<int>(type)));
  }
}

void WorkerProcess::OnWelcome(Reader& in) {
  for (size_t process = 0; process < exchange_->incarnations().size(); ++process) {
    exchange_->SetIncarnation(static_cast<int>(process), in.Read<int32_t>());
  }
  const bool resumes = in.Read<uint8_t>() != 0;
  if (resumes) {
    resume_ = ReadCut(in);
    engine_->RestoreLinks(resume_);
  }
  welcomed_ = true;
  engine_->StartThreads(resumes ? &resume_ : nullptr);
}

void WorkerProcess::SendRequests() {
  Control& control = engine_->control();
  if (control.failed() && !told_error_) {
    told_error_ = true;
    Writer out = BeginMessage(MessageType::kError);
    try {
      std::rethrow_exception(control.error());
    } catch (const Error& error) {
      out.Write(static_cast<uint32_t>(error.code()));
      out.Write(error.message());
    }
    channel_.Send(out.Take());
  }
  if (control.TakeCheckpointRequest()) channel_.Send(BeginMessage(MessageType::kCheckpoint).Take());
  if (control.stop_requested() && !told_stop_) {
    told_stop_ = true;
    Writer out = BeginMessage(MessageType::kStop);
    out.Write(control.stop_reason());
    channel_.Send(out.Take());
  }
}

void WorkerProcess::SendQuiet() {
  const uint64_t epoch = engine_->control().park_epoch();
  if (epoch == told_quiet_) return;
  told_quiet_ = epoch;
  channel_.Send(ShortMessage(MessageType::kQuiet, epoch));
}

void WorkerProcess::SendSnapshot(uint64_t epoch) {
  // The main process asks only when everybody is quiet, but the park may have a new epoch by now:
  // then it will ask again.
  if (!engine_->Quiet() || engine_->control().park_epoch() != epoch) return;
  Writer out = BeginMessage(MessageType::kSnapshot);
  out.Write(epoch);
  Cut states;
  engine_->SaveReplicas(&states);
  WriteCut(out, states);
  const auto& edges = engine_->edges();
  const auto here = [this](int process) { return process == process_; };
  out.Write(static_cast<uint32_t>(
      std::count_if(edges.begin(), edges.end(),
                    [&](const Engine::Edge& edge) { return here(edge.writer_process); })));
  for (size_t i = 0; i < edges.size(); ++i) {
    if (!here(edges[i].writer_process)) continue;
    const LinkContents contents = edges[i].link->Contents();
    out.Write(static_cast<uint32_t>(i));
    out.Write(contents.first);
    out.Write(static_cast<int32_t>(contents.uses));
    out.Write(static_cast<uint32_t>(contents.messages.size()));
    for (const Message& message : contents.messages) WriteMessage(out, message);
  }
  out.Write(static_cast<uint32_t>(
      std::count_if(edges.begin(), edges.end(),
                    [&](const Engine::Edge& edge) { return here(edge.reader_process); })));
  for (size_t i = 0; i < edges.size(); ++i) {
    if (!here(edges[i].reader_process)) continue;
    const auto [read, uses] = edges[i].link->ReadPosition();
    out.Write(static_cast<uint32_t>(i));
    out.Write(read);
    out.Write(static_cast<int32_t>(uses));
  }
  channel_.Send(out.Take());
}

void WorkerProcess::Heartbeat(Clock::time_point now) {
  if (now - last_heartbeat_ < kHeartbeatInterval) return;
  last_heartbeat_ = now;
  Writer out;
  out.Write(engine_->Steps());
  channel_.Heartbeat(out.bytes());
}

}  // namespace

void RunWorker(const FragmentGraph& graph, const Placement& placement, int process,
               const std::string& address) {
  DieWithParent();
  const Rendezvous rendezvous = ReadRendezvous(address);
  if (rendezvous.process != process || process < 1 || process >= placement.processes) {
    throw Error(ErrorCode::kInvalidArgument, address + " is the address of worker process " +
                                                 std::to_string(rendezvous.process) + ", not of " +
                                                 std::to_string(process));
  }
  graph.Validate();
  WorkerProcess worker(graph, placement, process, rendezvous);
  worker.Run();
}

}  // namespace weft
