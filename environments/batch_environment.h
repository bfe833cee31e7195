// Rows in, rows out: what actors see. N rows step together; a row whose last step was kLast is reset by the next Step,
// which ignores its action and writes kFirst (autoreset of the next-step kind, as in dm_env, EnvPool and Gymnasium's
// NEXT_STEP). Floating observation leaves arrive as f32 whatever the environment computes in.
#pragma once

#include <cstdint>
#include <memory>

#include "environments/environment.h"
#include "tensor/tensor_map.h"

namespace weft {

class ThreadPool;

struct TimeStep {
  TensorMap observation;  // leaves [N, ..]; u8 and i64 stay, floats are f32
  Tensor reward;          // f32 [N]; of the step that led here, 0 on kFirst
  Tensor discount;        // f32 [N]; 0 after a terminal step, else 1
  Tensor type;            // u8 [N], StepType
  Tensor episode_id;      // i64 [N]; counts the episodes of the row from 0
};

struct BatchOptions {
  int64_t rows = 1;        // N
  int64_t first_row = 0;   // global index of row 0: keys the Rng, so the split over actors does not matter
  uint64_t seed = 0;
  Purpose purpose = Purpose::kEnvironment;  // kEvaluation for evaluators: disjoint seeds
  int64_t time_limit = -1;  // -1: the spec's; 0: none
  ThreadPool* pool = nullptr;
};

class BatchEnvironment {
 public:
  virtual ~BatchEnvironment() = default;
  virtual const EnvironmentSpec& spec() const = 0;
  virtual int64_t rows() const = 0;

  // Allocates a TimeStep of the right leaves; Reset and Step write into such a one in place and allocate nothing.
  virtual TimeStep MakeTimeStep() const = 0;
  virtual void Reset(TimeStep& out) = 0;
  // action [N] or [N, A] in the space's canonical form (space.h). Errors of a row name the environment, row and seed.
  virtual void Step(const Tensor& action, TimeStep& out) = 0;

  virtual TensorMap Save() const = 0;
  virtual void Load(const TensorMap& state) = 0;
};

}  // namespace weft
