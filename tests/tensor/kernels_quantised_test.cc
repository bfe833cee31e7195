// Quantised weights give the bits of the bf16 weights that they stand for.
#include "tensor/kernels_quantised.h"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "tensor/kernels.h"
#include "tensor/kernels_bf16.h"
#include "tests/tensor/kernels_testing.h"

namespace weft {
namespace {

using kernels::CodeForm;

// 1.0, 0.5, -0.25, 0.0999755859375 and the smallest denormal in half precision.
constexpr uint16_t kHalves[] = {0x3c00, 0x3800, 0xb400, 0x2e66, 0x0001};
constexpr float kValues[] = {1, 0.5f, -0.25f, 0.0999755859375f, 0x1p-24f};

struct Quantised {
  int64_t in, out;
  CodeForm form;
  std::vector<std::byte> bytes;
  std::vector<float> weights;  // [in, out]

  Quantised(CodeForm f, int64_t k, int64_t n) : in(k), out(n), form(f), weights(k * n) {
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
        weights[i * out + column] = ToFloat(
            ToBFloat16(static_cast<float>(1.0 * kValues[scale] * factors[i / 16] * codes[i] +
                                          1.0 * kValues[offset] * offset_factors[i / 16])));
      }
      kernels::SetQuantisedColumn(
          form, in, out, column,
          {codes.data(), scales.data(), offsets.data(), factors.data(), offset_factors.data()},
          bytes.data());
    }
  }
};

class QuantisedProducts : public testing::TestWithParam<CodeForm> {};
INSTANTIATE_TEST_SUITE_P(Forms, QuantisedProducts,
                         testing::Values(CodeForm{4, false}, CodeForm{8, false}, CodeForm{4, true},
                                         CodeForm{8, true}));

TEST_P(QuantisedProducts, HaveTheBitsOfTheirBf16Weights) {
  for (const auto& [in, out] : {std::pair<int64_t, int64_t>{32, 16}, {96, 70}, {576, 192}}) {
    const Quantised w(GetParam(), in, out);
    std::vector<float> panels(PanelElements(in, out));
    kernels::PackPanels(in, out, w.weights.data(), panels.data());
    std::vector<BFloat16> packed(panels.size());
    kernels::PackPairs({}, in, out, panels.data(), packed.data());
    Numbers numbers(5);
    const auto bias = numbers.Vector(out);
    for (const int64_t rows : {1, 2, 3, 4, 5, 40}) {
      std::vector<BFloat16> x;
      for (const float value : numbers.Vector(rows * in)) x.push_back(ToBFloat16(value));
      std::vector<float> want(rows * out);
      kernels::DenseBf16({}, rows, in, out, x.data(), packed.data(), bias.data(), 0, want.data());
      ForEveryContext([&](const Context& context) {
        std::vector<float> got(rows * out, NAN);
        kernels::DenseQuantised(context, w.form, rows, in, out, x.data(), w.bytes.data(),
                                bias.data(), 0, got.data());
        EXPECT_TRUE(SameBits(got, want)) << rows << " rows of [" << in << ", " << out << "]";
      });
    }
  }
}

TEST_P(QuantisedProducts, AColumnComesBack) {
  const Quantised w(GetParam(), 64, 70);
  for (const int64_t column : {0, 15, 63, 64, 69}) {
    std::vector<BFloat16> x(w.in);
    kernels::GetQuantisedColumn(w.form, w.in, w.out, column, w.bytes.data(), x.data());
    for (int64_t k = 0; k < w.in; ++k) {
      EXPECT_EQ(ToFloat(x[k]), w.weights[k * w.out + column]) << column << ", " << k;
    }
  }
}

}  // namespace
}  // namespace weft
