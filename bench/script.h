// A script of what the rows of a batch do, and who can play it: the batch itself or a bare loop
// over the same physics.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace weft {

class ThreadPool;

// What N rows do in T steps: the same actions for the batch and for a bare loop.
struct Script {
  std::vector<Tensor> actions;  // T of [N, ..]
  struct Event {
    bool first;                   // the step resets the row, to `numbers`
    std::vector<double> numbers;  // state, or the action
  };
  // [N][T + 1]; the first event comes before the steps. Only for bare loops that need the states.
  std::vector<std::vector<Event>> rows;
};

// Plays a script from its start, some steps at a time.
class Player {
 public:
  virtual ~Player() = default;
  virtual void Rewind() = 0;
  virtual void Play(const Script& script, int64_t begin, int64_t end) = 0;
};

// MuJoCo's steps and nothing else (mj_step, and mj_rnePostConstraint where the task reads contact
// forces), from the states and with the controls of the script, which must outlive it; each thread
// plays its rows alone. Exists for Gymnasium's MuJoCo tasks in a build with MuJoCo.
bool HasBareMujoco(const std::string& id);
std::unique_ptr<Player> MakeBareMujoco(const std::string& id, const Script& script,
                                       ThreadPool& pool);

}  // namespace weft
