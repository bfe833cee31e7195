// Tensors: contiguous row-major handles on shared storage. Slices along dimension 0 and reshapes
// are views; there are no strides. A copy of a Tensor is a copy of the handle. Storage comes from a
// caching allocator, so the tensors of a step that repeats are made without malloc. Handles may be
// copied and dropped on any thread; writing to the elements is the business of whoever owns them.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>
#include <string>

#include "base/check.h"

namespace weft {

enum class DType : uint8_t { kFloat32, kBFloat16, kFloat64, kInt32, kInt64, kUInt8 };
size_t SizeOf(DType dtype);
const char* Name(DType dtype);  // as safetensors spells it: F32, BF16, F64, I32, I64, U8

enum class DeviceType : uint8_t { kCpu, kCuda };
struct Device {
  DeviceType type = DeviceType::kCpu;
  int8_t index = 0;
  bool operator==(const Device&) const = default;
};

// Storage type of bfloat16: the upper half of a float.
struct BFloat16 {
  uint16_t bits = 0;
};
inline float ToFloat(BFloat16 value) {
  return std::bit_cast<float>(uint32_t{value.bits} << 16);
}
// To the nearest, ties to even; NaN stays NaN.
inline BFloat16 ToBFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (value != value) return {static_cast<uint16_t>((bits >> 16) | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::kBFloat16;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kFloat64;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::kUInt8;
};

// Up to kMaxRank dimensions, each >= 0. A scalar has rank 0 and one element.
class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);

  int rank() const { return rank_; }
  // Negative d counts from the end; throws when out of range.
  int64_t dim(int d) const { return dims_[Index(d)]; }
  int64_t operator[](int d) const { return dim(d); }
  int64_t elements() const {
    int64_t product = 1;
    for (int i = 0; i < rank_; ++i) product *= dims_[static_cast<size_t>(i)];
    return product;
  }
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  Shape WithDim(int d, int64_t size) const;
  Shape Prepend(int64_t size) const;
  Shape DropFirst() const;
  bool operator==(const Shape& other) const;
  std::string ToString() const;  // "[64, 17]"

 private:
  size_t Index(int d) const {
    const int index = d < 0 ? d + rank_ : d;
    if (index < 0 || index >= rank_) [[unlikely]]
      FailIndex(d);
    return static_cast<size_t>(index);
  }
  [[noreturn]] void FailIndex(int d) const;

  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};
std::ostream& operator<<(std::ostream& out, const Shape& shape);
std::ostream& operator<<(std::ostream& out, DType dtype);

// How the elements of a matrix lie in memory. Weights [K, N] of dense layers are kept in kPanels,
// the form the matmul reads: panels of 64 columns [N/64][K][64], the last panel as wide as N's
// remainder rounded up to 16, padding zero.
enum class Layout : uint8_t { kRowMajor, kPanels };
// Elements in memory of a matrix [k, n] in panels: k * (n rounded up to 16).
int64_t PanelElements(int64_t k, int64_t n);

struct Storage;  // reference-counted memory, storage.h

class Tensor {
 public:
  Tensor() = default;
  ~Tensor() { Release(); }
  Tensor(const Tensor& other);
  Tensor(Tensor&& other) noexcept { Take(other); }
  Tensor& operator=(const Tensor& other);
  Tensor& operator=(Tensor&& other) noexcept {
    if (this != &other) {
      Release();
      Take(other);
    }
    return *this;
  }

  // Uninitialised; floats are NaN and integers -4242 in debug builds.
  static Tensor Empty(const Shape& shape, DType dtype = DType::kFloat32,
                      Layout layout = Layout::kRowMajor);
  static Tensor Zeros(const Shape& shape, DType dtype = DType::kFloat32,
                      Layout layout = Layout::kRowMajor);
  static Tensor Full(const Shape& shape, double value, DType dtype = DType::kFloat32);
  template <class T>
  static Tensor From(const Shape& shape, std::span<const T> values) {
    return FromBytes(shape, DTypeOf<T>::value, values.data(), values.size());
  }
  template <class T>
  static Tensor From(const Shape& shape, std::initializer_list<T> values) {
    return From<T>(shape, std::span<const T>(values.begin(), values.size()));
  }
  static Tensor Scalar(double value, DType dtype = DType::kFloat32);
  // Borrows memory that must outlive every copy of the handle.
  static Tensor View(void* data, const Shape& shape, DType dtype);
  // A tensor in its own right on the memory of this one (row-major, owned), from element `offset`
  // on: it keeps the memory alive and has its own packing. Many parameters can so share one block
  // and still be updated by one kernel.
  Tensor Part(int64_t offset, const Shape& shape, Layout layout = Layout::kRowMajor) const;

