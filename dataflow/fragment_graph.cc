#include "dataflow/fragment_graph.h"

#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace weft {
namespace {

std::pair<std::string, std::string> SplitEnd(const std::string& end) {
  const size_t dot = end.find('.');
  WEFT_CHECK(dot != std::string::npos && dot > 0 && dot + 1 < end.size())
      << "\"" << end << "\" should be \"fragment.port\"";
  return {end.substr(0, dot), end.substr(dot + 1)};
}

int FindPort(const std::vector<Port>& ports, const std::string& name, const std::string& fragment,
             const char* kind) {
  std::vector<std::string> names;
  for (size_t i = 0; i < ports.size(); ++i) {
    if (name == ports[i].name) return static_cast<int>(i);
    names.emplace_back(ports[i].name);
  }
  throw Error(ErrorCode::kInvalidArgument, "fragment " + fragment + " has no " + kind + " \"" +
                                               name + "\"" + DidYouMean(name, names) +
                                               "; it has: " + Join(names, ", "));
}

std::string ContractText(const Contract& contract) {
  switch (contract.kind) {
    case Contract::Kind::kRows:
      return "rows(dim " + std::to_string(contract.dim) + ")";
    case Contract::Kind::kMerge:
      return "merge(capacity " + std::to_string(contract.capacity) + ")";
    case Contract::Kind::kBroadcast:
      return "broadcast(max_lag " + std::to_string(contract.max_lag) + ")";
    case Contract::Kind::kReduce:
      return "reduce";
  }
  return "";
}

}  // namespace

Contract Rows(int dim, int capacity) {
  WEFT_CHECK(dim >= 0 && dim < Shape::kMaxRank) << "rows lie in dimension " << dim;
  WEFT_CHECK_GE(capacity, 1) << "an edge needs room for one message";
  return {.kind = Contract::Kind::kRows, .dim = dim, .capacity = capacity};
}

Contract Merge(int capacity) {
  WEFT_CHECK_GE(capacity, 1) << "an edge needs room for one message";
  return {.kind = Contract::Kind::kMerge, .capacity = capacity};
}

Contract Broadcast(int max_lag) {
  WEFT_CHECK_GE(max_lag, 0) << "versions that a reader may be behind";
  return {.kind = Contract::Kind::kBroadcast, .max_lag = max_lag};
}

Contract Reduce() {
  return {.kind = Contract::Kind::kReduce};
}

void FragmentGraph::Add(std::string name, int replicas, FragmentFactory factory, Role role) {
  WEFT_CHECK(!name.empty() && name.find_first_of(". :[]") == std::string::npos)
      << "the fragment name \"" << name << "\" must not be empty or hold . : [ ] or spaces";
  WEFT_CHECK_EQ(NodeIndex(name), -1) << "the fragment " << name << " is there already";
  WEFT_CHECK_GE(replicas, 1) << "replicas of " << name;
  WEFT_CHECK_LE(factory.ports.inputs.size(), 32u) << "inputs of " << name;
  WEFT_CHECK(static_cast<bool>(factory.make)) << "the fragment " << name << " has no factory";
  nodes_.push_back({std::move(name), replicas, std::move(factory), role});
}

int FragmentGraph::NodeIndex(std::string_view name) const {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

bool FragmentGraph::Reduces(int node) const {
  for (const Edge& edge : edges_) {
    if (edge.contract.kind == Contract::Kind::kReduce && edge.from == node) return true;
  }
  return false;
}

void FragmentGraph::Connect(const std::string& from, const std::string& to, Contract contract) {
  const auto find_node = [this](const std::string& name) {
    const int node = NodeIndex(name);
    if (node >= 0) return node;
    std::vector<std::string> names;
    for (const Node& known : nodes_) names.push_back(known.name);
    throw Error(ErrorCode::kInvalidArgument,
                "there is no fragment \"" + name + "\"" + DidYouMean(name, names));
  };
  const auto [from_name, from_port] = SplitEnd(from);
  const auto [to_name, to_port] = SplitEnd(to);
  Edge edge{.from = find_node(from_name),
            .from_port = -1,
            .to = find_node(to_name),
            .to_port = -1,
            .contract = contract,
            .name = from + " -> " + to};
  if (contract.kind == Contract::Kind::kReduce) {
    WEFT_CHECK_EQ(edge.from, edge.to) << edge.name << ": Reduce joins the replicas of one fragment";
    WEFT_CHECK(!Reduces(edge.from)) << edge.name << ": its replicas are joined already";
  } else {
    edge.from_port =
        FindPort(nodes_[edge.from].factory.ports.outputs, from_port, from_name, "output");
    edge.to_port = FindPort(nodes_[edge.to].factory.ports.inputs, to_port, to_name, "input");
  }
  edges_.push_back(std::move(edge));
}

std::string FragmentGraph::ToText() const {
  std::string text;
  for (const Edge& edge : edges_) {
    text += edge.name + "  [" + std::to_string(nodes_[edge.from].replicas) + " to " +
            std::to_string(nodes_[edge.to].replicas) + "]  " + ContractText(edge.contract) + "\n";
  }
  return text;
}

std::string FragmentGraph::ToDot() const {
  std::string text = "digraph weft {\n  rankdir=LR;\n  node [shape=box, style=rounded];\n";
  for (const Node& node : nodes_) {
    text += "  \"" + node.name + "\" [label=\"" + node.name +
            (node.replicas > 1 ? " x " + std::to_string(node.replicas) : "") + "\"];\n";
  }
  for (const Edge& edge : edges_) {
    const bool reduce = edge.contract.kind == Contract::Kind::kReduce;
    const std::string label =
        reduce ? "" : std::string(nodes_[edge.to].factory.ports.inputs[edge.to_port].name) + "\\n";
    text += "  \"" + nodes_[edge.from].name + "\" -> \"" + nodes_[edge.to].name + "\" [label=\"" +
            label + ContractText(edge.contract) + "\"];\n";
  }
  return text + "}\n";
}

}  // namespace weft
