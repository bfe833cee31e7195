// Compiled with -march=x86-64-v4 -mavx512vnni: products of rows rounded to 8 bits with quantised
// weights (kernels_eight_bits.h), four integers to a lane.
#include <cstring>

#include "tensor/kernels_avx512.h"
#include "tensor/kernels_table.h"

namespace weft::kernels {
namespace {

constexpr int64_t kBlock = kQuantisedBlock;

// The order of kernels_eight_bits.cc, by bytes of 16.
__m256i Ordered(CodeForm form, __m256i codes) {
  const __m128i order = form.bits == 4
                            ? _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)
                            : _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
  return _mm256_shuffle_epi8(codes, _mm256_broadcastsi128_si256(order));
}

void Round(const EightBitRows& to, const uint16_t* x, int64_t begin, int64_t end) {
  const int64_t runs = to.form.runs ? 2 : 1, blocks = to.in / kBlock;
  const __m512i high = _mm512_set1_epi32(static_cast<int32_t>(0xffff0000u));
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  const __m256i shift = _mm256_set1_epi8(to.form.bits == 4 ? 0 : -128);
  for (int64_t at = begin * blocks; at < end * blocks; ++at) {
    const __m512i pairs = _mm512_loadu_si512(x + at * kBlock);
    const __m512 even = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
    const __m512 odd = _mm512_castsi512_ps(_mm512_and_si512(pairs, high));
    // Bits of magnitudes order as numbers do, and those of what is not finite come last.
    const int32_t bits = _mm512_reduce_max_epi32(
        _mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(even), magnitude),
                         _mm512_and_si512(_mm512_castps_si512(odd), magnitude)));
    float largest;
    std::memcpy(&largest, &bits, sizeof(largest));
    const bool finite = bits < 0x7f800000;
    float scale = largest / 127, inverse = 127 / largest;
    if (!finite || largest < 0x1p-100f) scale = inverse = 0;
    const auto rounded = [&](__m512 values) {
      // What is not finite times 0 is NaN, whose integer is the least: masked out with the rest.
      const __m512i integers = _mm512_cvtps_epi32(values * _mm512_set1_ps(inverse));
      return inverse == 0 ? _mm512_setzero_si512() : integers;
    };
    const __m512i even_codes = rounded(even), odd_codes = rounded(odd);
    const __m512i both = _mm512_add_epi32(even_codes, odd_codes);  // lane i: k = 2 i and 2 i + 1
    // 16-bit lanes: the even code below the odd one.
    const __m512i words =
        _mm512_mask_blend_epi16(0xaaaaaaaau, even_codes, _mm512_slli_epi32(odd_codes, 16));
    const __m256i codes = _mm256_xor_si256(_mm512_cvtepi16_epi8(words), shift);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to.codes + at * kBlock),
                        Ordered(to.form, codes));
    if (!finite) scale = __builtin_nanf("");
    to.scales[at] = scale;
    if (runs == 1) {
      to.sums[at] = scale * static_cast<float>(_mm512_reduce_add_epi32(both));
    } else {
      to.sums[2 * at] = scale * static_cast<float>(_mm512_mask_reduce_add_epi32(0x00ff, both));
      to.sums[2 * at + 1] = scale * static_cast<float>(_mm512_mask_reduce_add_epi32(0xff00, both));
    }
  }
}

// Lane 2 o + b belongs to output o (of 8) and even or odd k.
struct Lanes {
  __m512i low, high;
};

// Some rows and groups of 16 outputs, from a row and a group on.
template <CodeForm kForm, int kRows, int kGroups>
class Product {
 public:
  Product(const EightBitWork& work, int64_t row, int64_t group)
      : work_(work), row_(row), group_(group) {}

  [[gnu::always_inline]] void Run() {
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        low_[g][r] = high_[g][r] = offsets_[g][r] = _mm512_setzero_ps();
      }
    }
    const int64_t outputs = work_.outputs, bytes = outputs * kHeader + outputs / 16 * kGroupBytes;
    const std::byte* block = work_.w;
    for (int64_t b = 0; b < work_.x.in / kBlock; ++b, block += bytes) {
      for (int64_t line = 0; line < bytes; line += 64) {
        _mm_prefetch(reinterpret_cast<const char*>(block + kAhead + line), _MM_HINT_T0);
      }
#pragma GCC unroll 2
      for (int g = 0; g < kGroups; ++g) AddGroup(block, b, g);
    }
    Write();
  }

 private:
  static constexpr int64_t kHeader = kForm.runs ? 8 : 4;  // for each output
  static constexpr int kVectors = kForm.bits == 4 ? 2 : 4, kRuns = kForm.runs ? 2 : 1;
  static constexpr int64_t kGroupBytes = kVectors * 128, kAhead = 4096;

  [[gnu::always_inline]] void AddGroup(const std::byte* block, int64_t b, int g) {
    const int64_t outputs = work_.outputs, group = group_ + g;
    const auto halves = [&](int64_t at) {
      return _mm512_cvtph_ps(
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + 2 * (at + 16 * group))));
    };
    const auto factors = [&](int64_t row) {
      return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(
          reinterpret_cast<const __m128i*>(block + outputs * (4 + row) + 16 * group))));
    };
    const __m512 scale = halves(0), offset = halves(outputs);
    const std::byte* const words = block + outputs * kHeader + group * kGroupBytes;
#pragma GCC unroll 2
    for (int run = 0; run < kRuns; ++run) {
      Lanes sums[kRows];
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) sums[r] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
      Lanes weights = {_mm512_setzero_si512(), _mm512_setzero_si512()};  // 8 bits: their sums
