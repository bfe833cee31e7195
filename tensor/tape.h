// Automatic differentiation: forward eager, backward compiled. While a tape records, each op with a
// tracked input appends a node and mixes it into a running hash. Gradient() looks the hash up: the
// first time it compiles the backward pass to a flat list of kernels with an arena for the
// intermediate gradients; later times it runs that list on the buffers of this step. With
// Context::plan off the nodes are interpreted one by one; both give equal bits.
//
//   Tape tape(parameters);              // once per learner
//   {
//     Tape::Recording recording(tape);  // clears the last step
//     Tensor loss = ...;
//     std::span<const Tensor> gradients = tape.Gradient(loss, parameters);
//   }
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "tensor/tensor.h"

namespace weft {

class TapeRecord;

class Tape {
 public:
  // Tracks the parameters: their handles are marked, so ops that meet copies of these handles are
  // recorded. A handle is tracked by at most one tape, the last one. The tape is used by one thread
  // at a time.
  explicit Tape(std::span<Tensor* const> parameters);
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // While it lives, ops on this thread append to the tape. Handles made in an earlier recording are
  // constants.
  class Recording {
   public:
    explicit Recording(Tape& tape);
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

   private:
    Tape& tape_;
    TapeRecord* previous_;
  };

  // Of the current recording: "" when every value is finite, else the first op whose output is not,
  // by name and number in the order of recording, and whether its own constant inputs are to blame:
  // "Log, node 17". Reads all values.
  std::string FirstNonFinite() const;

  // d loss / d parameter for each, in order and in the parameter's layout; loss has one element.
  // The tensors belong to the tape and keep their values until the next Gradient() for the same
  // parameters. Parameters that the loss does not reach get zeros. Parameters not asked for are
  // constants: nothing is computed for them. May be called several times in a recording (SAC:
  // critics, actor, temperature).
  std::span<const Tensor> Gradient(const Tensor& loss, std::span<const Tensor> parameters);

  // The block that holds the tensors of the last Gradient(): f32 [n], each tensor at the next
  // multiple of 16 elements, zero between them: one array for a norm, a reduction between replicas,
  // an optimiser (JoinMemory gives parameters the same offsets).
  const Tensor& FlatGradient() const;

  struct Statistics {
    int64_t plans_compiled = 0, plan_hits = 0;
  };
  Statistics statistics() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft
