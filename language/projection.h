// A matrix that rows are multiplied with, W [in, out] (torch's Linear stores its transpose), in the
// precision of its use, and its gradient. Several of a layer's matrices that read the same rows lie
// side by side in one (q, k and v; gate and up).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tensor/context.h"
#include "tensor/kernels_quantised.h"
#include "tensor/tensor.h"

namespace weft {

// Of products: their operands. Sums, the residual stream and master weights are f32 in both.
enum class Precision : uint8_t { kFloat32, kBFloat16 };

// Rows that a product reads: f32, or bf16 where the precision says so.
Tensor Operand(Precision precision, int64_t rows, int64_t columns);

class Projection {
 public:
  // What is learnt beside a frozen matrix (LoRA, Hu et al. 2021): outputs [first, first + out of b)
  // get scale * (x A) B on top.
  struct Adapter;

  Projection();
  Projection(int64_t in, int64_t out, bool bias, Precision precision);
  ~Projection();
  Projection(Projection&&) noexcept;
  Projection& operator=(Projection&&) noexcept;

  int64_t in() const { return in_; }
  int64_t out() const { return out_; }
  bool has_bias() const { return bias_.defined(); }

  // Output rows [begin, begin + rows.size() / in) in torch's layout [out, in], f32.
  void SetRows(int64_t begin, std::span<const float> rows);
  // Those of the f32 weight while there is one, else as products read them.
  void GetRows(int64_t begin, std::span<float> rows) const;
  // The f32 weight in panels, zero until it is set; gone once FreeMaster was called.
  Tensor& weight();
  Tensor& bias() { return bias_; }

  // Keeps the weights quantised instead of as numbers (bf16 only, in a multiple of 32, no gradient
  // of their own): first UseCodes, then every output's.
  void UseCodes(kernels::CodeForm form);
  void UseNumbers() { codes_ = Tensor(); }
  void SetCodes(int64_t column, const kernels::QuantisedColumn& weights);
  bool has_codes() const { return codes_.defined(); }
  // From here on rows are rounded to 8 bits before they meet codes (kernels_eight_bits.h).
  void RoundRows() { rounds_rows_ = true; }

  // Makes what products in bf16 read from the f32 weight: after loading and after each step of an
  // optimiser.
  void Refresh(const Context& context);
  // Keeps only what inference reads: with adapters on top, what is frozen beside them.
  void FreeMaster();

  // What Forward reads, for models that are handed a trained one's: pairs in bf16, else the f32
  // weight. Handles: Refresh never writes into pairs that somebody else holds.
  Tensor& inference_weight() { return precision_ == Precision::kBFloat16 ? pairs_ : weight(); }

  // Both matrices are zero until they are set.
  Adapter& AddAdapter(int64_t first, int64_t rows, int64_t rank, float scale);
  std::vector<std::unique_ptr<Adapter>>& adapters() { return adapters_; }
  // Adds the adapters to the f32 weight, which must be there, and forgets them; Refresh must
  // follow.
  void MergeAdapters();

  // y [T, out] f32 = x W + bias + addend; x an Operand. addend [T, out] may be null or y.
  void Forward(const Context& context, const Tensor& x, const float* addend, Tensor& y) const;
  // One column of W as products read it, an embedding: [in] f32.
  void GetColumn(int64_t column, float* x) const;

  // From here on Backward works; with its own gradient, which begins at zero, unless frozen.
  void EnableGradient(bool frozen = false);
  bool has_gradient() const { return d_weight_.defined(); }
  Tensor& d_weight() { return WithSum(d_weight_); }
  Tensor& d_bias() { return WithSum(d_bias_); }
  // The gradient is zero again, without a pass over it: Backward writes where it would add. What
  // d_weight and d_bias gave before does not show it.
  void ClearGradient() { cleared_ = true; }
  // d_x [T, in] f32 (+)= d_z W^T, and the gradients += x^T d_z and column sums. x and d_z are
  // Operands; d_x may be null.
  void Backward(const Context& context, const Tensor& x, const Tensor& d_z, bool accumulate,
                float* d_x);
  // d_weight[:, column] += d, [in].
  void AddToColumnGradient(int64_t column, const float* d);

 private:
  void GetMasterColumn(int64_t column, float* x) const;
  Tensor& WithSum(Tensor& gradient);
  void TransposeCodes();
  void BackwardBase(const Context& context, const Tensor& x, const Tensor& d_z, bool accumulate,
                    float* d_x);

  int64_t in_ = 0, out_ = 0;
  Precision precision_ = Precision::kFloat32;
  Tensor weight_, bias_;
  Tensor pairs_;                     // bf16
  Tensor codes_, transposed_codes_;  // instead of weight_ and pairs_; the transpose in bf16
  kernels::CodeForm form_;
  bool rounds_rows_ = false;
  Tensor d_weight_, d_bias_;
  bool differentiable_ = false, cleared_ = false;
  std::vector<std::unique_ptr<Adapter>> adapters_;
};

struct Projection::Adapter {
  int64_t first;
  float scale;
  Projection a, b;  // [in, rank], [rank, rows]

  Tensor Reduce(const Context& context, const Tensor& x) const;
  void Backward(const Context& context, const Tensor& x, const Tensor& d_z, float* d_x);
};

}  // namespace weft
