#include <cmath>
#include <vector>

#include "tensor/kernels_denormals.h"
#include "tensor/kernels_pointwise.h"
#include "tensor/kernels_scalar.h"
#include "tensor/kernels_switch.h"
#include "tensor/reference.h"

namespace weft::reference {
namespace {

using Element = kernels::Pointwise<kernels::Scalar>;
using Optimise = kernels::Optimise<kernels::Scalar>;

// Where the element of b lies that meets element `index` of a.
int64_t PartnerOf(Broadcasting broadcast, int64_t columns, int64_t index) {
  switch (broadcast) {
    case Broadcasting::kNone:
      return index;
    case Broadcasting::kScalar:
      return 0;
    case Broadcasting::kRow:
      return index % columns;
    case Broadcasting::kColumn:
      return index / columns;
  }
  return 0;
}

void Put(bool accumulate, float value, float* target) {
  *target = accumulate ? *target + value : value;
}

}  // namespace

void UnaryForward(Unary op, int64_t count, const float* x, float* y) {
  kernels::Switch(op, [&]<Unary kOp>() {
    for (int64_t i = 0; i < count; ++i) y[i] = Element::Apply<kOp>(x[i]);
  });
}

void UnaryGradient(Unary op, int64_t count, const float* x, const float* y, const float* d_y,
                   bool accumulate, float* d_x) {
  kernels::Switch(op, [&]<Unary kOp>() {
    for (int64_t i = 0; i < count; ++i) {
      Put(accumulate, Element::ApplyGradient<kOp>(x[i], y[i], d_y[i]), d_x + i);
    }
  });
}

void BinaryForward(Binary op, Broadcasting broadcast, int64_t rows, int64_t columns, const float* a,
                   const float* b, float* y) {
  kernels::Switch(op, [&]<Binary kOp>() {
    for (int64_t i = 0; i < rows * columns; ++i) {
      y[i] = Element::Combine<kOp>(a[i], b[PartnerOf(broadcast, columns, i)]);
    }
  });
}

void BinaryGradient(Binary op, Broadcasting broadcast, int64_t rows, int64_t columns,
                    const float* a, const float* b, const float* d_y, bool accumulate_a, float* d_a,
                    bool accumulate_b, float* d_b) {
  const int64_t count = rows * columns;
  std::vector<float> d_first(count), d_second(count);
  kernels::Switch(op, [&]<Binary kOp>() {
    for (int64_t i = 0; i < count; ++i) {
      const float partner = b[PartnerOf(broadcast, columns, i)];
      d_first[i] = Element::GradientOfFirst<kOp>(a[i], partner, d_y[i]);
      d_second[i] = Element::GradientOfSecond<kOp>(a[i], partner, d_y[i]);
    }
  });
  for (int64_t i = 0; d_a && i < count; ++i) Put(accumulate_a, d_first[i], d_a + i);
  if (!d_b) return;
  switch (broadcast) {
    case Broadcasting::kNone:
      for (int64_t i = 0; i < count; ++i) Put(accumulate_b, d_second[i], d_b + i);
      return;
    case Broadcasting::kScalar:
      Put(accumulate_b, SumAll(count, d_second.data()), d_b);
      return;
    case Broadcasting::kRow:
      SumRows(rows, columns, d_second.data(), accumulate_b, d_b);
      return;
    case Broadcasting::kColumn:
      std::vector<float> sums(rows);
      SumLast(rows, columns, d_second.data(), sums.data());
      for (int64_t i = 0; i < rows; ++i) Put(accumulate_b, sums[i], d_b + i);
      return;
  }
}

void Affine(int64_t count, float scale, float shift, const float* x, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] * scale + shift;
}

void Clamp(int64_t count, float low, float high, const float* x, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = Element::Clamp(x[i], low, high);
}

void ClampGradient(int64_t count, float low, float high, const float* x, const float* d_y,
                   bool accumulate, float* d_x) {
  for (int64_t i = 0; i < count; ++i) {
    Put(accumulate, Element::ClampGradient(x[i], low, high, d_y[i]), d_x + i);
  }
}

void Select(int64_t count, const uint8_t* mask, const float* a, const float* b, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = mask[i] ? a[i] : b[i];
}

void LstmCell(int64_t rows, int64_t hidden, const float* gates, const float* c, float* new_c,
              float* new_h, float* activated) {
  for (int64_t b = 0; b < rows; ++b) {
    for (int64_t j = 0; j < hidden; ++j) {
      float gate[4], tanh_c;
      for (int g = 0; g < 4; ++g) gate[g] = gates[(b * 4 + g) * hidden + j];
      const int64_t at = b * hidden + j;
      Element::Lstm(gate, gate + 1, gate + 2, gate + 3, c[at], new_c + at, &tanh_c, new_h + at);
      for (int g = 0; g < 4; ++g) activated[(b * 5 + g) * hidden + j] = gate[g];
      activated[(b * 5 + 4) * hidden + j] = tanh_c;
    }
  }
}

