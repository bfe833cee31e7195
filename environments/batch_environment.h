// Rows in, rows out: what actors see. N rows step together; a row whose last step was kLast is
// reset by the next Step, which ignores its action and writes kFirst (autoreset of the next-step
// kind, as in dm_env, EnvPool and Gymnasium's NEXT_STEP). Floating observation leaves arrive as f32
// whatever the environment computes in.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "environments/environment.h"
#include "tensor/tensor_map.h"

namespace weft {

class RowActivity;
class ThreadPool;

struct TimeStep {
  TensorMap observation;  // leaves [N, ..]; u8 and i64 stay, floats are f32
  Tensor reward;          // f32 [N]; of the step that led here, 0 on kFirst
  Tensor discount;        // f32 [N]; 0 after a terminal step, else 1
  Tensor type;            // u8 [N], StepType
  Tensor episode_id;      // i64 [N]; counts the episodes of the row from 0

  // All of it as one map of handles: the observation leaves by name, then reward, discount, type
  // and episode_id.
  TensorMap Leaves() const;
};

struct BatchOptions {
  int64_t rows = 1;  // environments: N rows, or of G agents each N * G
  // Global index of environment 0: keys the Rng, so the split over actors does not matter.
  int64_t first_row = 0;
  uint64_t seed = 0;
  Purpose purpose = Purpose::kEnvironment;  // kEvaluation for evaluators: disjoint seeds
  int64_t time_limit = -1;                  // in steps of the environment; -1: the spec's; 0: none
  // An action is held for up to so many steps, whose rewards add up; the end cuts it short.
  int64_t action_repeat = 1;
  ThreadPool* pool = nullptr;       // steps the rows; null: the calling thread
  RowActivity* activity = nullptr;  // where rows say that they are busy, if anyone wants to know
};

class BatchEnvironment {
 public:
  virtual ~BatchEnvironment() = default;
  virtual const EnvironmentSpec& spec() const = 0;  // its time_limit is the one in force
  virtual int64_t rows() const = 0;

  // Allocates a TimeStep of the right leaves; Reset and Step write into such a one in place and
  // allocate nothing.
  virtual TimeStep MakeTimeStep() const = 0;
  // Starts a new episode in every row.
  virtual void Reset(TimeStep& out) = 0;
  // action [N] or [N, A] in the space's canonical form (space.h). Errors of a row name the
  // environment, row, seed and step: kInvalidArgument for an action outside a discrete space or an
  // observation outside its bounds, kDiverged
  // for a NaN or infinity in action, observation or reward. After an error the batch is good for
  // nothing but Load.
  virtual void Step(const Tensor& action, TimeStep& out) = 0;

  // How one of the environments (not of the rows, of which several agents have one each) looks, as
  // in environment.h. Throws Error(kConfig) where they draw nothing or are stepped elsewhere.
  virtual void Render(int64_t environment, Canvas& canvas) const;
  virtual std::string Text(int64_t environment) const {
    (void)environment;
    return "";
  }

  // Exact state of all rows, random streams included.
  virtual TensorMap Save() const = 0;
  virtual void Load(const TensorMap& state) = 0;
};

// Fills action [N, ..] with random actions for the rows of a time step, of those that its leaf
// action_mask allows if there is one. Row i draws from rngs[i % rngs.size()].
void SampleActions(const Space& space, const TimeStep& step, std::span<Rng> rngs, Tensor& action);

// A TimeStep for `rows` rows of observations as `spec` describes them, every element 0.
TimeStep MakeTimeStep(const EnvironmentSpec& spec, int64_t rows);

}  // namespace weft
