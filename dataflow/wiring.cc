#include "dataflow/wiring.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"

namespace weft {
namespace {

bool Meet(const Contract& contract, int writer, int writers, int reader, int readers) {
  switch (contract.kind) {
    case Contract::Kind::kRows:
      return writers >= readers ? writer / (writers / readers) == reader
                                : reader / (readers / writers) == writer;
    case Contract::Kind::kMerge:
      return writer % readers == reader;
    case Contract::Kind::kBroadcast:
      return static_cast<int64_t>(reader) * writers / readers == writer;
    case Contract::Kind::kReduce:
      return false;
  }
  return false;
}

}  // namespace

std::vector<LinkSpec> LinkSpecs(const FragmentGraph& graph) {
  std::vector<LinkSpec> links;
  for (size_t e = 0; e < graph.edges().size(); ++e) {
    const auto& edge = graph.edges()[e];
    const int writers = graph.nodes()[edge.from].replicas,
              readers = graph.nodes()[edge.to].replicas;
    for (int reader = 0; reader < readers; ++reader) {
      for (int writer = 0; writer < writers; ++writer) {
        if (Meet(edge.contract, writer, writers, reader, readers)) {
          links.push_back({static_cast<int>(e), writer, reader});
        }
      }
    }
  }
  return links;
}

int LinkCapacity(const FragmentGraph& graph, const LinkSpec& link) {
  const auto& edge = graph.edges()[link.edge];
  if (edge.contract.kind != Contract::Kind::kMerge) return edge.contract.capacity;
  const int readers = graph.nodes()[edge.to].replicas;
  const int writers = (graph.nodes()[edge.from].replicas - link.reader + readers - 1) / readers;
  return std::max(1, edge.contract.capacity / writers);
}

std::string ChannelName(const FragmentGraph& graph, const LinkSpec& link) {
  return "channel:" + graph.edges()[link.edge].name + "." + std::to_string(link.writer) + "." +
         std::to_string(link.reader);
}

std::string ReplicaLabel(const FragmentGraph& graph, int node, int replica) {
  return graph.nodes()[node].name + '[' + std::to_string(replica) + ']';
}

std::string ReplicaKey(const FragmentGraph& graph, int node, int replica) {
  return graph.nodes()[node].name + "." + std::to_string(replica);
}

Seats::Seats(const FragmentGraph& graph, const Placement& placement) {
  for (const auto& node : graph.nodes()) {
    runner.emplace_back(node.replicas, -1);
    process.emplace_back(node.replicas, -1);
  }
  for (size_t r = 0; r < placement.runners.size(); ++r) {
    const auto& placed = placement.runners[r];
    WEFT_CHECK(placed.process >= 0 && placed.process < placement.processes)
        << "runner " << r << " is placed in process " << placed.process << " of "
        << placement.processes;
    WEFT_CHECK_GE(placed.threads, 1) << "threads of runner " << r;
    for (const auto& [node, replica] : placed.members) {
      WEFT_CHECK(node >= 0 && node < static_cast<int>(graph.nodes().size()) && replica >= 0 &&
                 replica < graph.nodes()[node].replicas)
          << "the placement has replica " << replica << " of node " << node
          << ", which the graph does not have";
      WEFT_CHECK_EQ(runner[node][replica], -1)
          << ReplicaLabel(graph, node, replica) << " is placed twice, on runners";
      runner[node][replica] = static_cast<int>(r);
      process[node][replica] = placed.process;
    }
  }
  for (size_t n = 0; n < runner.size(); ++n) {
    for (size_t i = 0; i < runner[n].size(); ++i) {
      WEFT_CHECK_GE(runner[n][i], 0)
          << ReplicaLabel(graph, static_cast<int>(n), static_cast<int>(i)) << " is placed nowhere";
    }
  }
}

uint64_t GraphHash(const FragmentGraph& graph, const Placement& placement) {
  std::string text = graph.ToText();
  for (const auto& node : graph.nodes()) {
    text += node.name + " x" + std::to_string(node.replicas) + ":";
    for (const Port& port : node.factory.ports.inputs) text += std::string(" <") + port.name;
    for (const Port& port : node.factory.ports.outputs) text += std::string(" >") + port.name;
    text += "\n";
  }
  for (const auto& edge : graph.edges()) text += std::to_string(edge.contract.capacity) + " ";
  for (const auto& runner : placement.runners) {
    text += "\n" + std::to_string(runner.process);
    for (const auto& [node, replica] : runner.members) {
      text += " " + std::to_string(node) + "." + std::to_string(replica);
    }
  }
  return Fnv1a(text);
}

}  // namespace weft
