// How a kernel meets its context: the table of its instruction set, and its pool where the work
// pays for it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"
#include "tensor/context.h"
#include "tensor/kernels_table.h"

namespace weft::kernels {

inline const KernelTable& TableOf(const Context& context) {
  static constexpr const KernelTable* kTables[] = {&kPortableKernels, &kAvx2Kernels,
                                                   &kAvx512Kernels};
  return *kTables[static_cast<int>(context.isa)];
}

// Rough costs of one element, in nanoseconds of one thread.
constexpr double kStreamCost = 0.08;     // loads, a few operations, a store
constexpr double kFunctionCost = 0.3;    // exp and its like
constexpr double kWorthSharing = 4000;   // below it a second thread costs more than it brings
constexpr int64_t kElementGrain = 1024;  // elements; whole blocks of sums

inline bool WorthSharing(const Context& context, double nanoseconds) {
  return context.pool != nullptr && nanoseconds >= kWorthSharing && context.pool->threads() > 1;
}

// function(begin, end) over [0, count), on several threads when count * cost is worth it.
template <class F>
void Split(const Context& context, int64_t count, int64_t grain, double cost, F&& function) {
  if (WorthSharing(context, static_cast<double>(count) * cost)) {
    context.pool->ParallelFor(count, grain, function);
  } else {
    function(0, count);
  }
}
template <class F>
void SplitElements(const Context& context, int64_t count, double cost, F&& function) {
  Split(context, count, kElementGrain, cost, function);
}
template <class F>
void SplitRows(const Context& context, int64_t rows, int64_t columns, double cost, F&& function) {
  Split(context, rows, 1, cost * static_cast<double>(columns), function);
}

}  // namespace weft::kernels
