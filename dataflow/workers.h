// The main process's view of the worker processes of a run: starts them, speaks with them, passes
// on what they send each other, and starts one again that died. Used by one thread, the one that
// called Run, as a worker dies with the thread that started it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dataflow/exchange.h"
#include "dataflow/outbox.h"
#include "dataflow/process.h"
#include "dataflow/reliable_channel.h"
#include "dataflow/zmq_socket.h"

namespace weft {

class Workers {
 public:
  struct Hooks {
    MetricSink metric;
    std::function<void(int process, const std::string& reason)> perturbed;
  };
  Workers(const FragmentGraph& graph, const Placement& placement, const RuntimeOptions& options,
          Engine* engine, Hooks hooks, PollBell* bell, const Cut* resume);
  ~Workers();  // kills what still runs

  // What a runner's thread hands over for workers: a sum of Reduce.
  void SendSum(int node, std::span<const Tensor> sum);

  // One round: takes what came, acts on it, sends what is due. Throws the error that ends the run.
  void Service();
  void Wait(int milliseconds);

  // All workers are there and were quiet at this park epoch.
  bool Quiet(uint64_t epoch) const;
  // While everything is quiet: collects states and unread messages of all links of the run, the
  // main process's own replicas too. False when a worker died meanwhile: the park then has a new
  // epoch.
  bool TakeSnapshot(Cut* cut);

  int64_t Steps() const;  // as of the last heartbeats
  bool perturbed() const { return perturbed_; }
  // Asks all for reports; Reports returns what has come.
  void AskForReports();
  bool AllReported() const;
  std::string Reports() const;

  // Tells all to end and waits for that, three seconds at most.
  void Close();

 private:
  using Clock = std::chrono::steady_clock;
  struct Worker {
    int process = 0;
    int incarnation = 0;
    int pid = 0;  // 0: waits to be started
    uint64_t session = 0;
    std::string peer;  // where the socket last heard it
    std::unique_ptr<ReliableChannel> channel;
    bool welcomed = false;
    std::vector<std::vector<uint8_t>> backlog;  // what waits for the welcome
    uint64_t quiet_epoch = 0;
    int64_t steps = 0;
    Clock::time_point heard, started, start_at;
    int failures = 0;             // restarts without a long life in between
    uint64_t snapshot_epoch = 0;  // of the park in which what follows was taken
    Cut states;
    std::vector<LinkContents> written;  // by link, writers in this worker
    std::vector<std::pair<uint64_t, int>>
        read;  // by link, readers in this worker: position and uses
    std::string report;
  };

  void Start(Worker& worker);
  void WatchProcesses();
  void Restart(Worker& worker, const std::string& reason);
  void ReceiveFrames();
  void OnMessage(Worker& worker, std::span<const uint8_t> message);
  void OnHello(Worker& worker, Reader& in);
  void OnSnapshot(Worker& worker, Reader& in);
  void Announce();
  void Send(Worker& worker, std::vector<uint8_t> message);
  void SendToAll(const std::function<std::vector<uint8_t>()>& make);

  const FragmentGraph& graph_;
  const Placement& placement_;
  const RuntimeOptions& options_;
  Engine* const engine_;
  const Hooks hooks_;
  PollBell* const bell_;
  const Cut* const resume_;
  const Seats seats_;
  PrivateFolder folder_;
  std::unique_ptr<ZmqSocket> socket_;
  std::unique_ptr<Exchange> exchange_;
  Outbox outbox_;
  std::vector<Worker> workers_;  // [process - 1]
  uint64_t announced_epoch_ = 0;
  std::vector<int> announced_pending_;
  Clock::time_point last_watch_{}, last_service_{};
  int64_t strangers_ = 0;
  bool perturbed_ = false;
};

}  // namespace weft