  bool defined() const { return data_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int64_t dim(int d) const { return shape_.dim(d); }
  int64_t elements() const { return shape_.elements(); }  // logical: padding of panels not counted
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  Layout layout() const { return layout_; }
  size_t bytes() const;             // of the memory, padding counted
  int64_t stored_elements() const;  // elements in memory, padding counted

  // All stored elements; throws when T is not the dtype.
  template <class T>
  std::span<T> data() {
    CheckType(DTypeOf<T>::value);
    return {reinterpret_cast<T*>(data_), static_cast<size_t>(stored_elements())};
  }
  template <class T>
  std::span<const T> data() const {
    CheckType(DTypeOf<T>::value);
    return {reinterpret_cast<const T*>(data_), static_cast<size_t>(stored_elements())};
  }
  std::byte* raw() { return data_; }
  const std::byte* raw() const { return data_; }
  double Item() const;  // the only element, converted; throws when there are more

  Tensor Slice(int64_t begin, int64_t end) const;  // rows [begin, end) of dimension 0: a view
  Tensor Row(int64_t index) const;                 // Slice without dimension 0: a view
  Tensor Reshape(const Shape& shape) const;        // same elements: a view; row-major only
  Tensor Detach() const;                           // the same memory, off every tape
  Tensor Clone() const;                            // own memory, same layout, off every tape
  void CopyFrom(const Tensor& other);  // same shape, dtype and layout; marks the storage written
  void Fill(double value);
  Tensor ToLayout(
      Layout layout) const;  // f32 matrices only; a copy, or *this when it is there already

  // True when no other handle shares the storage: its owner may overwrite the elements. False for
  // borrowed memory.
  bool unique() const;
  // Whoever writes elements of a weight in place says so, so that its transposed packing is
  // renewed. Marking a tensor marks its parts too.
  void MarkWritten();
  // The transposed matrix [N, K] in panels, renewed when this one was written since. Owned weights
  // in panels only. Not thread-safe; call it from the thread that owns the weight.
  const Tensor& TransposedPanels() const;

  // The tape's business (tensor/tape.h): the value that this handle stands for, -1 when none, and
  // the recording (or, for a parameter, the tape) in which it does. Such numbers are never used
  // twice in a process.
  int32_t node() const { return node_; }
  uint64_t tape() const { return tape_; }
  void SetNode(uint64_t tape, int32_t node) {
    tape_ = tape;
    node_ = node;
  }

 private:
  static Tensor FromBytes(const Shape& shape, DType dtype, const void* values, size_t count);
  void Release() {
    if (storage_ != nullptr) DropReference(storage_);
  }
  static void DropReference(Storage* storage);
  void Take(Tensor& other) {
    storage_ = other.storage_;
    data_ = other.data_;
    shape_ = other.shape_;
    dtype_ = other.dtype_;
    device_ = other.device_;
    layout_ = other.layout_;
    node_ = other.node_;
    tape_ = other.tape_;
    other.storage_ = nullptr;
    other.data_ = nullptr;
    other.node_ = -1;
  }
  void CheckType(DType dtype) const {
    if (dtype != dtype_) [[unlikely]]
      FailType(dtype);
  }
  [[noreturn]] void FailType(DType dtype) const;

  Storage* storage_ = nullptr;
  std::byte* data_ = nullptr;
  Shape shape_;
  DType dtype_ = DType::kFloat32;
  Device device_;
  Layout layout_ = Layout::kRowMajor;
  int32_t node_ = -1;
  uint64_t tape_ = 0;
};

// Moves f32 tensors that own their memory into one block [n], each at the next multiple of 16
// elements, zero between them; the handles become parts of it and stay on their tape. Other handles
// to the old memory keep it.
Tensor JoinMemory(std::span<Tensor* const> tensors);

// Bytes that the allocator holds, in use and cached, over all threads; and the number of times it
// asked the system since the process began (tests count that a training step asks for none).
struct AllocatorStatistics {
  int64_t bytes_in_use = 0, bytes_cached = 0, system_calls = 0;
};
AllocatorStatistics TensorAllocator();

}  // namespace weft
