// A run on disk: runs/NAME/ with config.yaml, manifest.json, metrics.jsonl, the TensorBoard event
// file and checkpoints/STEP/. A checkpoint is a folder written beside its final name, fsynced and
// renamed; older ones are removed only after it was read back and its checksums held.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataflow/runtime.h"
#include "tensor/tensor_map.h"

namespace weft {

struct Checkpoint {
  std::string path;
  int64_t steps = 0;
  double wall_seconds = 0;  // of training so far
  bool perturbed = false;
  Cut cut;
};

class RunDirectory {
 public:
  // Makes runs/NAME; an empty name becomes stem, stem-2, stem-3, ...; a given name that exists is
  // an Error(kConfig).
  static RunDirectory Create(const std::string& name, const std::string& stem,
                             const std::string& config_yaml);
  // An existing run, by path or by name under runs/; Error(kConfig) says what is missing.
  static RunDirectory Open(const std::string& path_or_name);

  const std::string& path() const { return path_; }
  std::string name() const;
  std::string config_path() const { return path_ + "/config.yaml"; }

  // Throws Error(kIo) when it cannot be written: the caller warns and goes on, the older ones are
  // still there.
  void Save(const Checkpoint& checkpoint, int64_t keep) const;
  // The newest checkpoint that verifies. Damaged ones are skipped and described in warnings;
  // nothing when there is none.
  std::optional<Checkpoint> Newest(std::vector<std::string>& warnings) const;
  // Replaces keys of manifest.json (values are JSON text).
  void UpdateManifest(const std::vector<std::pair<std::string, std::string>>& entries) const;

 private:
  explicit RunDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// One checkpoint folder, verified against its checksums; Error(kCorrupt) names file and fault.
Checkpoint ReadCheckpoint(const std::string& path);
// Environment steps that the learner of a cut has taken.
int64_t StepsOf(const Cut& cut);
// What an Agent loads, out of a checkpoint's cut: the learner's leaves under "policy".
TensorMap PolicyOf(const Checkpoint& checkpoint);

}  // namespace weft
