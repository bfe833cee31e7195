#include "tensor/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "tensor/storage.h"

namespace weft {
namespace {

constexpr int64_t kFillInteger = -4242;  // what uninitialised integers hold in debug builds

int64_t RoundedTo16(int64_t n) {
  return (n + 15) / 16 * 16;
}

int64_t Stored(const Shape& shape, Layout layout) {
  return layout == Layout::kPanels ? PanelElements(shape.dim(0), shape.dim(1)) : shape.elements();
}

// Calls function with a typed pointer to the elements.
template <class Function>
void WithType(DType dtype, std::byte* data, Function function) {
  switch (dtype) {
    case DType::kFloat32:
      return function(reinterpret_cast<float*>(data));
    case DType::kBFloat16:
      return function(reinterpret_cast<BFloat16*>(data));
    case DType::kFloat64:
      return function(reinterpret_cast<double*>(data));
    case DType::kInt32:
      return function(reinterpret_cast<int32_t*>(data));
    case DType::kInt64:
      return function(reinterpret_cast<int64_t*>(data));
    case DType::kUInt8:
      return function(reinterpret_cast<uint8_t*>(data));
  }
}

// The value in type T; throws when T cannot hold it.
template <class T>
T Converted(double value) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return ToBFloat16(static_cast<float>(value));
  } else if constexpr (std::is_integral_v<T>) {
    WEFT_CHECK(value >= static_cast<double>(std::numeric_limits<T>::min()) &&
               value <= static_cast<double>(std::numeric_limits<T>::max()))
        << value << " does not fit in " << DTypeOf<T>::value;
    return static_cast<T>(value);
  } else {
    return static_cast<T>(value);
  }
}

void FillElements(DType dtype, std::byte* data, int64_t count, double value) {
  WithType(dtype, data, [&](auto* elements) {
    std::fill_n(elements, count, Converted<std::remove_pointer_t<decltype(elements)>>(value));
  });
}

[[maybe_unused]] void FillUninitialised(DType dtype, std::byte* data, int64_t count) {
  const bool floating =
      dtype == DType::kFloat32 || dtype == DType::kBFloat16 || dtype == DType::kFloat64;
  if (floating) {
    FillElements(dtype, data, count, std::numeric_limits<double>::quiet_NaN());
  } else if (dtype == DType::kUInt8) {
    std::memset(data, static_cast<uint8_t>(kFillInteger), static_cast<size_t>(count));
  } else {
    FillElements(dtype, data, count, static_cast<double>(kFillInteger));
  }
}

}  // namespace

size_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 4;
    case DType::kBFloat16:
      return 2;
    case DType::kFloat64:
      return 8;
    case DType::kInt32:
      return 4;
    case DType::kInt64:
      return 8;
    case DType::kUInt8:
      return 1;
  }
  return 0;
}

const char* Name(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "F32";
    case DType::kBFloat16:
      return "BF16";
    case DType::kFloat64:
      return "F64";
    case DType::kInt32:
      return "I32";
    case DType::kInt64:
      return "I64";
    case DType::kUInt8:
      return "U8";
  }
  return "?";
}

std::ostream& operator<<(std::ostream& out, DType dtype) {
  return out << Name(dtype);
}

Shape::Shape(std::span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  WEFT_CHECK_LE(dims.size(), static_cast<size_t>(kMaxRank)) << "dimensions of a shape";
  int64_t product = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    WEFT_CHECK_GE(dims[i], 0) << "dimension " << i << " of a shape";
    WEFT_CHECK(!__builtin_mul_overflow(product, std::max<int64_t>(dims[i], 1), &product))
        << "a shape with more than 2^63 elements";
    dims_[i] = dims[i];
  }
}

void Shape::FailIndex(int d) const {
  std::ostringstream text;
  text << "dimension " << d << " of a tensor of shape " << *this;
  throw Error(ErrorCode::kInvalidArgument, text.str());
}

Shape Shape::WithDim(int d, int64_t size) const {
  Shape result = *this;
  result.dims_[Index(d)] = size;
  if (size < 0) [[unlikely]] {
    WEFT_CHECK_GE(size, 0) << "dimension " << d << " of a shape";
  }
  return result;
}

Shape Shape::Prepend(int64_t size) const {
  WEFT_CHECK_LT(rank_, kMaxRank) << "a dimension in front of " << *this;
  Shape result;
  result.rank_ = rank_ + 1;
  result.dims_[0] = size;
  std::copy_n(dims_.begin(), rank_, result.dims_.begin() + 1);
  return result;
}

