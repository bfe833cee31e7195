// Elementwise kernels, optimisers and sums: work split over threads.
#include <atomic>
#include <limits>

#include "tensor/kernels_split.h"

namespace weft::kernels {
namespace {

double CostOf(Unary op) {
  switch (op) {
    case Unary::kNegate:
    case Unary::kSqrt:
    case Unary::kSquare:
    case Unary::kAbs:
    case Unary::kRelu:
    case Unary::kReciprocal:
      return kStreamCost;
    default:
      return kFunctionCost;
  }
}

// The one-row and one-column cases are those of plainer loops.
Broadcasting Plainest(Broadcasting broadcast, int64_t rows, int64_t columns) {
  if (broadcast == Broadcasting::kRow && rows == 1) return Broadcasting::kNone;
  if (broadcast == Broadcasting::kColumn && columns == 1) return Broadcasting::kNone;
  if (broadcast == Broadcasting::kRow && columns == 1) return Broadcasting::kScalar;
  if (broadcast == Broadcasting::kColumn && rows == 1) return Broadcasting::kScalar;
  return broadcast;
}

// function(first element of a, first element of b, rows, columns) on shares of a binary operation.
template <class F>
void SplitPairs(const Context& context, Broadcasting broadcast, int64_t rows, int64_t columns,
                F&& function) {
  if (broadcast == Broadcasting::kNone || broadcast == Broadcasting::kScalar) {
    SplitElements(context, rows * columns, kStreamCost, [&](int64_t begin, int64_t end) {
      function(begin, broadcast == Broadcasting::kNone ? begin : 0, 1, end - begin);
    });
    return;
  }
  SplitRows(context, rows, columns, kStreamCost, [&](int64_t begin, int64_t end) {
    function(begin * columns, broadcast == Broadcasting::kColumn ? begin : 0, end - begin, columns);
  });
}

// The tree over parts whose sizes are the same power of two, the last excepted.
template <class T>
T Tree(const T* parts, int64_t count) {
  if (count == 1) return parts[0];
  int64_t left = 1;
  while (left * 2 < count) left *= 2;
  return Tree(parts, left) + Tree(parts + left, count - left);
}

// sum(begin, end) over [0, count): cut where the tree of blocks has its large branches, so any cut
// gives the same bits.
template <class T, class F>
T SplitSum(const Context& context, int64_t count, F&& sum) {
  constexpr int64_t kMostParts = 64;
  if (!WorthSharing(context, static_cast<double>(count) * kStreamCost)) return sum(0, count);
  int64_t size = 16 * kElementGrain;
  while (size * kMostParts < count) size *= 2;
  T parts[kMostParts];
  const int64_t number = (count + size - 1) / size;
  auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      parts[i] = sum(i * size, std::min(count, (i + 1) * size));
    }
  };
  context.pool->ParallelFor(number, 1, run);
  return Tree(parts, number);
}

// Column sums are shared by columns, 64 at a time.
template <class F>
void SplitColumns(const Context& context, int64_t rows, int64_t columns, F&& function) {
  Split(context, columns, 64, kStreamCost * static_cast<double>(rows), function);
}

}  // namespace

void ActivationGradient(const Context& context, int64_t count, Activation activation,
                        const float* h, const float* d_h, float* d_z) {
  const KernelTable& table = TableOf(context);
  SplitElements(context, count, kStreamCost, [&](int64_t begin, int64_t end) {
    table.activation_gradient(activation, end - begin, h + begin, d_h + begin, d_z + begin);
  });
}

void UnaryForward(const Context& context, Unary op, int64_t count, const float* x, float* y) {
  const KernelTable& table = TableOf(context);
  SplitElements(context, count, CostOf(op), [&](int64_t begin, int64_t end) {
    table.unary(op, end - begin, x + begin, y + begin);
  });
}

