// What every learner fragment shares: taking data, publishing snapshots, asking for evaluations,
// videos and checkpoints, stopping, and one optimiser step with its guards. A learner of an
// algorithm says how it learns from one message of data.
//
//   rollout | batch ==> learner ==parameters==> actors
//                          |=====snapshot=====> evaluator ==result==> learner (only with
//                          stop_at_return)
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>

#include "dataflow/fragment.h"
#include "nn/optimizer.h"
#include "tensor/tape.h"

namespace weft {

struct LearnerOptions {
  int64_t total_steps = 0;
  int64_t evaluation_every = 0;  // environment steps
  int64_t video_every = 0;       // environment steps; 0: none
  int64_t checkpoint_every = 0;  // environment steps
  double checkpoint_min_seconds = 0;
  double stop_at_return = std::numeric_limits<double>::infinity();
  // Updates by which the parameters that actors read are behind, exactly: the first ones are read
  // once more, so that actors act while the learner learns. 0 or 1, as an edge has room for two.
  int64_t lag = 0;
  std::string initial_policy;  // a policy.safetensors to start from, "" for fresh weights
};

class Learner : public Fragment {
 public:
  enum Input { kData, kEvaluation };
  enum Output { kParameters, kSnapshot, kPriority };
  // data: what the algorithm calls its input, "rollout" or "batch"; priority: it answers batches
  // with priorities.
  static PortList Ports(const char* data, bool priority = false);

  explicit Learner(const LearnerOptions& options) : options_(options) {}

  void Start(weft::Ports& ports) override;
  PortSet Needs() const override;
  void Step(weft::Ports& ports) final;
  TensorMap Save() const final;
  void Load(const TensorMap& state) final;

 protected:
  struct Learned {
    int64_t env_steps = 0;  // of the whole run so far
    bool publish = true;    // false: more batches of the same chunk follow
  };
  virtual Learned Learn(const Message& data, weft::Ports& ports) = 0;

  // Everything an Agent of the algorithm loads; shared by handle, not written again.
  virtual TensorMap Snapshot() = 0;
  // The same for checkpoints: what it holds is not written to any more.
  virtual TensorMap CopyPolicy() const = 0;
  virtual void LoadPolicy(const TensorMap& policy) = 0;
  virtual TensorMap SaveRest() const = 0;  // optimisers, statistics, random positions
  virtual void LoadRest(const TensorMap& state) = 0;

  // One optimiser step on loss (one element) over parameters: gradients, sum over the learner's
  // replicas, clip by global norm (max_norm 0: none), update. Returns the norm before clipping.
  // Throws Error(kDiverged) naming the first op of the recording, or the first parameter, whose
  // value is not finite; then nothing was updated.
  double Minimise(Tape& tape, const Tensor& loss, Optimizer& optimizer,
                  std::span<const Tensor> parameters, double learning_rate, double max_norm,
                  weft::Ports& ports);

  // Sum of small f32 values over all replicas, in double.
  static double GlobalSum(const Tensor& values, weft::Ports& ports);

  int64_t env_steps() const { return env_steps_; }
  int64_t newest_version() const { return version_ - 1; }  // that was published
  double progress() const;  // share of total_steps done, in [0, 1]
  bool finished() const { return env_steps_ >= options_.total_steps; }

 private:
  void Publish(weft::Ports& ports);
  // Hands a snapshot to the evaluator when one is due after the steps since `before`.
  void WriteSnapshot(int64_t before, weft::Ports& ports);

  const LearnerOptions options_;
  int64_t version_ = 0;  // of the published parameters
  int64_t env_steps_ = 0;
  int64_t next_evaluation_ = 0, next_checkpoint_ = 0;  // environment steps
  bool awaits_evaluation_ = false;
  std::chrono::steady_clock::time_point last_checkpoint_ = std::chrono::steady_clock::now();
};

}  // namespace weft