Shape Shape::DropFirst() const {
  WEFT_CHECK_GT(rank_, 0) << "the first dimension of a scalar";
  return Shape(dims().subspan(1));
}

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ &&
         std::equal(dims_.begin(), dims_.begin() + rank_, other.dims_.begin());
}

std::string Shape::ToString() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(dims_[static_cast<size_t>(i)]);
  }
  return text + "]";
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.ToString();
}

int64_t PanelElements(int64_t k, int64_t n) {
  return k * RoundedTo16(n);
}

Tensor::Tensor(const Tensor& other)
    : storage_(other.storage_),
      data_(other.data_),
      shape_(other.shape_),
      dtype_(other.dtype_),
      device_(other.device_),
      layout_(other.layout_),
      node_(other.node_),
      tape_(other.tape_) {
  if (storage_ != nullptr) storage_->references.fetch_add(1, std::memory_order_relaxed);
}

Tensor& Tensor::operator=(const Tensor& other) {
  if (this != &other) *this = Tensor(other);
  return *this;
}

void Tensor::DropReference(Storage* storage) {
  // The last holder needs no atomic subtraction: nobody else can add a reference any more.
  if (storage->references.load(std::memory_order_acquire) != 1 &&
      storage->references.fetch_sub(1, std::memory_order_acq_rel) != 1) {
    return;
  }
  if (storage->transposed != nullptr) [[unlikely]] {
    delete storage->transposed;
    storage->transposed = nullptr;
  }
  if (storage->parent != nullptr) [[unlikely]] {
    DropReference(storage->parent);
    storage->parent = nullptr;
  }
  FreeStorage(storage);
}

Tensor Tensor::Empty(const Shape& shape, DType dtype, Layout layout) {
  WEFT_CHECK(layout == Layout::kRowMajor || (shape.rank() == 2 && dtype == DType::kFloat32))
      << "panels hold f32 matrices, not " << dtype << " " << shape;
  Tensor tensor;
  tensor.storage_ = AllocateStorage(static_cast<size_t>(Stored(shape, layout)) * SizeOf(dtype));
  tensor.data_ = tensor.storage_->payload();
  tensor.shape_ = shape;
  tensor.dtype_ = dtype;
  tensor.layout_ = layout;
#ifndef NDEBUG
  FillUninitialised(dtype, tensor.data_, tensor.stored_elements());
#endif
  return tensor;
}

Tensor Tensor::Zeros(const Shape& shape, DType dtype, Layout layout) {
  Tensor tensor = Empty(shape, dtype, layout);
  std::memset(tensor.data_, 0, tensor.bytes());
  return tensor;
}

Tensor Tensor::Full(const Shape& shape, double value, DType dtype) {
  Tensor tensor = Empty(shape, dtype);
  FillElements(dtype, tensor.data_, tensor.elements(), value);
  return tensor;
}

Tensor Tensor::FromBytes(const Shape& shape, DType dtype, const void* values, size_t count) {
  WEFT_CHECK_EQ(static_cast<int64_t>(count), shape.elements())
      << "values for a tensor of shape " << shape;
  Tensor tensor = Empty(shape, dtype);
  if (count > 0) std::memcpy(tensor.data_, values, tensor.bytes());
  return tensor;
}

Tensor Tensor::Scalar(double value, DType dtype) {
  return Full(Shape{}, value, dtype);
}

Tensor Tensor::View(void* data, const Shape& shape, DType dtype) {
  WEFT_CHECK(data != nullptr) << "a view of shape " << shape << " on no memory";
  Tensor tensor;
  tensor.data_ = static_cast<std::byte*>(data);
  tensor.shape_ = shape;
  tensor.dtype_ = dtype;
  return tensor;
}

Tensor Tensor::Part(int64_t offset, const Shape& shape, Layout layout) const {
  WEFT_CHECK(storage_ != nullptr && storage_->parent == nullptr && layout_ == Layout::kRowMajor)
      << "a part of " << shape_ << ": only row-major tensors that own their memory have parts";
  WEFT_CHECK(layout == Layout::kRowMajor || (shape.rank() == 2 && dtype_ == DType::kFloat32))
      << "panels hold f32 matrices, not " << dtype_ << " " << shape;
  WEFT_CHECK(offset >= 0 && Stored(shape, layout) <= elements() - offset)
      << "part " << shape << " at " << offset << " of " << elements() << " elements";
  Storage* own = AllocateStorage(0);
  Tensor part = *this;
  own->parent = storage_;  // takes over the reference of the copy
  part.storage_ = own;
  part.data_ = data_ + static_cast<size_t>(offset) * SizeOf(dtype_);
  part.shape_ = shape;
  part.layout_ = layout;
  part.SetNode(0, -1);
  return part;
}

