// What a run of a language method takes of memory, by the sizes of its models and data, before it
// begins: so that one that does not fit is known at once, and what to change.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataflow/fragment_graph.h"
#include "learners/method.h"

namespace weft {

struct MemoryPart {
  std::string name;
  int64_t bytes = 0;
  std::string keys = "";  // of the config, that lower it
};

// What is in use at the same time.
struct MemoryPhase {
  std::string name;  // "learning"
  std::vector<MemoryPart> parts;

  int64_t bytes() const;
};

class MemoryPlan {
 public:
  explicit MemoryPlan(std::vector<MemoryPhase> phases);

  const MemoryPhase& largest() const { return phases_[largest_]; }
  const std::vector<MemoryPhase>& phases() const { return phases_; }
  // The largest resident set of the run, all its processes together.
  int64_t peak_bytes() const;
  // "3.1 GiB at most, while learning: weights 513 MiB, ...".
  std::string ToText() const;
  // What would make the peak lower, the most first: "micro_batch_tokens (activations, 1.3 GiB),
  // ..".
  std::string Advice() const;

 private:
  std::vector<MemoryPhase> phases_;
  size_t largest_ = 0;
};

// graph: what the method built. Reads the model's description and a part of the data.
MemoryPlan PlanMemory(const LanguageMethod& method, const FragmentGraph& graph);

}  // namespace weft