void LstmCellGradient(int64_t rows, int64_t hidden, const float* activated, const float* c,
                      const float* d_new_c, const float* d_new_h, float* d_gates, float* d_c) {
  for (int64_t b = 0; b < rows; ++b) {
    for (int64_t j = 0; j < hidden; ++j) {
      float gate[5];
      for (int g = 0; g < 5; ++g) gate[g] = activated[(b * 5 + g) * hidden + j];
      const int64_t at = b * hidden + j;
      Element::LstmGradient(gate, gate + 1, gate + 2, gate + 3, gate[4], c[at], d_new_c[at],
                            d_new_h[at], d_c + at);
      for (int g = 0; g < 4; ++g) d_gates[(b * 4 + g) * hidden + j] = gate[g];
    }
  }
}

void GruCell(int64_t rows, int64_t hidden, const float* x_gates, const float* h_gates,
             const float* h, float* new_h, float* activated) {
  for (int64_t b = 0; b < rows; ++b) {
    for (int64_t j = 0; j < hidden; ++j) {
      float gate[3];
      const float* from_h = h_gates + b * 3 * hidden + j;
      for (int g = 0; g < 3; ++g) gate[g] = x_gates[(b * 3 + g) * hidden + j];
      const int64_t at = b * hidden + j;
      Element::Gru(gate, gate + 1, gate + 2, from_h[0], from_h[hidden], from_h[2 * hidden], h[at],
                   new_h + at);
      for (int g = 0; g < 3; ++g) activated[(b * 4 + g) * hidden + j] = gate[g];
      activated[(b * 4 + 3) * hidden + j] = from_h[2 * hidden];
    }
  }
}

void GruCellGradient(int64_t rows, int64_t hidden, const float* activated, const float* h,
                     const float* d_new_h, float* d_x_gates, float* d_h_gates, float* d_h) {
  for (int64_t b = 0; b < rows; ++b) {
    for (int64_t j = 0; j < hidden; ++j) {
      float gate[4], d_h_n;
      for (int g = 0; g < 4; ++g) gate[g] = activated[(b * 4 + g) * hidden + j];
      const int64_t at = b * hidden + j;
      Element::GruGradient(gate, gate + 1, gate + 2, gate[3], h[at], d_new_h[at], &d_h_n, d_h + at);
      for (int g = 0; g < 3; ++g) {
        d_x_gates[(b * 3 + g) * hidden + j] = gate[g];
        d_h_gates[(b * 3 + g) * hidden + j] = g < 2 ? gate[g] : d_h_n;
      }
    }
  }
}

void Adam(int64_t count, const AdamStep& step, const float* gradient, float* parameter,
          float* first_moment, float* second_moment) {
  const kernels::FlushDenormals flush;
  const kernels::AdamFactors factors = kernels::FactorsOf(step);
  for (int64_t i = 0; i < count; ++i) {
    Optimise::Adam(factors, gradient[i], parameter + i, first_moment + i, second_moment + i);
  }
}

void RmsProp(int64_t count, const RmsPropStep& step, const float* gradient, float* parameter,
             float* square_average, float* momentum_buffer) {
  const kernels::FlushDenormals flush;
  const kernels::RmsPropFactors factors = kernels::FactorsOf(step);
  for (int64_t i = 0; i < count; ++i) {
    if (step.momentum != 0) {
      Optimise::RmsProp<true>(factors, gradient[i], parameter + i, square_average + i,
                              momentum_buffer + i);
    } else {
      Optimise::RmsProp<false>(factors, gradient[i], parameter + i, square_average + i, nullptr);
    }
  }
}

void Sgd(int64_t count, const SgdStep& step, const float* gradient, float* parameter,
         float* momentum_buffer) {
  const kernels::FlushDenormals flush;
  const kernels::SgdFactors factors = kernels::FactorsOf(step);
  for (int64_t i = 0; i < count; ++i) {
    if (step.momentum != 0) {
      Optimise::Sgd<true>(factors, gradient[i], parameter + i, momentum_buffer + i);
    } else {
      Optimise::Sgd<false>(factors, gradient[i], parameter + i, nullptr);
    }
  }
}

void Lerp(int64_t count, float tau, const float* source, float* target) {
  for (int64_t i = 0; i < count; ++i) {
    target[i] = std::fma(tau, source[i] - target[i], target[i]);
  }
}

int64_t FirstNonFinite(int64_t count, const float* x) {
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(x[i])) return i;
  }
  return -1;
}

}  // namespace weft::reference
