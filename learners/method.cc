#include "learners/method.h"

#include <algorithm>
#include <thread>

#include "dataflow/placement.h"

namespace weft {

void CheckpointConfig::Fields(FieldVisitor& v) {
  v.Field("every", every, "steps between checkpoints; 0: twenty times over the run",
          Range::AtLeast(0));
  v.Field("min_seconds", min_seconds, "least time between two checkpoints", Range::AtLeast(0));
  v.Field("keep", keep, "verified checkpoints to keep", Range::AtLeast(2));
}

void Method::Fields(FieldVisitor& v) {
  v.Field("seed", seed, "the one seed of the run");
  v.Field("total_steps", total_steps, "steps to train for: of environments, or of an optimiser",
          Range::AtLeast(1));
  v.Choice("placement", placement, DistributionPolicies().Names(),
           "which process and thread steps what");
  v.Field("processes", processes, "worker processes of placements that use them",
          Range::Between(1, 1024));
  v.Choice("device", device, {"cpu"}, "where tensors live");
  v.Field("threads", threads, "threads of the whole run on this machine; 0: one per core",
          Range::Between(0, 1024));
  v.Field("run", run, "name of the folder under runs/; empty: made from what is trained and seed");
  v.Field("published", published, "the published figure that weft repro prints beside the result");
  v.Section("checkpoint", checkpoint, "when the run is saved");
}

int Method::ThreadBudget() const {
  if (threads > 0) return static_cast<int>(threads);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int64_t Method::CheckpointEvery() const {
  return checkpoint.every > 0 ? checkpoint.every : std::max<int64_t>(1, total_steps / 20);
}

void LanguageMethod::Fields(FieldVisitor& v) {
  v.Choice("algorithm", algorithm, LanguageMethods().Names(),
           "the method; its own keys follow the shared ones");
  Method::Fields(v);
}

Registry<LanguageMethodEntry>& LanguageMethods() {
  static auto& registry = *new Registry<LanguageMethodEntry>("algorithm");
  return registry;
}

}  // namespace weft