void UnaryGradient(const Context& context, Unary op, int64_t count, const float* x, const float* y,
                   const float* d_y, bool accumulate, float* d_x) {
  const KernelTable& table = TableOf(context);
  SplitElements(context, count, CostOf(op), [&](int64_t begin, int64_t end) {
    table.unary_gradient(op, end - begin, x + begin, y + begin, d_y + begin, accumulate,
                         d_x + begin);
  });
}

void BinaryForward(const Context& context, Binary op, Broadcasting broadcast, int64_t rows,
                   int64_t columns, const float* a, const float* b, float* y) {
  const KernelTable& table = TableOf(context);
  const Broadcasting plain = Plainest(broadcast, rows, columns);
  SplitPairs(context, plain, rows, columns,
             [&](int64_t first, int64_t partner, int64_t share_rows, int64_t share_columns) {
               table.binary(op, plain, share_rows, share_columns, a + first, b + partner,
                            y + first);
             });
}

void BinaryGradient(const Context& context, Binary op, Broadcasting broadcast, int64_t rows,
                    int64_t columns, const float* a, const float* b, const float* d_y,
                    bool accumulate_a, float* d_a, bool accumulate_b, float* d_b) {
  const KernelTable& table = TableOf(context);
  const Broadcasting plain = Plainest(broadcast, rows, columns);
  if (d_a != nullptr) {
    SplitPairs(context, plain, rows, columns,
               [&](int64_t first, int64_t partner, int64_t share_rows, int64_t share_columns) {
                 table.binary_gradient_first({.op = op,
                                              .broadcast = plain,
                                              .rows = share_rows,
                                              .columns = share_columns,
                                              .a = a + first,
                                              .b = b + partner,
                                              .d_y = d_y + first},
                                             accumulate_a, d_a + first);
               });
  }
  if (d_b == nullptr) return;
  // Here the sum's order is that of the broadcast named by the caller, whatever its plainest form.
  const auto share = [&](int64_t first, int64_t partner, int64_t share_rows,
                         int64_t share_columns) {
    return BinaryWork{.op = op,
                      .broadcast = broadcast,
                      .rows = share_rows,
                      .columns = share_columns,
                      .a = a + first,
                      .b = b + partner,
                      .d_y = d_y + first};
  };
  switch (broadcast) {
    case Broadcasting::kNone:
      SplitElements(context, rows * columns, kStreamCost, [&](int64_t begin, int64_t end) {
        table.binary_gradient_second(share(begin, begin, 1, end - begin), accumulate_b,
                                     d_b + begin);
      });
      return;
    case Broadcasting::kScalar: {
      const float sum = SplitSum<float>(context, rows * columns, [&](int64_t begin, int64_t end) {
        return table.binary_gradient_sum(share(begin, 0, 1, end - begin));
      });
      *d_b = accumulate_b ? *d_b + sum : sum;
      return;
    }
    case Broadcasting::kRow:
      SplitColumns(context, rows, columns, [&](int64_t begin, int64_t end) {
        table.binary_gradient_sum_rows(share(0, 0, rows, columns), begin, end, accumulate_b, d_b);
      });
      return;
    case Broadcasting::kColumn:
      SplitRows(context, rows, columns, kStreamCost, [&](int64_t begin, int64_t end) {
        table.binary_gradient_sum_last(share(begin * columns, begin, end - begin, columns),
                                       accumulate_b, d_b + begin);
      });
      return;
  }
}

void Affine(const Context& context, int64_t count, float scale, float shift, const float* x,
            float* y) {
  const KernelTable& table = TableOf(context);
  SplitElements(context, count, kStreamCost, [&](int64_t begin, int64_t end) {
    table.affine(end - begin, scale, shift, x + begin, y + begin);
  });
}

void Clamp(const Context& context, int64_t count, float low, float high, const float* x, float* y) {
  const KernelTable& table = TableOf(context);
  SplitElements(context, count, kStreamCost, [&](int64_t begin, int64_t end) {
    table.clamp(end - begin, low, high, x + begin, y + begin);
  });
}

