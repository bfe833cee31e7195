// Denormals count as zero, in and out, while one of these lives: as the bf16 instructions have it,
// and in optimisers, where the moments of a weight without gradient end as denormals for good (0.9
// of the smallest few rounds to themselves) and many CPUs take a hundred cycles for each.
#pragma once

#include <xmmintrin.h>

namespace weft::kernels {

class FlushDenormals {
 public:
  [[gnu::always_inline]] FlushDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }
  [[gnu::always_inline]] ~FlushDenormals() { _mm_setcsr(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  unsigned before_;
};

}  // namespace weft::kernels
