#include "dataflow/placement.h"

#include <algorithm>

#include "base/check.h"
#include "dataflow/wiring.h"

namespace weft {
namespace {

using Members = std::vector<std::pair<int, int>>;

// Replicas of the worker nodes, cut into `parts` contiguous shares of each node's replicas, so that
// replicas that Rows pairs stay together. In a share, replica i of every node comes before replica
// i + 1 of any.
std::vector<Members> WorkerShares(const FragmentGraph& graph, int parts) {
  std::vector<Members> shares(static_cast<size_t>(parts));
  for (int part = 0; part < parts; ++part) {
    int most = 0;
    for (const auto& node : graph.nodes()) most = std::max(most, node.replicas);
    for (int replica = 0; replica < most; ++replica) {
      for (size_t n = 0; n < graph.nodes().size(); ++n) {
        const auto& node = graph.nodes()[n];
        if (node.role != Role::kWorker || replica >= node.replicas) continue;
        if (static_cast<int64_t>(replica) * parts / node.replicas == part) {
          shares[part].emplace_back(static_cast<int>(n), replica);
        }
      }
    }
  }
  return shares;
}

// Replicas of the centre nodes: one share, or (split) one per replica of the nodes joined by
// Reduce, each with the replicas of other centre nodes that it pairs with.
std::vector<Members> CentreShares(const FragmentGraph& graph, bool split) {
  int parts = 1;
  for (size_t n = 0; n < graph.nodes().size() && split; ++n) {
    if (graph.Reduces(static_cast<int>(n))) parts = std::max(parts, graph.nodes()[n].replicas);
  }
  std::vector<Members> shares(static_cast<size_t>(parts));
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const auto& node = graph.nodes()[n];
    if (node.role != Role::kCentre) continue;
    for (int replica = 0; replica < node.replicas; ++replica) {
      const int part =
          node.replicas % parts == 0 ? replica / (node.replicas / parts) : replica % parts;
      shares[part].emplace_back(static_cast<int>(n), replica);
    }
  }
  return shares;
}

int CountWorkers(const FragmentGraph& graph) {
  int most = 0;
  for (const auto& node : graph.nodes()) {
    if (node.role == Role::kWorker) most = std::max(most, node.replicas);
  }
  return most;
}

void AddRunners(Placement* placement, int process, std::vector<Members> shares, int threads) {
  for (Members& members : shares) {
    if (members.empty()) continue;
    placement->runners.push_back(
        {.process = process, .threads = std::max(1, threads), .members = std::move(members)});
  }
}

// One thread for everything; kernels may use all of them.
Placement Serial(const FragmentGraph& graph, const Resources& resources) {
  Placement placement;
  placement.runners.push_back(
      {.process = 0, .threads = std::max(1, resources.threads), .members = {}});
  Members& members = placement.runners[0].members;
  for (const Members& share : WorkerShares(graph, 1))
    members.insert(members.end(), share.begin(), share.end());
  for (const Members& share : CentreShares(graph, false))
    members.insert(members.end(), share.begin(), share.end());
  return placement;
}

// The centre on a thread of its own (each replica of a Reduce group on one), workers multiplexed
// over the others.
Placement Threads(const FragmentGraph& graph, const Resources& resources) {
  Placement placement;
  std::vector<Members> centre = CentreShares(graph, true);
  const int centre_runners = static_cast<int>(
      std::count_if(centre.begin(), centre.end(), [](const Members& m) { return !m.empty(); }));
  const int workers =
      std::min(CountWorkers(graph), std::max(1, resources.threads - centre_runners));
  if (workers > 0) AddRunners(&placement, 0, WorkerShares(graph, workers), 1);
  AddRunners(&placement, 0, std::move(centre),
             (resources.threads - workers) / std::max(1, centre_runners));
  return placement;
}

// Workers split over worker processes, the centre in the main process.
Placement SplitWorkers(const FragmentGraph& graph, const Resources& resources, bool split_centre) {
  const int workers = CountWorkers(graph);
  if (workers == 0) {
    throw Error(ErrorCode::kInvalidArgument,
                "no fragment of the graph has Role::kWorker, so there is nothing to put into "
                "worker processes");
  }
  Placement placement;
  const int processes = std::clamp(resources.processes, 1, workers);
  placement.processes = processes + 1;
  std::vector<Members> centre = CentreShares(graph, split_centre);
  const int centre_runners = static_cast<int>(centre.size());
  const int worker_threads = std::max(1, resources.threads / (processes + 1));
  AddRunners(&placement, 0, std::move(centre),
             (resources.threads - processes * worker_threads) / centre_runners);
  std::vector<Members> shares = WorkerShares(graph, processes);
  for (int process = 1; process <= processes; ++process) {
    AddRunners(&placement, process, {shares[process - 1]}, worker_threads);
  }
  return placement;
}

Placement SplitActors(const FragmentGraph& graph, const Resources& resources) {
  return SplitWorkers(graph, resources, false);
}

Placement DataParallel(const FragmentGraph& graph, const Resources& resources) {
  return SplitWorkers(graph, resources, true);
}

}  // namespace

std::string Placement::ToText(const FragmentGraph& graph) const {
  std::string text;
  for (const Runner& runner : runners) {
    text +=
        runner.process == 0 ? "main process" : "worker process " + std::to_string(runner.process);
    text +=
        ", " + std::to_string(runner.threads) + (runner.threads == 1 ? " thread:" : " threads:");
    for (const auto& [node, replica] : runner.members)
      text += " " + ReplicaLabel(graph, node, replica);
    text += "\n";
  }
  return text;
}

Registry<DistributionPolicy>& DistributionPolicies() {
  static Registry<DistributionPolicy>* const policies = [] {
    auto* made = new Registry<DistributionPolicy>("placement");
    made->Add("serial", &Serial);
    made->Add("threads", &Threads);
    made->Add("split_actors", &SplitActors);
    made->Add("data_parallel", &DataParallel);
    return made;
  }();
  return *policies;
}

}  // namespace weft
