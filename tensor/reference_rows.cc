#include <algorithm>
#include <cmath>
#include <vector>

#include "tensor/kernels_pointwise.h"
#include "tensor/kernels_scalar.h"
#include "tensor/reference.h"

namespace weft::reference {
namespace {

using Math = kernels::Math<kernels::Scalar>;

constexpr int64_t kBlock = 1024;

template <class T>
T SumBlock(int64_t count, const T* x) {
  T lanes[16] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i % 16] += x[i];
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

template <class T>
T SumTree(int64_t count, const T* x) {
  if (count <= kBlock) return SumBlock(count, x);
  int64_t left = kBlock;
  while (left * 2 < count) left *= 2;
  return SumTree(left, x) + SumTree(count - left, x + left);
}

float Maximum(int64_t count, const float* x) {
  float largest = -INFINITY;
  for (int64_t i = 0; i < count; ++i) largest = largest < x[i] ? x[i] : largest;
  return largest;
}

}  // namespace

float SumAll(int64_t count, const float* x) {
  return SumTree(count, x);
}

double SumSquares(int64_t count, const float* x) {
  std::vector<double> squares(count);
  for (int64_t i = 0; i < count; ++i) squares[i] = static_cast<double>(x[i]) * x[i];
  return SumTree(count, squares.data());
}

void SumLast(int64_t rows, int64_t columns, const float* x, float* y) {
  for (int64_t b = 0; b < rows; ++b) y[b] = SumTree(columns, x + b * columns);
}

void MaxLast(int64_t rows, int64_t columns, const float* x, float* y, int64_t* argmax) {
  for (int64_t b = 0; b < rows; ++b) {
    const float* row = x + b * columns;
    int64_t best = 0;
    for (int64_t i = 1; i < columns && !std::isnan(row[best]); ++i) {
      if (row[i] > row[best] || std::isnan(row[i])) best = i;
    }
    y[b] = row[best];
    if (argmax) argmax[b] = best;
  }
}

void Softmax(int64_t rows, int64_t columns, const float* x, float* y) {
  for (int64_t b = 0; b < rows; ++b, x += columns, y += columns) {
    const float largest = Maximum(columns, x);
    for (int64_t i = 0; i < columns; ++i) y[i] = Math::Exp(x[i] - largest);
    const float sum = SumTree(columns, y);
    for (int64_t i = 0; i < columns; ++i) y[i] /= sum;
  }
}

void SoftmaxGradient(int64_t rows, int64_t columns, const float* y, const float* d_y,
                     bool accumulate, float* d_x) {
  std::vector<float> products(columns);
  for (int64_t b = 0; b < rows; ++b, y += columns, d_y += columns, d_x += columns) {
    for (int64_t i = 0; i < columns; ++i) products[i] = d_y[i] * y[i];
    const float dot = SumTree(columns, products.data());
    for (int64_t i = 0; i < columns; ++i) {
      const float d = y[i] * (d_y[i] - dot);
      d_x[i] = accumulate ? d_x[i] + d : d;
    }
  }
}

void LogSoftmax(int64_t rows, int64_t columns, const float* x, float* y) {
  std::vector<float> exponentials(columns);
  for (int64_t b = 0; b < rows; ++b, x += columns, y += columns) {
    const float largest = Maximum(columns, x);
    for (int64_t i = 0; i < columns; ++i) exponentials[i] = Math::Exp(x[i] - largest);
    const float log_sum = Math::Log(SumTree(columns, exponentials.data()));
    for (int64_t i = 0; i < columns; ++i) y[i] = x[i] - largest - log_sum;
  }
}

void LogSoftmaxGradient(int64_t rows, int64_t columns, const float* y, const float* d_y,
                        bool accumulate, float* d_x) {
  for (int64_t b = 0; b < rows; ++b, y += columns, d_y += columns, d_x += columns) {
    const float sum = SumTree(columns, d_y);
    for (int64_t i = 0; i < columns; ++i) {
      const float d = std::fma(-Math::Exp(y[i]), sum, d_y[i]);
      d_x[i] = accumulate ? d_x[i] + d : d;
    }
  }
}

void LayerNorm(int64_t rows, int64_t columns, const float* x, const float* gamma, const float* beta,
               float epsilon, float* y, float* mean, float* rstd) {
  const auto n = static_cast<float>(columns);
  std::vector<float> squares(columns);
  for (int64_t b = 0; b < rows; ++b, x += columns, y += columns) {
    mean[b] = SumTree(columns, x) / n;
    for (int64_t i = 0; i < columns; ++i) squares[i] = (x[i] - mean[b]) * (x[i] - mean[b]);
    rstd[b] = 1 / std::sqrt(SumTree(columns, squares.data()) / n + epsilon);
    for (int64_t i = 0; i < columns; ++i) {
      y[i] = std::fma((x[i] - mean[b]) * rstd[b], gamma[i], beta[i]);
    }
  }
}

void LayerNormGradient(int64_t rows, int64_t columns, const float* x, const float* gamma,
                       const float* mean, const float* rstd, const float* d_y, bool accumulate,
                       float* d_x, float* d_gamma, float* d_beta) {
  const auto n = static_cast<float>(columns);
  std::vector<float> g(columns), products(columns), d_gamma_rows(rows * columns);
  for (int64_t b = 0; b < rows; ++b) {
    const float* row = x + b * columns;
    const float* d = d_y + b * columns;
    for (int64_t i = 0; i < columns; ++i) {
      const float normal = (row[i] - mean[b]) * rstd[b];
      g[i] = d[i] * gamma[i];
      products[i] = g[i] * normal;
      d_gamma_rows[b * columns + i] = d[i] * normal;
    }
    const float mean_g = SumTree(columns, g.data()) / n;
    const float mean_product = SumTree(columns, products.data()) / n;
    for (int64_t i = 0; d_x && i < columns; ++i) {
      const float normal = (row[i] - mean[b]) * rstd[b];
      const float value = rstd[b] * std::fma(-normal, mean_product, g[i] - mean_g);
      float& target = d_x[b * columns + i];
      target = accumulate ? target + value : value;
    }
  }
  if (d_gamma) SumRows(rows, columns, d_gamma_rows.data(), false, d_gamma);
  if (d_beta) SumRows(rows, columns, d_y, false, d_beta);
}

}  // namespace weft::reference
