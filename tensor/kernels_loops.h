// Loops over a vector type S (kernels_math.h): elementwise with one body for full vectors and the
// masked rest, and the fixed-order sums. S also gives Mask, FirstLanes, LoadMasked, StoreMasked,
// Keep (others become zero) and Fold16.
#pragma once

#include <cstdint>

namespace weft::kernels {

// What tiles are cut for: one thread; many, which asks for enough of them; or few rows against
// weights that come from memory, which are read in one stream, a panel after the other.
enum class TileUse : uint8_t { kAlone, kShared, kStreamed };
constexpr int64_t kStreamedRows = 6;

// Steps of a sum that tiles of pairs make at a time (kernels_bf16.h, SumOrder::kBlocks).
constexpr int64_t kPairBlock = 16;

// Rows and vectors of a matrix tile that fit the registers.
struct TileShape {
  int64_t vectors, rows;
};

template <class S>
struct Loops {
  using Float = typename S::Float;
  using Mask = typename S::Mask;
  static constexpr int64_t kLanes = S::kLanes;
  static constexpr int64_t kBlock = 1024;
  static constexpr int64_t kBlockRows = 256;

  // How a body reaches memory, f32 or bf16 (uint16_t): every lane, or the first ones.
  struct Whole {
    static Float Load(const float* p) { return S::Load(p); }
    static void Store(float* p, Float x) { S::Store(p, x); }
    static Float Load(const uint16_t* p) { return S::LoadBf16(p); }
    static void Store(uint16_t* p, Float x) { S::StoreBf16(p, x); }
    static Float Keep(Float x) { return x; }
    static Float KeepOr(Float x, Float) { return x; }  // lanes that do not exist take the other
  };
  struct Part {
    Mask mask;
    Float Load(const float* p) const { return S::LoadMasked(p, mask); }
    void Store(float* p, Float x) const { S::StoreMasked(p, x, mask); }
    Float Load(const uint16_t* p) const { return S::LoadBf16Masked(p, mask); }
    void Store(uint16_t* p, Float x) const { S::StoreBf16Masked(p, x, mask); }
    Float Keep(Float x) const { return S::Keep(x, mask); }
    Float KeepOr(Float x, Float other) const { return S::KeepOr(x, other, mask); }
  };

  // body(access, index of the first element) for every vector of [0, count).
  template <class F>
  [[gnu::always_inline]] static void Each(int64_t count, F&& body) {
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) body(Whole{}, i);
    if (i < count) body(Part{S::FirstLanes(count - i)}, i);
  }

  template <class Access>
  static void Put(Access at, bool accumulate, float* p, Float x) {
    at.Store(p, accumulate ? at.Load(p) + x : x);
  }

  // Sums of source(access, index): 16 accumulators by index mod 16 in a block, blocks in a tree.
  template <class F>
  [[gnu::always_inline]] static float SumBlock(int64_t begin, int64_t end, F&& source) {
    constexpr int kParts = static_cast<int>(16 / kLanes);
    Float sum[kParts];
    for (int part = 0; part < kParts; ++part) sum[part] = S::Set(0.0f);
    int64_t i = begin;
    for (; i + 16 <= end; i += 16) {
#pragma GCC unroll 16
      for (int part = 0; part < kParts; ++part) {
        sum[part] += source(Whole{}, i + part * kLanes);
      }
    }
    for (int part = 0; part < kParts && i < end; ++part, i += kLanes) {
      const Part at{S::FirstLanes(end - i)};
      sum[part] += at.Keep(source(at, i));
    }
    return S::Fold16(sum);
  }

  // The tree as a stack of finished subtrees, largest first: a block's number has as many trailing
  // ones as subtrees end with it.
  template <class T, class F>
  [[gnu::always_inline]] static T SumBlocks(int64_t count, F&& block) {
    T stack[48];
    int depth = 0;
    for (int64_t number = 0, begin = 0; begin < count || number == 0; ++number, begin += kBlock) {
      T sum = block(begin, begin + kBlock < count ? begin + kBlock : count);
      for (int64_t bits = number; bits & 1; bits >>= 1) sum = stack[--depth] + sum;
      stack[depth++] = sum;
    }
    T sum = stack[--depth];
    while (depth > 0) sum = stack[--depth] + sum;
    return sum;
  }

  template <class F>
  [[gnu::always_inline]] static float Sum(int64_t count, F&& source) {
    if (count <= kBlock) return SumBlock(0, count, source);
    return SumBlocks<float>(
        count, [&](int64_t begin, int64_t end) { return SumBlock(begin, end, source); });
  }

  // Column sums of source(access, row, column) over columns [begin, end): blocks of 256 rows, rows
  // ascending, blocks in order onto y when accumulate.
  template <class F>
  [[gnu::always_inline]] static void SumColumns(int64_t rows, int64_t begin, int64_t end,
                                                bool accumulate, float* y, F&& source) {
    constexpr int kTogether = 4;
    int64_t column = begin;
    for (; column + kTogether * kLanes <= end; column += kTogether * kLanes) {
      SumColumnGroup<kTogether>(rows, column, Whole{}, accumulate, y, source);
    }
    for (; column + kLanes <= end; column += kLanes) {
      SumColumnGroup<1>(rows, column, Whole{}, accumulate, y, source);
    }
    if (column < end) {
      SumColumnGroup<1>(rows, column, Part{S::FirstLanes(end - column)}, accumulate, y, source);
    }
  }

 private:
  template <int V, class Access, class F>
  [[gnu::always_inline]] static void SumColumnGroup(int64_t rows, int64_t column, Access at,
                                                    bool accumulate, float* y, F&& source) {
    Float total[V];
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) {
      total[v] = accumulate ? at.Load(y + column + v * kLanes) : S::Set(0.0f);
    }
    for (int64_t begin = 0; begin < rows; begin += kBlockRows) {
      const int64_t end = begin + kBlockRows < rows ? begin + kBlockRows : rows;
      Float sum[V];
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[v] = S::Set(0.0f);
      for (int64_t row = begin; row < end; ++row) {
#pragma GCC unroll 16
        for (int v = 0; v < V; ++v) sum[v] += source(at, row, column + v * kLanes);
      }
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) total[v] += sum[v];
    }
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) at.Store(y + column + v * kLanes, total[v]);
  }
};

}  // namespace weft::kernels
