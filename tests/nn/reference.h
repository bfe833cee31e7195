// Reads the reference data that tests compare with; a test skips where the environment variable
// WEFT_REFERENCE is unset.
#pragma once

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

#include "nn/safetensors.h"

namespace weft {

inline std::string ReferencePath(const std::string& name) {
  const char* root = std::getenv("WEFT_REFERENCE");
  return root ? std::string(root) + "/" + name : std::string();
}

#define WEFT_REQUIRE_REFERENCE()                                                  \
  if (std::getenv("WEFT_REFERENCE") == nullptr) {                                 \
    GTEST_SKIP() << "WEFT_REFERENCE is unset: no reference data to compare with"; \
  }                                                                               \
  static_assert(true)

inline double Element(const Tensor& tensor, size_t index) {
  switch (tensor.dtype()) {
    case DType::kFloat64:
      return tensor.data<double>()[index];
    case DType::kFloat32:
      return static_cast<double>(tensor.data<float>()[index]);
    case DType::kInt64:
      return static_cast<double>(tensor.data<int64_t>()[index]);
    case DType::kUInt8:
      return tensor.data<uint8_t>()[index];
    default:
      ADD_FAILURE() << "dtype " << tensor.dtype();
      return 0;
  }
}

// |actual - expected| <= relative |expected| + absolute, element by element; shapes may differ in
// form, not in size.
inline void ExpectClose(const Tensor& actual, const Tensor& expected, double relative,
                        double absolute, const std::string& what) {
  ASSERT_EQ(actual.elements(), expected.elements()) << what;
  const Tensor flat =
      actual.layout() == Layout::kPanels ? actual.ToLayout(Layout::kRowMajor) : actual;
  for (size_t i = 0; i < static_cast<size_t>(actual.elements()); ++i) {
    const double a = Element(flat, i), b = Element(expected, i);
    if (a == b) continue;  // infinities too
    ASSERT_LE(std::fabs(a - b), relative * std::fabs(b) + absolute)
        << what << ", element " << i << ": " << a << " instead of " << b;
  }
}

// f32 [columns, rows] of a matrix [rows, columns].
inline Tensor Transposed(const Tensor& matrix) {
  const int64_t rows = matrix.dim(0), columns = matrix.elements() / rows;
  Tensor result = Tensor::Empty({columns, rows});
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      result.data<float>()[static_cast<size_t>(j * rows + i)] =
          static_cast<float>(Element(matrix, static_cast<size_t>(i * columns + j)));
    }
  }
  return result;
}

}  // namespace weft
