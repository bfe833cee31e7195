// Environments that are stepped each for itself: sent actions and received from in whatever order
// they are ready, as with EnvPool's send and recv, and with autoreset in each of Gymnasium's modes.
// What an environment does depends on its number and the seed alone, in every mode and with any
// number of threads: it is what the same rows of a BatchEnvironment do, wrappers included.
//
//   VectorEnvironment vector(config, {.environments = 64, .threads = 8});
//   VectorStep step = vector.MakeStep(16);
//   std::vector<int64_t> ids(16);
//   for (vector.Reset();;) {
//     vector.Receive(ids, step);               // the first 16 that are ready
//     vector.Send(ids, Act(step.now));
//   }
//
// A batch steps cheap environments faster: here each step costs some microseconds of its own. It
// pays where steps are long and uneven (Python, pictures, physics with contacts).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/task_threads.h"
#include "environments/environment_config.h"

namespace weft {

// What happens at the end of an episode, named as gymnasium.vector.AutoresetMode.
enum class Autoreset : uint8_t {
  kNextStep,  // the next step ignores its action and begins a new one, as in a BatchEnvironment
  kSameStep,  // the step that ends it begins a new one, too
  kDisabled,  // nothing: a step is refused until Reset
};

struct VectorOptions {
  int64_t environments = 1;
  int64_t first = 0;  // global number of environment 0; keys the Rng
  uint64_t seed = 0;
  Purpose purpose = Purpose::kEnvironment;
  Autoreset autoreset = Autoreset::kNextStep;
  int threads = 1;  // that step them
};

// Of M environments with G agents each, rows M * G.
struct VectorStep {
  TimeStep now;
  // kSameStep: where `ended` is 1, `last` has the step that ended the episode and `now` the first
  // of the next one. Else nothing ends that way.
  TimeStep last;
  std::vector<uint8_t> ended;  // [M]
};

// For one thread at a time. After an Error of an environment it is good for nothing but Load.
class VectorEnvironment {
 public:
  // rows of the config are not looked at. Throws as MakeBatchEnvironment does.
  VectorEnvironment(const EnvironmentConfig& config, const VectorOptions& options);
  ~VectorEnvironment();

  const EnvironmentSpec& spec() const { return units_.front()->batch->spec(); }
  int64_t environments() const { return std::ssize(units_); }
  VectorStep MakeStep(int64_t environments) const;

  // Begins a new episode in all environments, or in those named, to be received.
  void Reset();
  void Reset(std::span<const int64_t> ids);
  // action [M * G, ..] for the environments named. Throws Error(kInvalidArgument) for one that is
  // under way (sent to and not yet received from), and in kDisabled for one whose episode has
  // ended.
  void Send(std::span<const int64_t> ids, const Tensor& action);
  // Waits until as many environments as `ids` has room for are ready, and writes those that were
  // first, by number. With room for all it so steps in lockstep. Throws Error(kInvalidArgument)
  // when fewer are under way, and what an environment threw.
  void Receive(std::span<int64_t> ids, VectorStep& out);

  // Exact state. Save: nothing may be under way. Load forgets what is.
  TensorMap Save() const;
  void Load(const TensorMap& state);

 private:
  enum class Task : uint8_t { kNone, kReset, kStep };
  struct Unit {
    std::unique_ptr<BatchEnvironment> batch;  // of one environment
    Tensor action;
    TimeStep now, last;
    bool over = true;         // its episode
    bool ended = false;       // in this very step, and began anew
    Task task = Task::kNone;  // under way
    std::exception_ptr failure = nullptr;
  };

  void Start(std::span<const int64_t> ids, Task task);
  void Run(int64_t id);  // on any thread
  void Advance(Unit& unit) const;
  std::unique_lock<std::mutex> AwaitReady(size_t count);

  const Autoreset autoreset_;
  std::vector<std::unique_ptr<Unit>> units_;
  std::mutex mutex_;  // of ready_ and wanted_
  std::condition_variable changed_;
  std::deque<int64_t> ready_;  // in the order in which they finished
  std::atomic<size_t> ready_count_ = 0;
  size_t wanted_ = 0;  // that somebody sleeps for; 0: nobody
  int64_t under_way_ = 0;
  std::unique_ptr<TaskThreads> threads_;  // last: it uses all above
};

}  // namespace weft
