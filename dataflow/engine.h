// What one process of a run holds: its runners with their replicas, the links that touch them, and
// the groups of Reduce. Whoever owns it (Run for one process, the main process or a worker of
// several) coordinates: parks, takes cuts, talks to other processes.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "dataflow/control.h"
#include "dataflow/cut.h"
#include "dataflow/link.h"
#include "dataflow/placement.h"
#include "dataflow/runner.h"
#include "dataflow/wiring.h"

namespace weft {

class Engine {
 public:
  // Contributions and sums of Reduce that leave the process (reduce.h), with the node they belong
  // to.
  using Carrier = std::function<void(int node, int replica, std::span<const Tensor>)>;
  struct Options {
    int process = 0;
    int incarnation = 0;
    Bell* coordinator = nullptr;  // rung for whatever concerns other processes, parks and errors
    MetricSink metrics;
    Carrier carrier;
  };
  // A link with at least one end in this process.
  struct Edge {
    LinkSpec spec;
    int writer_process, reader_process;
    std::string channel;  // its key in a cut
    bool newest_only;
    std::unique_ptr<Link> link;
    std::atomic<uint64_t>* arrivals =
        nullptr;  // Merge with its reader here: the reader's arrival counter
  };

  Engine(const FragmentGraph& graph, const Placement& placement, Options options);
  ~Engine();  // closes and joins

  // One thread per runner; resume must outlive the threads' start (until every runner is quiet or
  // done).
  void StartThreads(const Cut* resume);
  void Close();  // ends and joins the threads

  Control& control() { return control_; }
  const std::vector<std::unique_ptr<Runner>>& runners() const { return runners_; }
  // By link number (LinkSpecs); link is null when neither end is here.
  const std::vector<Edge>& edges() const { return edges_; }
  ReduceGroup* group(int node) { return groups_[node].get(); }

  // Fills the links from a cut, before anything runs.
  void RestoreLinks(const Cut& resume);
  // Every runner is quiet in the park epoch that is current, and nothing is pending.
  bool Quiet() const;
  // Only while quiet: states and steps of the replicas here.
  void SaveReplicas(Cut* cut) const;

  int64_t Steps() const;         // of all replicas; any thread
  std::string Describe() const;  // a line per replica, for reports; any thread

 private:
  void Wire(const FragmentGraph& graph, const Seats& seats);
  std::vector<ReplicaPorts::Input> Inputs(const FragmentGraph& graph, int node, int replica);
  std::vector<ReplicaPorts::Output> Outputs(const FragmentGraph& graph, int node, int replica);

  const Options options_;
  Control control_;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::vector<Edge> edges_;
  std::vector<std::unique_ptr<ReduceGroup>>
      groups_;  // by node, null without Reduce or without replicas here
  std::vector<std::unique_ptr<std::atomic<uint64_t>>> arrivals_;
  std::vector<std::thread> threads_;
};

}  // namespace weft
