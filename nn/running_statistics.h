// Mean and variance of features over all rows seen, for the normalisation of observations and
// returns. Everything in double, rows in order, batches merged by Chan et al. 1983, so the same
// rows in the same batches give the same bits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor_map.h"

namespace weft {

class OnnxGraph;

class RunningStatistics {
 public:
  // Starts at mean 0, variance 1, with the weight of initial_count rows (1e-4, as Stable-Baselines3
  // and Gymnasium).
  explicit RunningStatistics(int64_t features, double initial_count = 1e-4);

  int64_t features() const { return static_cast<int64_t>(mean_.size()); }
  double count() const { return count_; }
  std::span<const double> mean() const { return mean_; }
  std::span<const double> variance() const { return variance_; }  // population variance

  // rows: f32 or f64, its elements are rows of features() values ([T, N, F], or [T, N] for one
  // feature).
  void Update(const Tensor& rows);

  // (x - mean) / sqrt(variance + epsilon), clipped to +-clip, as f32 of the same shape. x: f32 or
  // f64.
  Tensor Normalise(const Tensor& x, double clip, double epsilon = 1e-8) const;
  // x / sqrt(variance + epsilon), clipped: for rewards, whose sign must stay.
  Tensor Scale(const Tensor& x, double clip, double epsilon = 1e-8) const;

  // Appends Normalise to a graph (nn/onnx.h), in f32.
  std::string ExportNormalise(OnnxGraph& graph, std::string_view prefix, const std::string& x,
                              double clip, double epsilon = 1e-8) const;

  // mean f64 [F], variance f64 [F], count f64 []; exact.
  TensorMap Save() const;
  void Load(const TensorMap& state);

 private:
  size_t RowsOf(const Tensor& x) const;  // checks dtype and size
  Tensor Apply(const Tensor& x, bool centre, double clip, double epsilon) const;

  std::vector<double> mean_, variance_;
  double count_;
};

}  // namespace weft
