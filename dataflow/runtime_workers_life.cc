// The lives of worker processes: starting, watching, starting again, ending.
#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "dataflow/wire.h"
#include "dataflow/wiring.h"
#include "dataflow/workers.h"

namespace weft {
namespace {

constexpr auto kWatchInterval = std::chrono::milliseconds(20);
constexpr auto kLongLife = std::chrono::seconds(10);
constexpr int kMostFailures = 8;
constexpr auto kFirstPause =
    std::chrono::milliseconds(50);  // before a restart; doubles with every failure
// Heartbeats come five times a second from a thread that never computes: so long a silence is a
// frozen process.
constexpr auto kSilence = std::chrono::seconds(15);
constexpr auto kFirstWord = std::chrono::seconds(60);  // from the start to the hello
constexpr auto kCloseTime = std::chrono::milliseconds(2500);

}  // namespace

Workers::~Workers() {
  for (Worker& worker : workers_) {
    if (worker.pid == 0) continue;
    KillProcess(worker.pid);
    while (!EndOfProcess(worker.pid)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Workers::Start(Worker& worker) {
  worker.session = RandomSession();
  worker.peer.clear();
  worker.welcomed = false;
  worker.quiet_epoch = 0;
  worker.channel = std::make_unique<ReliableChannel>(
      worker.session, [this, &worker](std::span<const uint8_t> frame) {
        return !worker.peer.empty() && socket_->Send(worker.peer, frame);
      });
  const std::string address = folder_.path() + "/worker-" + std::to_string(worker.process) + "." +
                              std::to_string(worker.incarnation);
  WriteRendezvous(address, {.endpoint = socket_->endpoint(),
                            .session = worker.session,
                            .process = worker.process,
                            .incarnation = worker.incarnation});
  std::vector<std::string> command = options_.worker_command(worker.process);
  command.push_back(address);
  worker.pid = StartProcess(command);
  worker.started = worker.heard = Clock::now();
}

void Workers::WatchProcesses() {
  const auto now = Clock::now();
  if (now - last_watch_ < kWatchInterval) return;
  last_watch_ = now;
  for (Worker& worker : workers_) {
    if (worker.pid == 0) {
      if (now >= worker.start_at) Start(worker);
      continue;
    }
    if (now - worker.heard > (worker.welcomed ? kSilence : kFirstWord)) {
      LogWarn("worker process " + std::to_string(worker.process) + " is silent and will be killed");
      KillProcess(worker.pid);
      worker.heard = now;
    }
    if (const auto end = EndOfProcess(worker.pid)) {
      worker.pid = 0;
      Restart(worker, *end);
    }
  }
}

void Workers::Restart(Worker& worker, const std::string& reason) {
  const std::string who = "worker process " + std::to_string(worker.process);
  for (size_t node = 0; node < graph_.nodes().size(); ++node) {
    const auto& processes = seats_.process[node];
    if (graph_.Reduces(static_cast<int>(node)) && processes.size() > 1 &&
        std::find(processes.begin(), processes.end(), worker.process) != processes.end()) {
      throw Error(ErrorCode::kUnavailable,
                  who + " ended (" + reason + ") with a replica of " + graph_.nodes()[node].name +
                      ", whose sums need all replicas; resume the run from its checkpoint");
    }
  }
  const auto now = Clock::now();
  worker.failures = now - worker.started > kLongLife ? 1 : worker.failures + 1;
  if (worker.failures > kMostFailures || (!worker.welcomed && worker.failures > 2)) {
    throw Error(ErrorCode::kUnavailable, who + " ended " + std::to_string(worker.failures) +
                                             " times in a row, at last with " + reason);
  }
  LogWarn(who + " ended (" + reason + ") and is started again; its fragments begin anew");
  perturbed_ = true;
  ++worker.incarnation;
  worker.welcomed = false;
  worker.quiet_epoch = 0;
  worker.snapshot_epoch = 0;
  worker.backlog.clear();
  worker.peer.clear();
  worker.start_at = now + kFirstPause * (1 << std::min(worker.failures - 1, 6));
  exchange_->OnRestarted(worker.process, worker.incarnation);
  engine_->control().RenewPark();
  for (Worker& other : workers_) {
    if (&other == &worker) continue;
    // Also to one that waits for its welcome: the news comes in its backlog, before what belongs to
    // the new life.
    Writer out = BeginMessage(MessageType::kRestarted);
    out.Write(static_cast<uint16_t>(worker.process));
    out.Write(static_cast<uint32_t>(worker.incarnation));
    Send(other, out.Take());
  }
  hooks_.perturbed(worker.process, reason);
}

void Workers::Close() {
  SendToAll([] { return BeginMessage(MessageType::kClose).Take(); });
  const auto deadline = Clock::now() + kCloseTime;
  std::string peer;
  std::vector<uint8_t> frame;
  while (true) {
    bool running = false;
    for (Worker& worker : workers_) {
      if (worker.pid != 0 && !worker.welcomed) KillProcess(worker.pid);  // it cannot hear
      if (worker.pid != 0 && EndOfProcess(worker.pid)) worker.pid = 0;
      running |= worker.pid != 0;
      worker.channel->Tick(Clock::now());
    }
    if (!running || Clock::now() > deadline) return;  // the destructor kills
    while (socket_->Receive(&peer, &frame)) {
      const auto header = OpenFrame(frame);
      for (Worker& worker : workers_) {
        if (header && header->session == worker.session) worker.channel->OnFrame(*header, frame);
      }
    }
    Wait(5);
  }
}

}  // namespace weft