#pragma GCC unroll 4
      for (int v = run * kVectors / kRuns; v < (run + 1) * kVectors / kRuns; ++v) {
        AddVectors(words + v * 128, b, v, sums, weights);
      }
      if constexpr (kRuns == 1) {
        AddRun(sums, weights, scale, offset, b, g);
      } else {
        AddRun(sums, weights, scale * factors(run), offset * factors(run + 2), 2 * b + run, g);
      }
    }
  }

  [[gnu::always_inline]] void AddVectors(const std::byte* words, int64_t b, int v,
                                         Lanes (&sums)[kRows], Lanes& weights) {
    const __m512i low = _mm512_loadu_si512(words), high = _mm512_loadu_si512(words + 64);
    if constexpr (kForm.bits == 4) {
      const __m512i mask = _mm512_set1_epi8(15);
      const Lanes first = {_mm512_and_si512(low, mask), _mm512_and_si512(high, mask)};
      const Lanes second = {_mm512_and_si512(_mm512_srli_epi32(low, 4), mask),
                            _mm512_and_si512(_mm512_srli_epi32(high, 4), mask)};
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const __m512i x = Eight(r, b, 2 * v), next = Eight(r, b, 2 * v + 1);
        sums[r].low = _mm512_dpbusd_epi32(sums[r].low, first.low, x);
        sums[r].high = _mm512_dpbusd_epi32(sums[r].high, first.high, x);
        sums[r].low = _mm512_dpbusd_epi32(sums[r].low, second.low, next);
        sums[r].high = _mm512_dpbusd_epi32(sums[r].high, second.high, next);
      }
    } else {
      const __m512i ones = _mm512_set1_epi8(1);
      weights.low = _mm512_dpbusd_epi32(weights.low, ones, low);
      weights.high = _mm512_dpbusd_epi32(weights.high, ones, high);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const __m512i x = Eight(r, b, v);
        sums[r].low = _mm512_dpbusd_epi32(sums[r].low, x, low);
        sums[r].high = _mm512_dpbusd_epi32(sums[r].high, x, high);
      }
    }
  }

  // Eight codes of a row, to every pair of lanes.
  [[gnu::always_inline]] __m512i Eight(int r, int64_t b, int64_t number) const {
    int64_t eight;
    std::memcpy(&eight, work_.x.codes + (row_ + r) * work_.x.in + b * kBlock + 8 * number, 8);
    return _mm512_set1_epi64(eight);
  }

  // at: of the run's sum in a row.
  [[gnu::always_inline]] void AddRun(const Lanes (&sums)[kRows], const Lanes& weights, __m512 scale,
                                     __m512 offset, int64_t at, int g) {
    const __m512i first = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(8));
    const __m512 low = _mm512_permutexvar_ps(first, scale);
    const __m512 high = _mm512_permutexvar_ps(second, scale);
    const int64_t blocks = work_.x.in / kBlock;
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const __m512 x_scale = _mm512_set1_ps(work_.x.scales[(row_ + r) * blocks + at / kRuns]);
      const __m512 x_sum = _mm512_set1_ps(work_.x.sums[(row_ + r) * blocks * kRuns + at]);
      const __m512 a = Exact(sums[r].low, weights.low), b = Exact(sums[r].high, weights.high);
      low_[g][r] = _mm512_fmadd_ps(low * x_scale, a, low_[g][r]);
      high_[g][r] = _mm512_fmadd_ps(high * x_scale, b, high_[g][r]);
      offsets_[g][r] = _mm512_fmadd_ps(offset, x_sum, offsets_[g][r]);
    }
  }
  // Codes of rows are 128 too large where weights have 8 bits.
  [[gnu::always_inline]] static __m512 Exact(__m512i sum, __m512i weights) {
    if constexpr (kForm.bits == 8) sum = _mm512_sub_epi32(sum, _mm512_slli_epi32(weights, 7));
    return _mm512_cvtepi32_ps(sum);
  }

  [[gnu::always_inline]] void Write() const {
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
      const int64_t column = (group_ + g) * 16;
      const __mmask16 mask = Avx512::FirstLanes(work_.columns - column);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        __m512 y = (_mm512_permutex2var_ps(low_[g][r], even, high_[g][r]) +
                    _mm512_permutex2var_ps(low_[g][r], odd, high_[g][r])) +
                   offsets_[g][r];
        const int64_t row = row_ + r;
        if (work_.addend != nullptr) {
          y += Avx512::LoadMasked(work_.addend + row * work_.addend_stride + column, mask);
        }
        Avx512::StoreMasked(work_.y + row * work_.y_stride + column, y, mask);
      }
    }
  }

  const EightBitWork& work_;
  const int64_t row_, group_;
  __m512 low_[kGroups][kRows], high_[kGroups][kRows], offsets_[kGroups][kRows];
};

// Two groups together while their sums fit the registers.
template <CodeForm kForm, int kRows>
void Rows(const EightBitWork& work, int64_t row) {
  const int64_t groups = work.outputs / 16;
  if (kRows <= 2 && groups == 2) {
    Product<kForm, kRows, kRows <= 2 ? 2 : 1>(work, row, 0).Run();
    return;
  }
  for (int64_t group = 0; group < groups; ++group) {
    Product<kForm, kRows, 1>(work, row, group).Run();
  }
}

void Dense(const EightBitWork& work) {
  WithForm(work.x.form, [&]<CodeForm kForm>() {
    int64_t row = 0;
    for (; row + 4 <= work.x.rows; row += 4) Rows<kForm, 4>(work, row);
    for (; row + 2 <= work.x.rows; row += 2) Rows<kForm, 2>(work, row);
    if (row < work.x.rows) Rows<kForm, 1>(work, row);
  });
}

}  // namespace

constinit const EightBitTable kVnniEightBits = {.round = Round, .dense = Dense};

}  // namespace weft::kernels