int64_t Tensor::stored_elements() const {
  return Stored(shape_, layout_);
}

size_t Tensor::bytes() const {
  return static_cast<size_t>(stored_elements()) * SizeOf(dtype_);
}

void Tensor::FailType(DType dtype) const {
  throw Error(ErrorCode::kInvalidArgument, std::string("the elements of a tensor of shape ") +
                                               shape_.ToString() + " are " + Name(dtype_) +
                                               ", not " + Name(dtype));
}

double Tensor::Item() const {
  WEFT_CHECK(defined() && elements() == 1) << "Item of a tensor of shape " << shape_;
  double value = 0;
  WithType(dtype_, data_, [&](const auto* element) {
    if constexpr (std::is_same_v<decltype(element), const BFloat16*>) {
      value = ToFloat(*element);
    } else {
      value = static_cast<double>(*element);
    }
  });
  return value;
}

Tensor Tensor::Slice(int64_t begin, int64_t end) const {
  WEFT_CHECK(shape_.rank() > 0 && layout_ == Layout::kRowMajor) << "a slice of " << shape_;
  const int64_t rows = shape_.dim(0);
  WEFT_CHECK(0 <= begin && begin <= end && end <= rows)
      << "rows [" << begin << ", " << end << ") of a tensor of shape " << shape_;
  Tensor view = *this;
  view.shape_ = shape_.WithDim(0, end - begin);
  if (rows > 0) view.data_ += static_cast<size_t>(begin) * (bytes() / static_cast<size_t>(rows));
  view.SetNode(0, -1);
  return view;
}

Tensor Tensor::Row(int64_t index) const {
  Tensor view = Slice(index, index + 1);
  view.shape_ = shape_.DropFirst();
  return view;
}

Tensor Tensor::Reshape(const Shape& shape) const {
  WEFT_CHECK(layout_ == Layout::kRowMajor && shape.elements() == elements())
      << "Reshape of " << shape_ << (layout_ == Layout::kPanels ? " in panels" : "") << " to "
      << shape;
  Tensor view = *this;
  view.shape_ = shape;
  view.SetNode(0, -1);
  return view;
}

Tensor Tensor::Detach() const {
  Tensor view = *this;
  view.SetNode(0, -1);
  return view;
}

Tensor Tensor::Clone() const {
  Tensor copy = Empty(shape_, dtype_, layout_);
  if (bytes() > 0) std::memcpy(copy.data_, data_, bytes());
  return copy;
}

void Tensor::CopyFrom(const Tensor& other) {
  WEFT_CHECK(defined() && other.defined()) << "CopyFrom between undefined tensors";
  WEFT_CHECK_EQ(shape_, other.shape_) << "CopyFrom";
  WEFT_CHECK_EQ(dtype_, other.dtype_) << "CopyFrom";
  WEFT_CHECK(layout_ == other.layout_) << "CopyFrom between layouts, shape " << shape_;
  if (bytes() > 0) std::memmove(data_, other.data_, bytes());
  MarkWritten();
}

void Tensor::Fill(double value) {
  const int64_t columns = layout_ == Layout::kPanels ? shape_.dim(1) : 0;
  if (value == 0 || columns == RoundedTo16(columns)) {
    FillElements(dtype_, data_, stored_elements(), value);
  } else {
    // Padding stays zero.
    CopyFrom(Full(shape_, value).ToLayout(Layout::kPanels));
  }
  MarkWritten();
}

bool Tensor::unique() const {
  return storage_ != nullptr && storage_->parent == nullptr &&
         storage_->references.load(std::memory_order_acquire) == 1;
}

void Tensor::MarkWritten() {
  if (storage_ == nullptr) return;
  storage_->version.fetch_add(1, std::memory_order_relaxed);
}

Tensor JoinMemory(std::span<Tensor* const> tensors) {
  int64_t total = 0;
  for (const Tensor* tensor : tensors) {
    WEFT_CHECK(tensor->defined() && tensor->dtype() == DType::kFloat32)
        << "JoinMemory wants f32 tensors";
    total += RoundedTo16(tensor->stored_elements());
  }
  Tensor block = Tensor::Zeros({total});
  int64_t offset = 0;
  for (Tensor* tensor : tensors) {
    Tensor part = block.Part(offset, tensor->shape(), tensor->layout());
    part.CopyFrom(*tensor);
    part.SetNode(tensor->tape(), tensor->node());
    offset += RoundedTo16(tensor->stored_elements());
    *tensor = std::move(part);
  }
  return block;
}

}  // namespace weft
