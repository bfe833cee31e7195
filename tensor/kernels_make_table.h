// The table of one vector type; the only thing that a per-instruction-set file gives out.
#pragma once

#include "tensor/kernels_elements.h"
#include "tensor/kernels_halves.h"
#include "tensor/kernels_rows.h"
#include "tensor/kernels_table.h"
#include "tensor/kernels_tiles.h"
#include "tensor/kernels_transformer_rows.h"

namespace weft::kernels {

template <class S>
constexpr KernelTable MakeTable() {
  using T = Tiles<S>;
  using E = Elements<S>;
  using H = Halves<S>;
  using R = Rows<S>;
  using X = TransformerRows<S>;
  return {.dense_tiles = T::DenseTiles,
          .dense = T::Dense,
          .weight_gradient_tiles = T::WeightGradientTiles,
          .weight_gradient = T::WeightGradient,
          .gradient_rows = T::kBlockRows,
          .pack_features = T::PackFeatures,
          .transpose = S::Transpose,
          .activation_gradient = E::ActivationGradient,
          .unary = E::Apply,
          .unary_gradient = E::ApplyGradient,
          .binary = E::Combine,
          .binary_gradient_first = E::GradientOfFirst,
          .binary_gradient_second = E::GradientOfSecond,
          .binary_gradient_sum = E::SumOfSecond,
          .binary_gradient_sum_last = E::SumLastOfSecond,
          .binary_gradient_sum_rows = E::SumRowsOfSecond,
          .affine = E::Affine,
          .clamp = E::Clamp,
          .clamp_gradient = E::ClampGradient,
          .sum = E::Sum,
          .sum_squares = E::SumSquares,
          .sum_last = E::SumLast,
          .sum_rows = E::template SumRows<float>,
          .sum_rows_bf16 = E::template SumRows<uint16_t>,
          .max_last = R::MaxLast,
          .first_non_finite = E::FirstNonFinite,
          .softmax = R::Softmax,
          .softmax_gradient = R::SoftmaxGradient,
          .log_softmax = R::LogSoftmax,
          .log_softmax_gradient = R::LogSoftmaxGradient,
          .layer_norm = R::LayerNorm,
          .layer_norm_gradient = R::LayerNormGradient,
          .layer_norm_scale_gradient = R::LayerNormScaleGradient,
          .lstm = R::Lstm,
          .lstm_gradient = R::LstmGradient,
          .gru = R::Gru,
          .gru_gradient = R::GruGradient,
          .adam = E::Adam,
          .rms_prop = E::RmsProp,
          .sgd = E::Sgd,
          .lerp = E::Lerp,
          .round = H::Round,
          .widen = H::Widen,
          .interleave = H::Interleave,
          .interleave_halves = H::InterleaveHalves,
          .rms_norm = X::RmsNorm,
          .rms_norm_gradient = X::RmsNormGradient,
          .rms_norm_scale_gradient = X::RmsNormScaleGradient,
          .rotate = X::Rotate,
          .gate = X::Gate,
          .gate_gradient = X::GateGradient,
          .logit_statistics = X::LogitStatistics,
          .logit_gradient = X::LogitGradient,
          .attend = X::Attend,
          .attend_gradient = X::AttendGradient,
          .multiply_add = T::MultiplyAdd};
}

}  // namespace weft::kernels
