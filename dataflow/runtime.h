// Runs a graph under a placement: makes the replicas, starts them, steps each when its needs are
// met and its outputs have room, makes checkpoints as consistent cuts, and stops cleanly. The same
// loop serves one thread, many threads and many processes; only channels differ.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "dataflow/fragment_graph.h"
#include "dataflow/placement.h"

namespace weft {

// State of a whole run between two steps: "fragment.replica" -> its Save(), and
// "channel:<edge>.<writer>.<reader>" -> its unread messages. Independent of the placement: a cut
// made by one placement can be loaded by another. A cut shares memory with the fragments: it is
// valid during on_checkpoint, or after the run.
using Cut = std::map<std::string, TensorMap>;

struct MetricEvent {
  std::string_view fragment;
  int replica;
  std::string_view name;
  double value;
};

struct RuntimeOptions {
  // All are called on one thread at a time, never concurrently.
  std::function<void(const MetricEvent&)> on_metric;
  std::function<void(const Cut&)> on_checkpoint;
  // A worker process died and was started again: its fragments began anew (the run is perturbed).
  std::function<void(int process, const std::string& reason)> on_perturbed;
  // Polled a few times a second; true: make a checkpoint, then stop.
  std::function<bool()> interrupted;
  double stall_seconds =
      30;  // nothing stepped for so long: report who waits for whom (once), go on waiting
  // How to start worker process k of n: the command line; the runtime appends the address to
  // connect to. Empty: threads only. The worker calls RunWorker with the same graph.
  std::function<std::vector<std::string>(int process)> worker_command;
  // Where worker processes connect: empty for a socket in a private folder, or
  // "tcp://127.0.0.1:PORT" (* for any port).
  std::string listen;
};

struct RunResult {
  std::string stop_reason;
  bool interrupted = false;
  bool perturbed = false;
  Cut cut;  // the final state
};

// Throws the first error of any fragment, with "fragment[replica], step k" as context, after all
// others were stopped.
RunResult Run(const FragmentGraph& graph, const Placement& placement, const RuntimeOptions& options,
              const Cut* resume = nullptr);

// The worker's side of a process placement: connects to address (a file that tells where,
// dataflow/process.h), runs the replicas of process `process` under the same graph and placement as
// the main process, and returns when told to. Errors of fragments are reported to the main process,
// which throws them. The system kills the worker when its parent dies.
void RunWorker(const FragmentGraph& graph, const Placement& placement, int process,
               const std::string& address);

}  // namespace weft
