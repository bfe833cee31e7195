// Quantised weights of every form, with scales of all sizes, for tests of what multiplies them.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/kernels_quantised.h"
#include "tensor/tensor.h"

namespace weft {

using kernels::CodeForm;

// 1.0, 0.5, -0.25, 0.0999755859375 and the smallest denormal in half precision.
inline constexpr uint16_t kHalves[] = {0x3c00, 0x3800, 0xb400, 0x2e66, 0x0001};
inline constexpr float kValues[] = {1, 0.5f, -0.25f, 0.0999755859375f, 0x1p-24f};

struct Quantised {
  int64_t in, out;
  CodeForm form;
  std::vector<std::byte> bytes;
  std::vector<float> exact, weights;  // [in, out]; the second rounded to bf16

  Quantised(CodeForm f, int64_t k, int64_t n)
      : in(k), out(n), form(f), exact(k * n), weights(k * n) {
    bytes.resize(kernels::QuantisedBytes(form, in, out));
    uint64_t state = 9;
    for (int64_t column = 0; column < out; ++column) {
      std::vector<int8_t> codes(in), factors(in / 16, 1), offset_factors(in / 16, 1);
      std::vector<uint16_t> scales, offsets;
      for (int64_t i = 0; i < in; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const int32_t code = static_cast<int32_t>(state >> 56);
        codes[i] = static_cast<int8_t>(form.bits == 4 ? code % 16 : code - 128);
        if (form.runs && i % 16 == 0) {
          factors[i / 16] = static_cast<int8_t>(i == 0 ? -128 : code / 2 - 64);
          offset_factors[i / 16] = static_cast<int8_t>(code % 64 - 63);
        }
        const size_t scale = (column + i / 32) % 5, offset = (column + i / 32 + 2) % 5;
        if (i % 32 == 0) {
          scales.push_back(kHalves[scale]);
          offsets.push_back(kHalves[offset]);
        }
        exact[i * out + column] =
            static_cast<float>(1.0 * kValues[scale] * factors[i / 16] * codes[i] +
                               1.0 * kValues[offset] * offset_factors[i / 16]);
        weights[i * out + column] = ToFloat(ToBFloat16(exact[i * out + column]));
      }
      kernels::SetQuantisedColumn(
          form, in, out, column,
          {codes.data(), scales.data(), offsets.data(), factors.data(), offset_factors.data()},
          bytes.data());
    }
  }
};

inline const CodeForm kForms[] = {{4, false}, {8, false}, {4, true}, {8, true}};

}  // namespace weft
