// What the tests' graphs share: integer arithmetic that any lost, doubled, reordered or foreign row
// changes, placements at random, and own copies of cuts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataflow/fragment_graph.h"
#include "dataflow/placement.h"
#include "dataflow/runtime.h"

namespace weft::testing {

constexpr int64_t kRows = 8;  // of the logical tensor, over all replicas

inline int64_t Mix(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * 6364136223846793005ULL +
                              static_cast<uint64_t>(b) + 1442695040888963407ULL) >>
         1;
}

inline Tensor Integer(int64_t value) {
  return Tensor::From<int64_t>(Shape{1}, {value});
}

// Every replica on a runner chosen by the digits of `code`; runner r is in process r % processes.
inline Placement Scatter(const FragmentGraph& graph, int runners, int processes, uint64_t code) {
  Placement placement;
  placement.processes = processes;
  placement.runners.resize(static_cast<size_t>(runners));
  for (int r = 0; r < runners; ++r) placement.runners[r].process = r % processes;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    for (int i = 0; i < graph.nodes()[n].replicas; ++i) {
      placement.runners[code % static_cast<uint64_t>(runners)].members.emplace_back(
          static_cast<int>(n), i);
      code = code * 6364136223846793005ULL + 1442695040888963407ULL;
      code ^= code >> 29;
    }
  }
  std::erase_if(placement.runners,
                [](const Placement::Runner& runner) { return runner.members.empty(); });
  return placement;
}

inline Placement Policy(const std::string& name, const FragmentGraph& graph, int threads,
                        int processes = 1) {
  return DistributionPolicies().At(name)(graph, {.threads = threads, .processes = processes});
}

// Own memory: what a cut holds is overwritten when the run goes on.
inline Cut Clone(const Cut& cut) {
  Cut clone;
  for (const auto& [key, map] : cut) {
    for (const auto& [name, tensor] : map) clone[key].Set(name, tensor.Clone());
    clone[key];
  }
  return clone;
}

}  // namespace weft::testing
