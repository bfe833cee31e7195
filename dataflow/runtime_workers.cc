// The main process's side of the talk with workers: frames in, messages out, and what each message
// means.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "dataflow/wire.h"
#include "dataflow/wiring.h"
#include "dataflow/workers.h"

namespace weft {

Workers::Workers(const FragmentGraph& graph, const Placement& placement,
                 const RuntimeOptions& options, Engine* engine, Hooks hooks, PollBell* bell,
                 const Cut* resume)
    : graph_(graph),
      placement_(placement),
      options_(options),
      engine_(engine),
      hooks_(std::move(hooks)),
      bell_(bell),
      resume_(resume),
      seats_(graph, placement),
      outbox_(bell),
      workers_(static_cast<size_t>(placement.processes - 1)) {
  WEFT_CHECK(static_cast<bool>(options.worker_command))
      << "the placement has worker processes, but RuntimeOptions::worker_command is not set";
  socket_ = ZmqSocket::Listen(options.listen.empty() ? "ipc://" + folder_.path() + "/main"
                                                     : options.listen);
  exchange_ = std::make_unique<Exchange>(engine, 0, placement.processes,
                                         [this](int process, std::vector<uint8_t> message) {
                                           Send(workers_[process - 1], std::move(message));
                                         });
  for (size_t i = 0; i < workers_.size(); ++i) {
    workers_[i].process = static_cast<int>(i) + 1;
    Start(workers_[i]);
  }
}

void Workers::Send(Worker& worker, std::vector<uint8_t> message) {
  if (worker.welcomed) {
    worker.channel->Send(std::move(message));
  } else {
    worker.backlog.push_back(std::move(message));
  }
}

void Workers::SendToAll(const std::function<std::vector<uint8_t>()>& make) {
  for (Worker& worker : workers_) {
    if (worker.welcomed) worker.channel->Send(make());
  }
}

void Workers::SendSum(int node, std::span<const Tensor> sum) {
  for (const Worker& worker : workers_) {
    const auto& processes = seats_.process[node];
    if (std::find(processes.begin(), processes.end(), worker.process) == processes.end()) continue;
    Writer out = BeginMessage(MessageType::kSum);
    out.Write(static_cast<uint32_t>(node));
    WriteTensors(out, sum);
    outbox_.Put(worker.process, out.Take());
  }
}

void Workers::Wait(int milliseconds) {
  socket_->Wait(bell_->descriptor(), milliseconds);
}

void Workers::Service() {
  const auto now = Clock::now();
  // The main process itself was frozen: nobody else is to blame for the silence.
  if (last_service_ != Clock::time_point{} && now - last_service_ > std::chrono::seconds(1)) {
    for (Worker& worker : workers_) worker.heard = now;
  }
  last_service_ = now;
  ReceiveFrames();
  WatchProcesses();
  for (auto& [process, message] : outbox_.Take()) Send(workers_[process - 1], std::move(message));
  exchange_->Flow();
  Announce();
  for (Worker& worker : workers_) worker.channel->Tick(now);
}

// Parks and pending sums, as Control has them now.
void Workers::Announce() {
  Control& control = engine_->control();
  std::vector<int> pending;
  uint64_t epoch = 0;
  // What is pending must belong to the epoch that it is announced in: its end begins the next
  // epoch, which takes the announcement back.
  do {
    epoch = control.park_epoch();
    pending.clear();
    for (size_t node = 0; node < graph_.nodes().size() && epoch != 0; ++node) {
      const ReduceGroup* group = engine_->group(static_cast<int>(node));
      if (group != nullptr && group->Pending()) pending.push_back(static_cast<int>(node));
    }
  } while (control.park_epoch() != epoch);
  if (epoch != announced_epoch_) {
    announced_epoch_ = epoch;
    announced_pending_.clear();
    SendToAll([epoch] { return ShortMessage(MessageType::kPark, epoch); });
  }
  if (epoch == 0 || pending.empty() || pending == announced_pending_) return;
  announced_pending_ = pending;
  SendToAll([&pending] {
    Writer out = BeginMessage(MessageType::kPending);
    out.Write(static_cast<uint32_t>(pending.size()));
    for (const int node : pending) out.Write(static_cast<uint32_t>(node));
    return out.Take();
  });
}

void Workers::ReceiveFrames() {
  std::string peer;
  std::vector<uint8_t> frame, message;
  while (socket_->Receive(&peer, &frame)) {
    const auto header = OpenFrame(frame);
    Worker* sender = nullptr;
    for (Worker& worker : workers_) {
      if (header && worker.pid != 0 && header->session == worker.session) sender = &worker;
    }
    if (sender == nullptr) {
      if (strangers_++ == 0)
        LogWarn(
            "dropped bytes that are no frame of this run, from a stranger or an earlier worker");
      continue;
    }
    sender->peer = peer;
    sender->heard = Clock::now();
    if (header->kind == FrameKind::kHeartbeat &&
        frame.size() == kFrameHeaderBytes + sizeof(int64_t)) {
      Reader in(std::span<const uint8_t>(frame).subspan(kFrameHeaderBytes));
      sender->steps = in.Read<int64_t>();
    }
    sender->channel->OnFrame(*header, frame);
    while (sender->channel->Receive(&message)) OnMessage(*sender, message);
  }
}

void Workers::OnMessage(Worker& worker, std::span<const uint8_t> message) {
  Reader in(message);
  const auto type = static_cast<MessageType>(in.Read<uint8_t>());
  Control& control = engine_->control();
  if (!worker.welcomed && type != MessageType::kHello) {
    throw Error(ErrorCode::kCorrupt,
                "worker process " + std::to_string(worker.process) + " spoke before its hello");
  }
  switch (type) {
    case MessageType::kHello:
      OnHello(worker, in);
      break;
    case MessageType::kEdge:
    case MessageType::kCredit: {
      const auto target = in.Read<uint16_t>();
      if (target > workers_.size())
        throw Error(ErrorCode::kCorrupt, "a message for a process that does not exist");
      if (target != 0) {
        std::vector<uint8_t> copy(kFrameHeaderBytes + message.size());
        std::copy(message.begin(), message.end(), copy.begin() + kFrameHeaderBytes);
        Send(workers_[target - 1], std::move(copy));
      } else if (type == MessageType::kEdge) {
        exchange_->OnEdge(in);
      } else {
        exchange_->OnCredit(in);
      }
      break;
    }
    case MessageType::kMetric: {
      const auto node = in.Read<uint32_t>();
      const auto replica = in.Read<uint32_t>();
      const auto value = in.Read<double>();
      const std::string name = in.ReadString();
      if (node < graph_.nodes().size())
        hooks_.metric(static_cast<int>(node), static_cast<int>(replica), name, value);
      break;
    }
    case MessageType::kError: {
      const auto code = static_cast<ErrorCode>(in.Read<uint32_t>());
      throw Error(code, in.ReadString());
    }
    case MessageType::kStop:
      control.RequestStop(in.ReadString());
      break;
    case MessageType::kCheckpoint:
      control.RequestCheckpoint();
      break;
    case MessageType::kQuiet:
      worker.quiet_epoch = in.Read<uint64_t>();
      break;
    case MessageType::kSnapshot:
      OnSnapshot(worker, in);
      break;
    case MessageType::kContribution: {
      const auto node = in.Read<uint32_t>();
      const auto replica = in.Read<uint32_t>();
      std::vector<Tensor> tensors = ReadTensors(in);
      if (node >= graph_.nodes().size() || engine_->group(static_cast<int>(node)) == nullptr) {
        throw Error(ErrorCode::kCorrupt, "a contribution to a sum that does not exist");
      }
      // It is inside a step, whatever it said before.
      worker.quiet_epoch = 0;
      engine_->group(static_cast<int>(node))
          ->TakeRemote(static_cast<int>(replica), std::move(tensors));
      break;
    }
    case MessageType::kReport:
      worker.report = in.ReadString();
      break;
    default:
      throw Error(ErrorCode::kCorrupt, "worker process " + std::to_string(worker.process) +
                                           " sent a message of type " +
                                           std::to_string(static_cast<int>(type)));
  }
}

void Workers::OnHello(Worker& worker, Reader& in) {
  const auto hash = in.Read<uint64_t>();
  if (hash != GraphHash(graph_, placement_)) {
    const std::string reason = "worker process " + std::to_string(worker.process) +
                               " was started with another graph or placement than the main process";
    Writer refusal = BeginMessage(MessageType::kRefuse);
    refusal.Write(reason);
    worker.channel->Send(refusal.Take());
    worker.channel->Tick(Clock::now());
    throw Error(ErrorCode::kInvalidArgument, reason);
  }
  Writer out = BeginMessage(MessageType::kWelcome);
  for (const int incarnation : exchange_->incarnations())
    out.Write(static_cast<int32_t>(incarnation));
  // A worker that began anew has no saved state: its fragments start.
  const bool resumes = resume_ != nullptr && worker.incarnation == 0;
  out.Write(static_cast<uint8_t>(resumes));
  if (resumes) {
    Cut part;
    const auto take = [&](const std::string& key) {
      const auto found = resume_->find(key);
      if (found != resume_->end()) part[key] = found->second;
    };
    for (size_t node = 0; node < seats_.process.size(); ++node) {
      for (size_t replica = 0; replica < seats_.process[node].size(); ++replica) {
        if (seats_.process[node][replica] != worker.process) continue;
        take(ReplicaKey(graph_, static_cast<int>(node), static_cast<int>(replica)));
      }
    }
    for (const Engine::Edge& edge : engine_->edges()) {
      if (edge.writer_process == worker.process || edge.reader_process == worker.process)
        take(edge.channel);
    }
    take("runtime");
    WriteCut(out, part);
  }
  worker.channel->Send(out.Take());
  worker.welcomed = true;
  for (std::vector<uint8_t>& message : std::exchange(worker.backlog, {}))
    worker.channel->Send(std::move(message));
  if (announced_epoch_ != 0)
    worker.channel->Send(ShortMessage(MessageType::kPark, announced_epoch_));
  announced_pending_.clear();  // tells everybody again, this one too
}

}  // namespace weft
