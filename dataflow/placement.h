// Placement: which process and thread steps each replica. Data, made from the graph and the
// resources by a distribution policy that the config names.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/registry.h"
#include "dataflow/fragment_graph.h"

namespace weft {

struct Resources {
  int threads = 1;    // of this machine, for the whole run
  int processes = 1;  // worker processes beside the main one, for policies that use them
};

struct Placement {
  struct Runner {
    int process = 0;  // 0 is the main process
    int threads = 1;  // kernel and environment threads of this runner, itself counted
    std::vector<std::pair<int, int>>
        members;  // (node, replica), stepped by this runner's thread in this order
  };
  std::vector<Runner> runners;
  int processes = 1;                                     // main process counted
  std::string ToText(const FragmentGraph& graph) const;  // the thread plan printed at start
};

using DistributionPolicy = Placement (*)(const FragmentGraph&, const Resources&);
// serial, threads, split_actors, data_parallel; see placement.cc. They go by Role and replica
// counts, never by names.
Registry<DistributionPolicy>& DistributionPolicies();

}  // namespace weft
