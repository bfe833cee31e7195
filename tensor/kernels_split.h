// How a kernel meets its context: the table of its instruction set, and its pool where the work
// pays for it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"
#include "tensor/context.h"
#include "tensor/kernels_table.h"
#include "tensor/tensor.h"

namespace weft::kernels {

inline const KernelTable& TableOf(const Context& context) {
  static constexpr const KernelTable* kTables[] = {&kPortableKernels, &kAvx2Kernels,
                                                   &kAvx512Kernels};
  return *kTables[static_cast<int>(context.isa)];
}

// Of the context's instruction set, by the bf16 instruction where the CPU has it (kernels_bf16.cc).
const PairTable& PairsOf(const Context& context);

// Rough costs of one element, in nanoseconds of one thread.
constexpr double kStreamCost = 0.08;     // loads, a few operations, a store
constexpr double kFunctionCost = 0.3;    // exp and its like
constexpr double kWorthSharing = 4000;   // below it a second thread costs more than it brings
constexpr int64_t kElementGrain = 1024;  // elements; whole blocks of sums

inline bool WorthSharing(const Context& context, double nanoseconds) {
  return context.pool != nullptr && nanoseconds >= kWorthSharing && context.pool->threads() > 1;
}

constexpr double kWorthBalancing = 20 * kWorthSharing;

// function(begin, end) over [0, count) on several threads, for work that is worth it.
template <class F>
void Share(const Context& context, int64_t count, int64_t grain, double nanoseconds, F& function) {
  if (nanoseconds < kWorthBalancing) {
    context.pool->ParallelFor(count, grain, function);
  } else {
    context.pool->ParallelForBalanced(count, grain, function);
  }
}

// function(begin, end) over [0, count), on several threads when count * cost is worth it.
template <class F>
void Split(const Context& context, int64_t count, int64_t grain, double cost, F&& function) {
  const double nanoseconds = static_cast<double>(count) * cost;
  if (WorthSharing(context, nanoseconds)) {
    Share(context, count, grain, nanoseconds, function);
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

constexpr int64_t kPanel = 64;  // columns of a panel of weights

inline int64_t Padded(int64_t columns) {
  return (columns + 15) / 16 * 16;
}

// function(begin, width) for every panel of a matrix of `columns`.
template <class F>
void ForPanels(int64_t columns, F&& function) {
  for (int64_t begin = 0; begin < columns; begin += kPanel) {
    function(begin, std::min(kPanel, Padded(columns) - begin));
  }
}

// A product of 0.3 MFLOP takes about the two microseconds at which a second thread begins to pay;
// in units of kWorthSharing.
inline double ProductCost(int64_t rows, int64_t in, int64_t out) {
  return static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out) *
         (kWorthSharing / 150e3);
}

// Weights that are not in a second-level cache when a few rows come to read them.
inline bool Streamed(const DenseWork& work) {
  constexpr int64_t kElements = 1 << 17;  // half a megabyte
  return work.rows <= kStreamedRows && work.in * work.out >= kElements;
}

// The products of a KernelTable or PairTable, on several threads when they are worth it.
template <class Table>
void ShareDense(const Context& context, const Table& table, const DenseWork& work) {
  const double cost = ProductCost(work.rows, work.in, work.out);
  const bool share = WorthSharing(context, cost);
  const TileUse use = Streamed(work) ? TileUse::kStreamed
                      : share        ? TileUse::kShared
                                     : TileUse::kAlone;
  if (share) {
    auto run = [&](int64_t begin, int64_t end) { table.dense(work, use, begin, end); };
    Share(context, table.dense_tiles(work, use), 1, cost, run);
  } else {
    table.dense(work, use, 0, INT64_MAX);
  }
}
template <class Table>
void ShareWeightGradient(const Context& context, const Table& table,
                         const WeightGradientWork& work) {
  const double cost = ProductCost(work.rows, work.in, work.out);
  const auto run = [&](const WeightGradientWork& part) {
    const int64_t tiles = table.weight_gradient_tiles(part);
    const double each = ProductCost(part.rows, part.in, part.out) / static_cast<double>(tiles);
    Split(context, tiles, 1, each,
          [&](int64_t begin, int64_t end) { table.weight_gradient(part, begin, end); });
  };
  if (table.gradient_rows == 0 || cost < kWorthBalancing) return run(work);

  // What all threads read of some rows stays near them.
  constexpr int64_t kWorthPacking = 8 * kPanel;  // outputs
  const bool pack = work.out >= kWorthPacking;
  Tensor x_tiles;
  if (pack) x_tiles = Tensor::Empty({table.gradient_rows * work.in});
  for (int64_t row = 0; row < work.rows; row += table.gradient_rows) {
    WeightGradientWork part = work;
    part.rows = std::min(table.gradient_rows, work.rows - row);
    part.x += row * work.in;
    part.d_z += row * work.out;
    part.accumulate |= row > 0;
    if (pack) {
      float* const to = x_tiles.data<float>().data();
      const double elements = static_cast<double>(part.rows * work.in);
      Split(context, kFeatureParts, 1, kStreamCost * elements / kFeatureParts,
            [&](int64_t begin, int64_t end) { table.pack_features(part, begin, end, to); });
      part.x_tiles = to;
    }
    run(part);
  }
}

}  // namespace weft::kernels
