// bf16 products: an element is a pair of neighbours in k, in 32 bits, the even one low, and a step
// multiplies both into their sum by fused multiply-adds in f32 that flush denormals, in one of the
// two orders of kernels_bf16.h, so that emulation and instructions give equal bits. Sums run over
// pairs ascending; the rest is the f32 tiles'.
#pragma once

#include "tensor/kernels_denormals.h"
#include "tensor/kernels_table.h"
#include "tensor/kernels_tiles.h"

namespace weft::kernels {

template <class S>
struct EmulatedPairs : S {
  using Float = typename S::Float;
  using Int = typename S::Int;
  static constexpr int kDepth = 2;
  static Float Odd(Float pair) { return S::FromBits(S::Bits(pair) & S::SetInt(-65536)); }
  static Float Even(Float pair) { return S::FromBits(S::Bits(pair) << 16); }
  static Float MultiplyAddOdd(Float a, Float b, Float c) { return S::Fma(Odd(a), Odd(b), c); }
  static Float MultiplyAddEven(Float a, Float b, Float c) { return S::Fma(Even(a), Even(b), c); }
  static Float MultiplyAdd(Float a, Float b, Float c) {
    return MultiplyAddEven(a, b, MultiplyAddOdd(a, b, c));
  }
};
// Sums by blocks.
template <class S>
struct BlockedPairs : EmulatedPairs<S> {
  static constexpr int64_t kBlock = kPairBlock;
};

template <class S>
struct Pairs : Tiles<S> {
  using T = Tiles<S>;
  static void Dense(const DenseWork& work, TileUse use, int64_t begin, int64_t end) {
    const FlushDenormals flush;
    T::Dense(work, use, begin, end);
  }
  static void WeightGradient(const WeightGradientWork& work, int64_t begin, int64_t end) {
    const FlushDenormals flush;
    T::WeightGradient(work, begin, end);
  }
};

template <class S>
constexpr PairTable MakePairTable() {
  return {.dense_quantised = nullptr,
          .unpack_quantised = nullptr,
          .dense_tiles = Tiles<S>::DenseTiles,
          .dense = Pairs<S>::Dense,
          .weight_gradient_tiles = Tiles<S>::WeightGradientTiles,
          .weight_gradient = Pairs<S>::WeightGradient,
          .gradient_rows = Tiles<S>::kBlockRows,
          .pack_features = Tiles<S>::PackFeatures};
}

}  // namespace weft::kernels
