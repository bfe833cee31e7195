#include "language/projection.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "tensor/kernels.h"
#include "tensor/kernels_bf16.h"
#include "tensor/kernels_eight_bits.h"
#include "tensor/ops_check.h"

namespace weft {
namespace {

using ops::Floats;

constexpr int64_t kPanel = 64;

const BFloat16* Halves(const Tensor& x) {
  return reinterpret_cast<const BFloat16*>(x.raw());
}
BFloat16* Halves(Tensor& x) {
  return reinterpret_cast<BFloat16*>(x.raw());
}

Tensor Rounded(const Context& context, Precision precision, const Tensor& x) {
  if (precision == Precision::kFloat32) return x;
  Tensor y = Tensor::Empty(x.shape(), DType::kBFloat16);
  kernels::Round(context, x.elements(), Floats(x), Halves(y));
  return y;
}

}  // namespace

Tensor Operand(Precision precision, int64_t rows, int64_t columns) {
  return Tensor::Empty({rows, columns},
                       precision == Precision::kBFloat16 ? DType::kBFloat16 : DType::kFloat32);
}

Projection::Projection() = default;
Projection::~Projection() = default;
Projection::Projection(Projection&&) noexcept = default;
Projection& Projection::operator=(Projection&&) noexcept = default;

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
  float* const to_weight = Floats(weight());
  for (int64_t row = 0; row < count;) {
    const int64_t column = begin + row;
    const int64_t together = std::min(count - row, kPanel - column % kPanel);
    for (int64_t k = 0; k < in_; ++k) {
      float* const to = to_weight + kernels::PanelIndex(in_, out_, k, column);
      const float* const from = rows.data() + row * in_ + k;
      for (int64_t i = 0; i < together; ++i) to[i] = from[i * in_];
    }
    row += together;
  }
}

void Projection::GetRows(int64_t begin, std::span<float> rows) const {
  const int64_t count = std::ssize(rows) / in_;
  for (int64_t row = 0; row < count; ++row) {
    float* const to = rows.data() + row * in_;
    if (weight_.defined()) {
      GetMasterColumn(begin + row, to);
    } else {
      GetColumn(begin + row, to);
    }
  }
}

void Projection::GetMasterColumn(int64_t column, float* x) const {
  const float* const weight = Floats(weight_);
  for (int64_t k = 0; k < in_; ++k) x[k] = weight[kernels::PanelIndex(in_, out_, k, column)];
}

void Projection::GetColumn(int64_t column, float* x) const {
  if (precision_ == Precision::kFloat32) return GetMasterColumn(column, x);
  if (codes_.defined()) {
    std::vector<BFloat16> rounded(in_);
    kernels::GetQuantisedColumn(form_, in_, out_, column, codes_.raw(), rounded.data());
    for (int64_t k = 0; k < in_; ++k) x[k] = ToFloat(rounded[k]);
    return;
  }
  const BFloat16* const pairs = Halves(pairs_);
  for (int64_t k = 0; k < in_; ++k) {
    x[k] = ToFloat(pairs[2 * kernels::PanelIndex(in_ / 2, out_, k / 2, column) + k % 2]);
  }
}

void Projection::UseCodes(kernels::CodeForm form) {
  WEFT_CHECK(precision_ == Precision::kBFloat16 && in_ % kernels::kQuantisedBlock == 0)
      << "quantised weights are multiplied in bf16, by blocks of 32";
  form_ = form;
  codes_ = Tensor::Zeros({kernels::QuantisedBytes(form, in_, out_)}, DType::kUInt8);
  weight_ = Tensor();
}

void Projection::SetCodes(int64_t column, const kernels::QuantisedColumn& weights) {
  kernels::SetQuantisedColumn(form_, in_, out_, column, weights, codes_.raw());
}

// The transposed pairs of a frozen quantised matrix, for its input's gradient.
void Projection::TransposeCodes() {
  Tensor panels = Tensor::Zeros({in_, out_}, DType::kFloat32, Layout::kPanels);
  float* const to = Floats(panels);
  std::vector<float> column(in_);
  for (int64_t n = 0; n < out_; ++n) {
    GetColumn(n, column.data());
    for (int64_t k = 0; k < in_; ++k) to[kernels::PanelIndex(in_, out_, k, n)] = column[k];
  }
  Tensor pairs = Tensor::Empty({PanelElements(in_, out_)}, DType::kBFloat16);
  kernels::PackPairs({}, in_, out_, to, Halves(pairs));
  transposed_codes_ = Tensor::Empty({PanelElements(out_, in_)}, DType::kBFloat16);
  kernels::TransposePairs({}, in_, out_, Halves(pairs), Halves(transposed_codes_));
}

