// From edges to links: which writer replica meets which reader replica, numbered alike in every
// process and placement.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataflow/fragment_graph.h"
#include "dataflow/placement.h"

namespace weft {

struct LinkSpec {
  int edge, writer, reader;  // edge number and the two replicas
};

// All links of a validated graph, by edge, then reader, then writer.
std::vector<LinkSpec> LinkSpecs(const FragmentGraph& graph);

int LinkCapacity(const FragmentGraph& graph, const LinkSpec& link);

// "channel:<edge>.<writer>.<reader>", the key of its unread messages in a cut.
std::string ChannelName(const FragmentGraph& graph, const LinkSpec& link);
// "learner[0]" for people, "learner.0" in a cut.
std::string ReplicaLabel(const FragmentGraph& graph, int node, int replica);
std::string ReplicaKey(const FragmentGraph& graph, int node, int replica);

// Which process and runner has a replica.
struct Seats {
  // Throws naming a replica that the placement forgets, has twice or does not know.
  Seats(const FragmentGraph& graph, const Placement& placement);
  std::vector<std::vector<int>> runner, process;  // [node][replica]
};

// What two processes must agree on before they talk: graph, ports, contracts and placement.
uint64_t GraphHash(const FragmentGraph& graph, const Placement& placement);

}  // namespace weft
