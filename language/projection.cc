#include "language/projection.h"

#include <algorithm>
#include <vector>

#include "tensor/kernels.h"
#include "tensor/kernels_bf16.h"

namespace weft {
namespace {

constexpr int64_t kPanel = 64;

// Where element (row, column) of a matrix [rows, columns] in panels lies.
int64_t PanelIndex(int64_t rows, int64_t columns, int64_t row, int64_t column) {
  const int64_t panel = column / kPanel * kPanel;
  const int64_t width = std::min(kPanel, (columns - panel + 15) / 16 * 16);
  return rows * panel + row * width + (column - panel);
}

const BFloat16* Halves(const Tensor& x) {
  return reinterpret_cast<const BFloat16*>(x.raw());
}
BFloat16* Halves(Tensor& x) {
  return reinterpret_cast<BFloat16*>(x.raw());
}
const float* Floats(const Tensor& x) {
  return x.data<float>().data();
}

}  // namespace

Tensor Operand(Precision precision, int64_t rows, int64_t columns) {
  return Tensor::Empty({rows, columns},
                       precision == Precision::kBFloat16 ? DType::kBFloat16 : DType::kFloat32);
}

Projection::Projection(int64_t in, int64_t out, bool bias, Precision precision)
    : in_(in), out_(out), precision_(precision) {
  if (bias) bias_ = Tensor::Zeros({out});
  WEFT_CHECK(precision == Precision::kFloat32 || (in % 2 == 0 && out % 2 == 0))
      << "a matrix [" << in << ", " << out << "] has an odd side: products in bf16 go by pairs";
}

// Made when it is first needed: a model that is kept quantised never has it.
Tensor& Projection::weight() {
  if (!weight_.defined()) weight_ = Tensor::Zeros({in_, out_}, DType::kFloat32, Layout::kPanels);
  return weight_;
}

void Projection::SetRows(int64_t begin, std::span<const float> rows) {
  const int64_t count = std::ssize(rows) / in_;
  float* const to_weight = weight().data<float>().data();
  for (int64_t row = 0; row < count;) {
    const int64_t column = begin + row;
    const int64_t together = std::min(count - row, kPanel - column % kPanel);
    for (int64_t k = 0; k < in_; ++k) {
      float* const to = to_weight + PanelIndex(in_, out_, k, column);
      const float* const from = rows.data() + row * in_ + k;
      for (int64_t i = 0; i < together; ++i) to[i] = from[i * in_];
    }
    row += together;
  }
}

void Projection::GetRows(int64_t begin, std::span<float> rows) const {
  const int64_t count = std::ssize(rows) / in_;
  for (int64_t row = 0; row < count; ++row) GetColumn(begin + row, rows.data() + row * in_);
}

void Projection::GetColumn(int64_t column, float* x) const {
  if (weight_.defined() && precision_ == Precision::kFloat32) {
    const float* const weight = Floats(weight_);
    for (int64_t k = 0; k < in_; ++k) x[k] = weight[PanelIndex(in_, out_, k, column)];
    return;
  }
  if (codes_.defined()) {
    std::vector<BFloat16> rounded(in_);
    kernels::GetQuantisedColumn(width_, in_, out_, column, codes_.raw(), rounded.data());
    for (int64_t k = 0; k < in_; ++k) x[k] = ToFloat(rounded[k]);
    return;
  }
  const BFloat16* const pairs = Halves(pairs_);
  for (int64_t k = 0; k < in_; ++k) {
    x[k] = ToFloat(pairs[2 * PanelIndex(in_ / 2, out_, k / 2, column) + k % 2]);
  }
}

void Projection::UseCodes(kernels::CodeWidth width) {
  WEFT_CHECK(precision_ == Precision::kBFloat16 && in_ % kernels::kQuantisedBlock == 0)
      << "quantised weights are multiplied in bf16, by blocks of 32";
  width_ = width;
  codes_ = Tensor::Zeros({kernels::QuantisedBytes(width, in_, out_)}, DType::kUInt8);
  weight_ = Tensor();
}

void Projection::SetCodes(int64_t column, const int8_t* codes, const uint16_t* scales,
                          const uint16_t* offsets) {
  kernels::SetQuantisedColumn(width_, in_, out_, column, codes, scales, offsets, codes_.raw());
}

void Projection::Refresh(const Context& context) {
  if (codes_.defined()) return;
  weight().MarkWritten();
  if (precision_ == Precision::kFloat32) return;
  if (!pairs_.defined()) pairs_ = Tensor::Empty({PanelElements(in_, out_)}, DType::kBFloat16);
  kernels::PackPairs(context, in_, out_, Floats(weight_), Halves(pairs_));
  if (!differentiable_) return;
  if (!transposed_pairs_.defined()) {
    transposed_pairs_ = Tensor::Empty({PanelElements(out_, in_)}, DType::kBFloat16);
  }
  kernels::PackTransposedPairs(context, in_, out_, Floats(weight_), Halves(transposed_pairs_));
}

void Projection::FreeMaster() {
  if (precision_ == Precision::kBFloat16) weight_ = Tensor();
}

void Projection::Forward(const Context& context, const Tensor& x, const float* addend,
                         Tensor& y) const {
  const int64_t rows = x.dim(0);
  const bool bias = bias_.defined();
  const float* const added = bias ? Floats(bias_) : addend;
  const int64_t stride = bias ? 0 : out_;
  float* const to = y.data<float>().data();
  if (codes_.defined()) {
    kernels::DenseQuantised(context, width_, rows, in_, out_, Halves(x), codes_.raw(), added,
                            stride, to);
  } else if (precision_ == Precision::kBFloat16) {
    kernels::DenseBf16(context, rows, in_, out_, Halves(x), Halves(pairs_), added, stride, to);
  } else {
    kernels::DenseAdd(context, rows, in_, out_, Floats(x), Floats(weight_), added, stride, to);
  }
  if (bias && addend != nullptr) {
    kernels::BinaryForward(context, Binary::kAdd, Broadcasting::kNone, 1, rows * out_, to, addend,
                           to);
  }
}

void Projection::EnableGradient(bool frozen) {
  differentiable_ = true;
  if (frozen) return;
  d_weight_ = Tensor::Zeros({in_, out_}, DType::kFloat32, Layout::kPanels);
  if (bias_.defined()) d_bias_ = Tensor::Zeros({out_});
}

void Projection::Backward(const Context& context, const Tensor& x, const Tensor& d_z,
                          bool accumulate, float* d_x) {
  const int64_t rows = d_z.dim(0);
  if (precision_ == Precision::kFloat32) {
    if (d_x != nullptr) {
      kernels::DenseInputGradient(context, rows, in_, out_, Floats(d_z),
                                  Floats(weight_.TransposedPanels()), Activation::kNone, nullptr,
                                  accumulate, d_x);
    }
    if (!has_gradient()) return;
    kernels::DenseWeightGradient(context, rows, in_, out_, Floats(x), Floats(d_z), true,
                                 d_weight_.data<float>().data(),
                                 bias_.defined() ? d_bias_.data<float>().data() : nullptr);
    return;
  }
  if (d_x != nullptr) {
    kernels::DenseBf16(context, rows, out_, in_, Halves(d_z), Halves(transposed_pairs_),
                       accumulate ? d_x : nullptr, in_, d_x);
  }
  if (!has_gradient()) return;
  const int64_t pairs = (rows + 1) / 2 * 2;
  Tensor x_pairs = Operand(precision_, pairs, in_), z_pairs = Operand(precision_, pairs, out_);
  kernels::InterleaveRows(context, rows, in_, Halves(x), Halves(x_pairs));
  kernels::InterleaveRows(context, rows, out_, Halves(d_z), Halves(z_pairs));
  kernels::DenseBf16WeightGradient(context, rows, in_, out_, Halves(x_pairs), Halves(z_pairs), true,
                                   d_weight_.data<float>().data());
  if (!bias_.defined()) return;
  Tensor wide = Tensor::Empty({rows, out_});
  kernels::Widen(context, rows * out_, Halves(d_z), wide.data<float>().data());
  kernels::SumRows(context, rows, out_, Floats(wide), true, d_bias_.data<float>().data());
}

void Projection::AddToColumnGradient(int64_t column, const float* d) {
  float* const gradient = d_weight_.data<float>().data();
  for (int64_t k = 0; k < in_; ++k) gradient[PanelIndex(in_, out_, k, column)] += d[k];
}

}  // namespace weft
