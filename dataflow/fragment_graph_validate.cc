// What can be known to be wrong with a graph before anything runs.
#include <functional>
#include <string>
#include <vector>

#include "base/check.h"
#include "dataflow/fragment_graph.h"

namespace weft {
namespace {

using Kind = Contract::Kind;

[[noreturn]] void Reject(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

void CheckPortsConnected(const FragmentGraph& graph) {
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const auto& node = graph.nodes()[n];
    const auto count = [&](int port, bool input) {
      int edges = 0;
      for (const auto& edge : graph.edges()) {
        if (edge.contract.kind == Kind::kReduce) continue;
        edges += input ? edge.to == static_cast<int>(n) && edge.to_port == port
                       : edge.from == static_cast<int>(n) && edge.from_port == port;
      }
      return edges;
    };
    const PortList& ports = node.factory.ports;
    for (size_t i = 0; i < ports.inputs.size(); ++i) {
      const int edges = count(static_cast<int>(i), true);
      const std::string name = node.name + "." + ports.inputs[i].name;
      if (edges > 1)
        Reject("the input " + name + " has " + std::to_string(edges) + " edges; connect one");
      if (edges == 0 && !ports.inputs[i].optional)
        Reject("nothing is connected to the input " + name);
    }
    for (size_t i = 0; i < ports.outputs.size(); ++i) {
      if (count(static_cast<int>(i), false) == 0 && !ports.outputs[i].optional) {
        Reject("the output " + node.name + "." + ports.outputs[i].name +
               " is connected to nothing");
      }
    }
  }
}

void CheckReplicaCounts(const FragmentGraph& graph) {
  for (const auto& edge : graph.edges()) {
    const int writers = graph.nodes()[edge.from].replicas;
    const int readers = graph.nodes()[edge.to].replicas;
    const std::string counts = edge.name + ": " + std::to_string(writers) + " writers and " +
                               std::to_string(readers) + " readers";
    if (edge.contract.kind == Kind::kRows && writers % readers != 0 && readers % writers != 0) {
      Reject(counts + "; with Rows one count must divide the other");
    }
    if (edge.contract.kind == Kind::kMerge && readers > writers) {
      Reject(counts + "; with Merge a reader beyond the writers would never get a message");
    }
    if (edge.contract.kind == Kind::kBroadcast && writers > 1 && !graph.Reduces(edge.from)) {
      Reject(counts + "; Broadcast needs one writer, or writers joined by Reduce");
    }
  }
}

// A cycle none of whose edges has a message before its reader steps for the first time can never
// move.
void CheckCyclesPrimed(const FragmentGraph& graph) {
  const int nodes = static_cast<int>(graph.nodes().size());
  std::vector<int> state(nodes, 0);  // 0 new, 1 on the path, 2 done
  std::vector<std::string> path;
  const std::function<void(int)> visit = [&](int node) {
    state[node] = 1;
    for (const auto& edge : graph.edges()) {
      if (edge.from != node || edge.contract.kind == Kind::kReduce) continue;
      if (graph.nodes()[node].factory.ports.outputs[edge.from_port].primed ||
          graph.nodes()[edge.to].factory.ports.inputs[edge.to_port].late) {
        continue;
      }
      path.push_back(edge.name);
      if (state[edge.to] == 1) {
        size_t first = path.size() - 1;
        const std::string start = graph.nodes()[edge.to].name + ".";
        while (first > 0 && path[first].compare(0, start.size(), start) != 0) --first;
        std::string cycle;
        for (size_t i = first; i < path.size(); ++i) cycle += "\n  " + path[i];
        Reject("a cycle can never start, as no output on it is primed and no input late:" + cycle);
      }
      if (state[edge.to] == 0) visit(edge.to);
      path.pop_back();
    }
    state[node] = 2;
  };
  for (int node = 0; node < nodes; ++node) {
    if (state[node] == 0) visit(node);
  }
}

}  // namespace

void FragmentGraph::Validate() const {
  if (nodes_.empty()) Reject("the graph has no fragments");
  CheckPortsConnected(*this);
  CheckReplicaCounts(*this);
  CheckCyclesPrimed(*this);
}

}  // namespace weft
