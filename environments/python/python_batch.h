// A batch of environments that live in Python: worker processes (python_worker.h) share them and
// step them side by side. A worker that ends or hangs is started again, and the open episodes of
// its environments end there, truncated.
#pragma once

#include <memory>
#include <vector>

#include "environments/batch_layout.h"
#include "environments/python/python_worker.h"

namespace weft {

class PythonBatch final : public BatchEnvironment {
 public:
  // spec: what PythonWorker::Open says of the target. workers: processes, 0 for one per core.
  // Throws ConfigProblem for options that a vector environment cannot keep.
  PythonBatch(const PythonTarget& target, int64_t workers, const EnvironmentSpec& spec,
              const BatchOptions& options);

  const EnvironmentSpec& spec() const override { return layout_.spec(); }
  int64_t rows() const override { return layout_.options().rows; }
  TimeStep MakeTimeStep() const override { return weft::MakeTimeStep(layout_.spec(), rows()); }
  void Reset(TimeStep& out) override;
  void Step(const Tensor& action, TimeStep& out) override;
  TensorMap Save() const override;
  void Load(const TensorMap& state) override;

 private:
  struct World {
    RowProgress progress;
    uint64_t seed = 0;                    // the episode was reset with
    std::vector<std::byte> actions = {};  // all since, to be repeated by Load; not of vectors
  };
  struct Worker {
    int64_t first;  // its first environment
    std::unique_ptr<PythonWorker> worker;
    bool fresh = true;  // none of its episodes has begun
  };

  std::span<StepType> TypesOf(int64_t world) {
    return std::span(types_).subspan(static_cast<size_t>(world) * agents_, agents_);
  }
  bool Over(int64_t world) const;
  // Repeats that the next action may still have.
  uint64_t Repeats(int64_t steps) const;
  std::span<std::byte> Observation(Worker& worker, int64_t index, size_t leaf, size_t agent);

  void Start();
  void Run(const BatchLayout::View& view);
  void Command(const BatchLayout::View& view, Worker& worker, int64_t index);
  void Lose(Worker& worker, int64_t index);
  void Await(Worker& worker, bool replays);
  void Collect(const BatchLayout::View& view, Worker& worker, int64_t index);
  void Replay();

  const PythonTarget target_;
  const int64_t worker_count_;
  BatchLayout layout_;  // of agent rows
  const size_t agents_;
  const int64_t step_limit_;
  const size_t action_bytes_;  // of one row
  std::vector<World> worlds_;
  std::vector<StepType> types_;  // [N * G], of the last step; kLast before the first
  std::vector<uint8_t> absent_;  // [N * G], in the last step
  std::vector<Worker> workers_;  // from the first step on
};

}  // namespace weft