void ClampGradient(const Context& context, int64_t count, float low, float high, const float* x,
                   const float* d_y, bool accumulate, float* d_x) {
  const KernelTable& table = TableOf(context);
  SplitElements(context, count, kStreamCost, [&](int64_t begin, int64_t end) {
    table.clamp_gradient(end - begin, low, high, x + begin, d_y + begin, accumulate, d_x + begin);
  });
}

void Select(const Context& context, int64_t count, const uint8_t* mask, const float* a,
            const float* b, float* y) {
  SplitElements(context, count, kStreamCost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = mask[i] != 0 ? a[i] : b[i];
  });
}

float SumAll(const Context& context, int64_t count, const float* x) {
  const KernelTable& table = TableOf(context);
  return SplitSum<float>(context, count, [&](int64_t begin, int64_t end) {
    return table.sum(end - begin, x + begin);
  });
}

double SumSquares(const Context& context, int64_t count, const float* x) {
  const KernelTable& table = TableOf(context);
  return SplitSum<double>(context, count, [&](int64_t begin, int64_t end) {
    return table.sum_squares(end - begin, x + begin);
  });
}

void SumLast(const Context& context, int64_t rows, int64_t columns, const float* x, float* y) {
  const KernelTable& table = TableOf(context);
  SplitRows(context, rows, columns, kStreamCost, [&](int64_t begin, int64_t end) {
    table.sum_last(end - begin, columns, x + begin * columns, y + begin);
  });
}

void SumRows(const Context& context, int64_t rows, int64_t columns, const float* x, bool accumulate,
             float* y) {
  const KernelTable& table = TableOf(context);
  SplitColumns(context, rows, columns, [&](int64_t begin, int64_t end) {
    table.sum_rows(rows, columns, begin, end, x, accumulate, y);
  });
}

void Adam(const Context& context, int64_t count, const AdamStep& step, const float* gradient,
          float* parameter, float* first_moment, float* second_moment) {
  const KernelTable& table = TableOf(context);
  const AdamFactors factors = FactorsOf(step);
  SplitElements(context, count, 2 * kStreamCost, [&](int64_t begin, int64_t end) {
    table.adam(end - begin, factors, gradient + begin, parameter + begin, first_moment + begin,
               second_moment + begin);
  });
}

void RmsProp(const Context& context, int64_t count, const RmsPropStep& step, const float* gradient,
             float* parameter, float* square_average, float* momentum_buffer) {
  const KernelTable& table = TableOf(context);
  const RmsPropFactors factors = FactorsOf(step);
  SplitElements(context, count, 2 * kStreamCost, [&](int64_t begin, int64_t end) {
    table.rms_prop(end - begin, factors, gradient + begin, parameter + begin,
                   square_average + begin,
                   momentum_buffer == nullptr ? nullptr : momentum_buffer + begin);
  });
}

void Sgd(const Context& context, int64_t count, const SgdStep& step, const float* gradient,
         float* parameter, float* momentum_buffer) {
  const KernelTable& table = TableOf(context);
  const SgdFactors factors = FactorsOf(step);
  SplitElements(context, count, kStreamCost, [&](int64_t begin, int64_t end) {
    table.sgd(end - begin, factors, gradient + begin, parameter + begin,
              momentum_buffer == nullptr ? nullptr : momentum_buffer + begin);
  });
}

void Lerp(const Context& context, int64_t count, float tau, const float* source, float* target) {
  const KernelTable& table = TableOf(context);
  SplitElements(context, count, kStreamCost, [&](int64_t begin, int64_t end) {
    table.lerp(end - begin, tau, source + begin, target + begin);
  });
}

int64_t FirstNonFinite(const Context& context, int64_t count, const float* x) {
  const KernelTable& table = TableOf(context);
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  std::atomic<int64_t> first{kNone};
  SplitElements(context, count, kStreamCost, [&](int64_t begin, int64_t end) {
    const int64_t found = table.first_non_finite(end - begin, x + begin);
    if (found < 0) return;
    int64_t best = first.load();
    while (begin + found < best && !first.compare_exchange_weak(best, begin + found)) {
    }
  });
  return first == kNone ? -1 : first.load();
}

}  // namespace weft::kernels
