// Which row of a table comes next: to be sampled, or to be removed when the table is full. A
// selector knows rows by their slot in [0, capacity) and nothing of what they hold.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/random.h"
#include "tensor/tensor_map.h"

namespace weft {

enum class SelectorKind { kUniform, kFifo, kPrioritised };

// Proportional prioritisation (Schaul et al. 2016, equation 1): a row is drawn with probability p /
// sum of p, where p = (|error| + epsilon)^alpha.
struct PriorityOptions {
  double alpha = 0.6;     // Schaul et al. 2016, table 3
  double epsilon = 1e-6;  // keeps rows with error 0 in play
};

class Selector {
 public:
  virtual ~Selector() = default;

  // The row in this slot is new, also when the slot was taken before. A prioritised selector gives
  // it the largest priority that any row had so far, so that every row is drawn about once before
  // its error is known.
  virtual void Insert(int64_t slot) = 0;
  virtual void Remove(int64_t slot) = 0;
  // The error of a row that is in; only a prioritised selector looks at it. error must be finite.
  virtual void Update(int64_t slot, double error);

  // Draws slot.size() rows, with replacement, out of size() > 0, and says how probable each was. A
  // prioritised selector draws the i-th from the i-th of slot.size() equal parts of the total,
  // which spreads a batch over all priorities. FIFO gives the oldest each time and uses no
  // randomness.
  virtual void Sample(Rng& rng, std::span<int64_t> slot, std::span<double> probability) = 0;

  virtual int64_t size() const = 0;
  virtual TensorMap Save() const = 0;
  virtual void Load(const TensorMap& state) = 0;
};

std::unique_ptr<Selector> MakeSelector(SelectorKind kind, int64_t capacity,
                                       const PriorityOptions& priority = {});

}  // namespace weft
