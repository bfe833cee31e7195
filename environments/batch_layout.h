// What every batch of environments shares, whatever the class of its rows: where each row reads its
// action and writes its time step, the checks on both, and the names of rows in errors.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "environments/batch_environment.h"
#include "environments/leaf_bounds.h"

namespace weft {

// What a batch knows of each row besides its environment.
struct RowProgress {
  Rng rng;
  int64_t episode = -1;  // id of the running one
  int64_t steps = 0;     // in it
};

// Throws Error(kInvalidArgument): an environment wrote another type or discount than its Reset or
// Step may.
[[noreturn]] void RefuseOutcome(const char* function, StepType type, double discount);

class BatchLayout {
 public:
  static constexpr size_t kMaxLeaves = 16;  // of an observation
  using LeafPointers = std::array<std::byte*, kMaxLeaves>;

  // Where the rows of one Reset or Step read and write.
  struct View {
    LeafPointers leaves{};                    // what the environments write
    std::array<float*, kMaxLeaves> floats{};  // where a floating leaf ends up; null for u8 and i64
    const std::byte* action = nullptr;
    int64_t action_bytes = 0;  // of one row
    DType action_dtype = DType::kFloat32;
    float* reward = nullptr;
    float* discount = nullptr;
    uint8_t* type = nullptr;
    int64_t* episode_id = nullptr;
  };

  // spec().time_limit and frames_per_second become those in force. Throws Error(kInvalidArgument)
  // for options out of range.
  BatchLayout(const EnvironmentSpec& spec, const BatchOptions& options);

  const EnvironmentSpec& spec() const { return spec_; }
  const BatchOptions& options() const { return options_; }

  // Throws Error(kInvalidArgument) when time step or action have the wrong leaves, shapes or
  // dtypes.
  View Open(TimeStep& out);
  View Open(const Tensor& action, TimeStep& out);

  // Where one row writes its observation, and its action.
  LeafPointers Leaves(const View& view, int64_t row) const {
    LeafPointers leaves;
    for (size_t i = 0; i < leaf_count_; ++i) leaves[i] = view.leaves[i] + row * leaf_bytes_[i];
    return leaves;
  }
  // [leaves], bytes from one row to the next.
  const int64_t* leaf_bytes() const { return leaf_bytes_.data(); }
  static ActionRow Action(const View& view, int64_t row) {
    return {view.action + row * view.action_bytes, view.action_dtype};
  }

  // Before rows [begin, end) step: throws for an action outside a discrete space or that is not
  // finite. Rows that are about to be reset (`before` says kLast) may hold anything.
  void CheckActions(const View& view, std::span<const StepType> before, int64_t begin,
                    int64_t end) const;
  // After they stepped: rounds f64 observations to f32; throws Error(kDiverged) for observations
  // and rewards that are not finite, and Error(kInvalidArgument) for an action mask that allows
  // nothing, unless the row ended: then what has nothing left is all allowed.
  // steps(row): of its episode so far, for errors.
  void Finish(const View& view, int64_t begin, int64_t end,
              const std::function<int64_t(int64_t)>& steps) const;
  // Throws Error(kInvalidArgument) for an element of an observation that lies outside its bounds
  // (of floats: rounded to f32, as the elements are).
  void CheckBounds(const View& view, int64_t begin, int64_t end,
                   const std::function<int64_t(int64_t)>& steps) const;

  // The exact state of all rows. progress(row) gives what is above, rest(row, ..) saves or loads
  // what else there is. Load throws Error(kCorrupt) for another batch's state.
  TensorMap SaveRows(std::span<const StepType> types,
                     const std::function<const RowProgress&(size_t)>& progress,
                     const std::function<void(size_t, Writer&)>& rest) const;
  void LoadRows(const TensorMap& state, std::span<StepType> types,
                const std::function<RowProgress&(size_t)>& progress,
                const std::function<void(size_t, Reader&)>& rest) const;

  // "Hopper-v5, row 3 (seed 7)", "simple_tag_v3, row 7 (agent_0 of environment 1, seed 7)"
  std::string RowName(int64_t row) const;
  // "Hopper-v5, row 3 (seed 7), step 12"; step 0 is the reset.
  std::string StepName(int64_t row, int64_t step) const;

 private:
  void CheckMasks(const View& view, int64_t begin, int64_t end) const;
  // Throws for element i of the action, unless its row is about to be reset.
  void RefuseAction(std::span<const StepType> before, int64_t i, double value) const;

  EnvironmentSpec spec_;
  BatchOptions options_;
  size_t leaf_count_;
  std::array<int64_t, kMaxLeaves> leaf_elements_{},
      leaf_bytes_{};                        // of one row, as the environment writes it
  std::array<Tensor, kMaxLeaves> scratch_;  // [N, ..] f64 of a leaf that is rounded, else undefined
  int64_t action_elements_;                 // of one row
  std::vector<int64_t> limits_, starts_;    // of each element of a discrete action
  size_t mask_leaf_ = kMaxLeaves;           // which is the action mask, if any
  std::vector<LeafBounds> bounds_;          // of the leaves that have any to check
  Tensor shifted_action_;  // the action with starts_ added; undefined when all are 0
};

}  // namespace weft