void Projection::Refresh(const Context& context) {
  for (const auto& adapter : adapters_) {
    adapter->a.Refresh(context);
    adapter->b.Refresh(context);
  }
  if (codes_.defined()) {
    if (differentiable_ && !transposed_codes_.defined()) TransposeCodes();
    return;
  }
  if (!weight_.defined() && pairs_.defined()) return;  // FreeMaster: they stay as they are
  weight().MarkWritten();
  if (precision_ == Precision::kFloat32) return;
  if (!pairs_.defined() || !pairs_.unique()) {
    pairs_ = Tensor::Empty({PanelElements(in_, out_)}, DType::kBFloat16);
  }
  kernels::PackPairs(context, in_, out_, Floats(weight_), Halves(pairs_));
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
  float* const to = Floats(y);
  if (codes_.defined()) {
    const auto product = rounds_rows_ ? kernels::DenseEightBits : kernels::DenseQuantised;
    product(context, form_, rows, in_, out_, Halves(x), codes_.raw(), added, stride, to);
  } else if (precision_ == Precision::kBFloat16) {
    kernels::DenseBf16(context, rows, in_, out_, Halves(x), Halves(pairs_), added, stride, to);
  } else {
    kernels::DenseAdd(context, rows, in_, out_, Floats(x), Floats(weight_), added, stride, to);
  }
  if (bias && addend != nullptr) {
    kernels::BinaryForward(context, Binary::kAdd, Broadcasting::kNone, 1, rows * out_, to, addend,
                           to);
  }
  for (const auto& adapter : adapters_) {
    const Tensor u = adapter->Reduce(context, x);
    float* const part = to + adapter->first;
    const Projection& b = adapter->b;
    if (precision_ == Precision::kBFloat16) {
      kernels::DenseBf16(context, rows, b.in_, b.out_, Halves(u), Halves(b.pairs_), part, out_,
                         part, out_);
    } else {
      kernels::DenseAdd(context, rows, b.in_, b.out_, Floats(u), Floats(b.weight_), part, out_,
                        part, out_);
    }
  }
}

// scale * x A, an Operand [T, rank].
Tensor Projection::Adapter::Reduce(const Context& context, const Tensor& x) const {
  Tensor u = Tensor::Empty({x.dim(0), a.out()});
  a.Forward(context, x, nullptr, u);
  kernels::Affine(context, u.elements(), scale, 0, Floats(u), Floats(u));
  return Rounded(context, a.precision_, u);
}

// Both parts are filled where no Backward wrote them.
Tensor& Projection::WithSum(Tensor& gradient) {
  if (std::exchange(cleared_, false) && has_gradient()) {
    d_weight_.Fill(0);
    if (d_bias_.defined()) d_bias_.Fill(0);
  }
  return gradient;
}

Projection::Adapter& Projection::AddAdapter(int64_t first, int64_t rows, int64_t rank,
                                            float scale) {
  adapters_.push_back(
      std::make_unique<Adapter>(Adapter{.first = first,
                                        .scale = scale,
                                        .a = Projection(in_, rank, false, precision_),
                                        .b = Projection(rank, rows, false, precision_)}));
  return *adapters_.back();
}

void Projection::MergeAdapters() {
  WEFT_CHECK(adapters_.empty() || weight_.defined())
      << "adapters are merged into the f32 weight, which was freed";
  for (const auto& adapter : adapters_) {
    const int64_t rank = adapter->a.out_, rows = adapter->b.out_;
    std::vector<float> a(rank * in_), b(rows * rank), row(in_);
    adapter->a.GetRows(0, a);
    adapter->b.GetRows(0, b);
    for (int64_t r = 0; r < rows; ++r) {
      GetRows(adapter->first + r, row);
      for (int64_t k = 0; k < in_; ++k) {
        double sum = 0;
        for (int64_t i = 0; i < rank; ++i)
          sum += static_cast<double>(b[r * rank + i]) * a[i * in_ + k];
        row[k] = static_cast<float>(row[k] + adapter->scale * sum);
      }
      SetRows(adapter->first + r, row);
    }
  }
  adapters_.clear();
}

