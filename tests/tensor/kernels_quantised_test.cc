// Quantised weights give the bits of the bf16 weights that they stand for.
#include "tensor/kernels_quantised.h"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "tensor/kernels.h"
#include "tensor/kernels_bf16.h"
#include "tests/tensor/kernels_testing.h"
#include "tests/tensor/quantised_testing.h"

namespace weft {
namespace {

class QuantisedProducts : public testing::TestWithParam<CodeForm> {};
INSTANTIATE_TEST_SUITE_P(Forms, QuantisedProducts, testing::ValuesIn(kForms));

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
