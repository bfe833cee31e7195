// Between f32 and bf16, on one thread; a template on the vector type S.
#pragma once

#include "tensor/kernels_loops.h"

namespace weft::kernels {

template <class S>
struct Halves {
  using Float = typename S::Float;
  using Int = typename S::Int;
  using L = Loops<S>;

  static void Round(int64_t count, const float* x, uint16_t* y) {
    L::Each(count, [&](auto at, int64_t i) { at.Store(y + i, at.Load(x + i)); });
  }
  static void Widen(int64_t count, const uint16_t* x, float* y) {
    L::Each(count, [&](auto at, int64_t i) { at.Store(y + i, at.Load(x + i)); });
  }
  // Pairs of rounded elements, `even` in the lower half.
  static void Interleave(int64_t count, const float* even, const float* odd, uint32_t* pairs) {
    auto* const to = reinterpret_cast<float*>(pairs);
    L::Each(count, [&](auto at, int64_t i) {
      const Int low = (Rounded(at.Load(even + i)) >> 16) & S::SetInt(0xffff);
      const Int high = Rounded(at.Load(odd + i)) & S::SetInt(-65536);
      at.Store(to + i, S::FromBits(low | high));
    });
  }
  // The same of elements that are bf16.
  static void InterleaveHalves(int64_t count, const uint16_t* even, const uint16_t* odd,
                               uint32_t* pairs) {
    auto* const to = reinterpret_cast<float*>(pairs);
    L::Each(count, [&](auto at, int64_t i) {
      const Int low = (S::Bits(at.Load(even + i)) >> 16) & S::SetInt(0xffff);
      at.Store(to + i, S::FromBits(low | S::Bits(at.Load(odd + i))));
    });
  }

 private:
  // Bits whose upper half is the nearest bf16, ties to even.
  static Int Rounded(Float x) {
    const Int bits = S::Bits(x);
    const Int rounded = bits + S::SetInt(0x7fff) + ((bits >> 16) & S::SetInt(1));
    return x != x ? bits | S::SetInt(0x400000) : rounded;
  }
};

}  // namespace weft::kernels
