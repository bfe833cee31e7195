// The packed layout of weights: to and from row-major, and the transposed packing that a weight keeps beside itself.
#include <algorithm>

#include "tensor/storage.h"
#include "tensor/tensor.h"

namespace weft {
namespace {

// Where element (k, n) of a matrix [rows, columns] lies in panels.
int64_t PanelIndex(int64_t rows, int64_t columns, int64_t k, int64_t n) {
  const int64_t panel = n / 64;
  const int64_t rounded = (columns + 15) / 16 * 16;
  const int64_t width = std::min<int64_t>(64, rounded - panel * 64);
  return panel * 64 * rows + k * width + n % 64;
}

}  // namespace

Tensor Tensor::ToLayout(Layout layout) const {
  if (layout == layout_) return *this;
  WEFT_CHECK(shape_.rank() == 2 && dtype_ == DType::kFloat32)
      << "panels hold f32 matrices, not " << dtype_ << " " << shape_;
  const int64_t rows = shape_.dim(0), columns = shape_.dim(1);
  Tensor result = layout == Layout::kPanels ? Zeros(shape_, dtype_, layout) : Empty(shape_, dtype_, layout);
  const auto from = data<float>();
  const auto to = result.data<float>();
  for (int64_t k = 0; k < rows; ++k) {
    for (int64_t n = 0; n < columns; ++n) {
      const auto flat = static_cast<size_t>(k * columns + n);
      const auto panel = static_cast<size_t>(PanelIndex(rows, columns, k, n));
      if (layout == Layout::kPanels) {
        to[panel] = from[flat];
      } else {
        to[flat] = from[panel];
      }
    }
  }
  return result;
}

const Tensor& Tensor::TransposedPanels() const {
  WEFT_CHECK(storage_ != nullptr && layout_ == Layout::kPanels) << "TransposedPanels of " << shape_ << ", no weight";
  uint64_t version = storage_->version.load(std::memory_order_relaxed);
  if (storage_->parent != nullptr) version += storage_->parent->version.load(std::memory_order_relaxed);
  if (storage_->transposed == nullptr) {
    storage_->transposed = new Tensor(Zeros({shape_.dim(1), shape_.dim(0)}, dtype_, Layout::kPanels));
  } else if (storage_->transposed_version == version) {
    return *storage_->transposed;
  }
  const int64_t rows = shape_.dim(0), columns = shape_.dim(1);
  const auto from = data<float>();
  const auto to = storage_->transposed->data<float>();
  for (int64_t k = 0; k < rows; ++k) {
    for (int64_t n = 0; n < columns; ++n) {
      to[static_cast<size_t>(PanelIndex(columns, rows, n, k))] =
          from[static_cast<size_t>(PanelIndex(rows, columns, k, n))];
    }
  }
  storage_->transposed_version = version;
  return *storage_->transposed;
}

}  // namespace weft