void Projection::EnableGradient(bool frozen) {
  differentiable_ = true;
  if (frozen) return;
  d_weight_ = Tensor::Zeros({in_, out_}, DType::kFloat32, Layout::kPanels);
  if (bias_.defined()) d_bias_ = Tensor::Zeros({out_});
}

void Projection::Backward(const Context& context, const Tensor& x, const Tensor& d_z,
                          bool accumulate, float* d_x) {
  BackwardBase(context, x, d_z, accumulate, d_x);
  for (const auto& adapter : adapters_) adapter->Backward(context, x, d_z, d_x);
}

void Projection::Adapter::Backward(const Context& context, const Tensor& x, const Tensor& d_z,
                                   float* d_x) {
  const int64_t tokens = d_z.dim(0), columns = d_z.dim(1), rank = a.out_;
  const size_t element = d_z.bytes() / static_cast<size_t>(d_z.elements());
  Tensor part = Operand(b.precision_, tokens, b.out_);
  for (int64_t t = 0; t < tokens; ++t) {
    std::memcpy(part.raw() + t * b.out_ * element, d_z.raw() + (t * columns + first) * element,
                b.out_ * element);
  }
  Tensor d_u = Tensor::Empty({tokens, rank});
  b.Backward(context, Reduce(context, x), part, false, Floats(d_u));
  kernels::Affine(context, d_u.elements(), scale, 0, Floats(d_u), Floats(d_u));
  a.Backward(context, x, Rounded(context, a.precision_, d_u), true, d_x);
}

void Projection::BackwardBase(const Context& context, const Tensor& x, const Tensor& d_z,
                              bool accumulate, float* d_x) {
  const int64_t rows = d_z.dim(0);
  const bool add = !std::exchange(cleared_, false);
  // Weights are transposed for each use: a second copy of all of them costs more memory than this
  // costs time.
  if (precision_ == Precision::kFloat32) {
    if (d_x != nullptr) {
      Tensor transposed = Tensor::Empty({PanelElements(out_, in_)});
      kernels::TransposePanels(context, in_, out_, Floats(weight_), Floats(transposed));
      kernels::DenseInputGradient(context, rows, in_, out_, Floats(d_z), Floats(transposed),
                                  Activation::kNone, nullptr, accumulate, d_x);
    }
    if (!has_gradient()) return;
    kernels::DenseWeightGradient(context, rows, in_, out_, Floats(x), Floats(d_z), add,
                                 Floats(d_weight_), bias_.defined() ? Floats(d_bias_) : nullptr);
    return;
  }
  if (d_x != nullptr) {
    Tensor transposed = transposed_codes_;
    if (!transposed.defined()) {
      transposed = Tensor::Empty({PanelElements(out_, in_)}, DType::kBFloat16);
      kernels::TransposePairs(context, in_, out_, Halves(pairs_), Halves(transposed));
    }
    kernels::DenseBf16(context, rows, out_, in_, Halves(d_z), Halves(transposed),
                       accumulate ? d_x : nullptr, in_, d_x);
  }
  if (!has_gradient()) return;
  const int64_t pairs = (rows + 1) / 2 * 2;
  Tensor x_pairs = Operand(precision_, pairs, in_), z_pairs = Operand(precision_, pairs, out_);
  kernels::InterleaveRows(context, rows, in_, Halves(x), Halves(x_pairs));
  kernels::InterleaveRows(context, rows, out_, Halves(d_z), Halves(z_pairs));
  kernels::DenseBf16WeightGradient(context, rows, in_, out_, Halves(x_pairs), Halves(z_pairs), add,
                                   Floats(d_weight_));
  if (bias_.defined()) {
    kernels::SumRows(context, rows, out_, Halves(d_z), add, Floats(d_bias_));
  }
}

void Projection::AddToColumnGradient(int64_t column, const float* d) {
  float* const gradient = Floats(d_weight());
  for (int64_t k = 0; k < in_; ++k) gradient[kernels::PanelIndex(in_, out_, k, column)] += d[k];
}

}  // namespace weft
