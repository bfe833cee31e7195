#include "tensor/reference.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tensor/kernels_pointwise.h"
#include "tensor/kernels_scalar.h"

namespace weft::reference {
namespace {

using Element = kernels::Pointwise<kernels::Scalar>;

constexpr int64_t kBlockRows = 256;

float Activate(Activation activation, float z) {
  switch (activation) {
    case Activation::kNone:
      return z;
    case Activation::kTanh:
      return Element::Activate<Activation::kTanh>(z);
    case Activation::kRelu:
      return Element::Activate<Activation::kRelu>(z);
    case Activation::kSigmoid:
      return Element::Activate<Activation::kSigmoid>(z);
  }
  return z;
}

float ActivateGradient(Activation activation, float h, float d) {
  switch (activation) {
    case Activation::kNone:
      return d;
    case Activation::kTanh:
      return Element::ActivateGradient<Activation::kTanh>(h, d);
    case Activation::kRelu:
      return Element::ActivateGradient<Activation::kRelu>(h, d);
    case Activation::kSigmoid:
      return Element::ActivateGradient<Activation::kSigmoid>(h, d);
  }
  return d;
}

}  // namespace

void Dense(int64_t rows, int64_t in, int64_t out, const float* x, const float* w, const float* bias,
           Activation activation, float* y) {
  for (int64_t b = 0; b < rows; ++b) {
    for (int64_t n = 0; n < out; ++n) {
      float sum = 0;
      for (int64_t k = 0; k < in; ++k) {
        sum = std::fma(x[b * in + k], w[kernels::PanelIndex(in, out, k, n)], sum);
      }
      if (bias) sum += bias[n];
      y[b * out + n] = Activate(activation, sum);
    }
  }
}

void DenseInputGradient(int64_t rows, int64_t in, int64_t out, const float* d_z, const float* wt,
                        Activation activation, const float* h, bool accumulate, float* d_x) {
  for (int64_t b = 0; b < rows; ++b) {
    for (int64_t k = 0; k < in; ++k) {
      float sum = 0;
      for (int64_t n = 0; n < out; ++n) {
        sum = std::fma(d_z[b * out + n], wt[kernels::PanelIndex(out, in, n, k)], sum);
      }
      float& d = d_x[b * in + k];
      d = accumulate ? d + sum : h ? ActivateGradient(activation, h[b * in + k], sum) : sum;
    }
  }
}

void DenseWeightGradient(int64_t rows, int64_t in, int64_t out, const float* x, const float* d_z,
                         bool accumulate, float* d_w, float* d_bias) {
  const int64_t padded = (out + 15) / 16 * 16;
  for (int64_t k = 0; k < in; ++k) {
    for (int64_t n = 0; n < padded; ++n) {
      float& d = d_w[kernels::PanelIndex(in, out, k, n)];
      if (!accumulate || n >= out) d = 0;
      if (n >= out) continue;
      for (int64_t begin = 0; begin < rows; begin += kBlockRows) {
        float sum = 0;
        for (int64_t b = begin; b < std::min(begin + kBlockRows, rows); ++b) {
          sum = std::fma(x[b * in + k], d_z[b * out + n], sum);
        }
        d = begin == 0 && !accumulate ? sum : d + sum;
      }
    }
  }
  if (d_bias) SumRows(rows, out, d_z, accumulate, d_bias);
}

void TransposePanels(int64_t in, int64_t out, const float* w, float* wt) {
  std::vector<float> row_major(in * out), transposed(in * out);
  UnpackPanels(in, out, w, row_major.data());
  SwapLastTwo(1, in, out, row_major.data(), transposed.data());
  PackPanels(out, in, transposed.data(), wt);
}

void PackPanels(int64_t in, int64_t out, const float* row_major, float* panels) {
  const int64_t padded = (out + 15) / 16 * 16;
  for (int64_t k = 0; k < in; ++k) {
    for (int64_t n = 0; n < padded; ++n) {
      panels[kernels::PanelIndex(in, out, k, n)] = n < out ? row_major[k * out + n] : 0;
    }
  }
}

void UnpackPanels(int64_t in, int64_t out, const float* panels, float* row_major) {
  for (int64_t k = 0; k < in; ++k) {
    for (int64_t n = 0; n < out; ++n)
      row_major[k * out + n] = panels[kernels::PanelIndex(in, out, k, n)];
  }
}

void ActivationGradient(int64_t count, Activation activation, const float* h, const float* d_h,
                        float* d_z) {
  for (int64_t i = 0; i < count; ++i) d_z[i] = ActivateGradient(activation, h[i], d_h[i]);
}

void SumRows(int64_t rows, int64_t columns, const float* x, bool accumulate, float* y) {
  for (int64_t n = 0; n < columns; ++n) {
    if (!accumulate) y[n] = 0;
    for (int64_t begin = 0; begin < rows; begin += kBlockRows) {
      float sum = 0;
      for (int64_t b = begin; b < std::min(begin + kBlockRows, rows); ++b)
        sum += x[b * columns + n];
      y[n] = begin == 0 && !accumulate ? sum : y[n] + sum;
    }
  }
}

void Im2Col(int64_t batch, int64_t channels, int64_t height, int64_t width, int64_t kernel,
            int64_t stride, int64_t pad, const float* x, float* patches) {
  const int64_t out_height = (height + 2 * pad - kernel) / stride + 1;
  const int64_t out_width = (width + 2 * pad - kernel) / stride + 1;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t oy = 0; oy < out_height; ++oy) {
      for (int64_t ox = 0; ox < out_width; ++ox) {
        for (int64_t c = 0; c < channels; ++c) {
          for (int64_t ky = 0; ky < kernel; ++ky) {
            for (int64_t kx = 0; kx < kernel; ++kx) {
              const int64_t row = oy * stride + ky - pad, column = ox * stride + kx - pad;
              const bool inside = row >= 0 && row < height && column >= 0 && column < width;
              *patches++ = inside ? x[((b * channels + c) * height + row) * width + column] : 0;
            }
          }
        }
      }
    }
  }
}

void Col2Im(int64_t batch, int64_t channels, int64_t height, int64_t width, int64_t kernel,
            int64_t stride, int64_t pad, const float* d_patches, bool accumulate, float* d_x) {
  const int64_t out_height = (height + 2 * pad - kernel) / stride + 1;
  const int64_t out_width = (width + 2 * pad - kernel) / stride + 1;
  for (int64_t pixel = 0; pixel < batch * channels * height * width; ++pixel) {
    const int64_t column = pixel % width, row = pixel / width % height;
    const int64_t c = pixel / (width * height) % channels, b = pixel / (width * height * channels);
    float sum = accumulate ? d_x[pixel] : 0;
    for (int64_t ky = 0; ky < kernel; ++ky) {
      for (int64_t kx = 0; kx < kernel; ++kx) {
        const int64_t y = row + pad - ky, x = column + pad - kx;
        if (y < 0 || x < 0 || y % stride || x % stride) continue;
        const int64_t oy = y / stride, ox = x / stride;
        if (oy >= out_height || ox >= out_width) continue;
        sum += d_patches[((((b * out_height + oy) * out_width + ox) * channels + c) * kernel + ky) *
                             kernel +
                         kx];
      }
    }
    d_x[pixel] = sum;
  }
}

void SwapLastTwo(int64_t batch, int64_t a, int64_t b, const float* x, float* y) {
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t i = 0; i < a; ++i) {
      for (int64_t j = 0; j < b; ++j) y[(n * b + j) * a + i] = x[(n * a + i) * b + j];
    }
  }
}

}  // namespace weft::reference
