// The packed layout of weights: to and from row-major, and the transposed packing that a weight
// keeps beside itself.
#include "tensor/context.h"
#include "tensor/kernels.h"
#include "tensor/storage.h"
#include "tensor/tensor.h"

namespace weft {

Tensor Tensor::ToLayout(Layout layout) const {
  if (layout == layout_) return *this;
  WEFT_CHECK(shape_.rank() == 2 && dtype_ == DType::kFloat32)
      << "panels hold f32 matrices, not " << dtype_ << " " << shape_;
  Tensor result = Empty(shape_, dtype_, layout);
  const auto convert = layout == Layout::kPanels ? kernels::PackPanels : kernels::UnpackPanels;
  convert(shape_.dim(0), shape_.dim(1), data<float>().data(), result.data<float>().data());
  return result;
}

const Tensor& Tensor::TransposedPanels() const {
  WEFT_CHECK(storage_ != nullptr && layout_ == Layout::kPanels)
      << "TransposedPanels of " << shape_ << ", no weight";
  uint64_t version = storage_->version.load(std::memory_order_relaxed);
  if (storage_->parent != nullptr)
    version += storage_->parent->version.load(std::memory_order_relaxed);
  if (storage_->transposed == nullptr) {
    storage_->transposed =
        new Tensor(Empty({shape_.dim(1), shape_.dim(0)}, dtype_, Layout::kPanels));
  } else if (storage_->transposed_version == version) {
    return *storage_->transposed;
  }
  kernels::TransposePanels(CurrentContext(), shape_.dim(0), shape_.dim(1), data<float>().data(),
                           storage_->transposed->data<float>().data());
  storage_->transposed_version = version;
  return *storage_->transposed;
}

}  // namespace weft
