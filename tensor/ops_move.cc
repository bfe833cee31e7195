// Ops that move elements about or convert them: concatenation, slices, gathers, reshapes, casts.
#include <algorithm>
#include <cstring>
#include <limits>

#include "tensor/ops.h"
#include "tensor/ops_check.h"

namespace weft {
namespace {

using ops::Columns;
using ops::Fail;
using ops::Record;
using ops::Rows;

// y [rows, columns] holds the parts side by side, each [rows, elements / rows].
void RecordConcat(std::span<const Tensor> parts, int64_t rows, int64_t columns, Tensor& y) {
  TapeRecord* record = TapeRecord::Current();
  if (record == nullptr) return;
  if (std::none_of(parts.begin(), parts.end(),
                   [&](const Tensor& part) { return record->Tracks(part); }))
    return;
  record->Begin({.op = Op::kConcat, .dims = {rows, columns}}, {});
  for (const Tensor& part : parts) record->AddInput(part);
  for (const Tensor& part : parts)
    record->AddExtra(static_cast<int32_t>(rows == 0 ? 0 : part.elements() / rows));
  record->AddOutput(y);
}

template <class To, class From>
To Converted(From value) {
  if constexpr (std::is_same_v<From, BFloat16>) {
    return Converted<To>(ToFloat(value));
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return ToBFloat16(static_cast<float>(value));
  } else if constexpr (std::is_integral_v<To> && sizeof(To) < sizeof(int64_t) &&
                       std::is_integral_v<From>) {
    WEFT_CHECK(value >= std::numeric_limits<To>::min() && value <= std::numeric_limits<To>::max())
        << "Cast: " << value << " does not fit in " << DTypeOf<To>::value;
    return static_cast<To>(value);
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    WEFT_CHECK(value >= static_cast<From>(std::numeric_limits<To>::min()) &&
               value < static_cast<From>(std::numeric_limits<To>::max()) + From{1})
        << "Cast: " << value << " does not fit in " << DTypeOf<To>::value;
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <class From, class To>
void Convert(const Tensor& x, Tensor& y) {
  const From* from = x.data<From>().data();
  std::transform(from, from + x.elements(), y.data<To>().data(), Converted<To, From>);
}

template <class From>
void ConvertTo(const Tensor& x, Tensor& y) {
  switch (y.dtype()) {
    case DType::kFloat32:
      return Convert<From, float>(x, y);
    case DType::kBFloat16:
      return Convert<From, BFloat16>(x, y);
    case DType::kFloat64:
      return Convert<From, double>(x, y);
    case DType::kInt32:
      return Convert<From, int32_t>(x, y);
    case DType::kInt64:
      return Convert<From, int64_t>(x, y);
    case DType::kUInt8:
      return Convert<From, uint8_t>(x, y);
  }
}

}  // namespace

Tensor ConcatLast(std::span<const Tensor> parts) {
  WEFT_CHECK(!parts.empty()) << "ConcatLast of nothing";
  int64_t columns = 0;
  for (const Tensor& part : parts) {
    ops::CheckRows("ConcatLast", part);
    if (ops::DropLast(part.shape()) != ops::DropLast(parts[0].shape())) {
      Fail("ConcatLast", "the leading dimensions differ", {&parts[0], &part});
    }
    columns += Columns(part);
  }
  Tensor y = Tensor::Empty(parts[0].shape().WithDim(-1, columns));
  const int64_t rows = Rows(y);
  float* to = ops::Floats(y);
  for (const Tensor& part : parts) {
    const int64_t width = Columns(part);
    const float* from = ops::Floats(part);
    for (int64_t row = 0; row < rows; ++row)
      std::copy_n(from + row * width, width, to + row * columns);
    to += width;
  }
  RecordConcat(parts, rows, columns, y);
  return y;
}

Tensor StackRows(std::span<const Tensor> parts) {
  WEFT_CHECK(!parts.empty()) << "StackRows of nothing";
  for (const Tensor& part : parts) {
    ops::CheckFloat("StackRows", part);
    if (part.shape() != parts[0].shape())
      Fail("StackRows", "the shapes differ", {&parts[0], &part});
  }
  Tensor y = Tensor::Empty(parts[0].shape().Prepend(static_cast<int64_t>(parts.size())));
  float* to = ops::Floats(y);
  for (const Tensor& part : parts) to = std::copy_n(ops::Floats(part), part.elements(), to);
  RecordConcat(parts, 1, y.elements(), y);
  return y;
}

Tensor SliceLast(const Tensor& x, int64_t begin, int64_t end) {
  ops::CheckRows("SliceLast", x);
  const int64_t columns = Columns(x), rows = Rows(x), width = end - begin;
  WEFT_CHECK(0 <= begin && begin <= end && end <= columns)
      << "SliceLast: columns [" << begin << ", " << end << ") of " << x.shape();
  Tensor y = Tensor::Empty(x.shape().WithDim(-1, width));
  const float* from = ops::Floats(x) + begin;
  float* to = ops::Floats(y);
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(from + row * columns, width, to + row * width);
  Record({.op = Op::kSlice, .dims = {rows, columns, begin, end}}, {}, {&x}, {&y}, {});
  return y;
}

Tensor SliceRows(const Tensor& x, int64_t begin, int64_t end) {
  Tensor y = x.Slice(begin, end);
  const int64_t rows = x.shape().dims()[0];
  const int64_t row = rows == 0 ? 0 : x.elements() / rows;
  Record({.op = Op::kSlice, .dims = {1, x.elements(), begin * row, end * row}}, {}, {&x}, {&y}, {});
  return y;
}

Tensor Reshape(const Tensor& x, const Shape& shape) {
  Tensor y = x.Reshape(shape);
  Record({.op = Op::kView, .dims = {x.elements()}}, {}, {&x}, {&y}, {});
  return y;
}

Tensor GatherRows(const Tensor& x, const Tensor& index) {
  if (!x.defined() || x.shape().rank() == 0 || x.layout() != Layout::kRowMajor ||
      !index.defined() || index.dtype() != DType::kInt64 || index.shape().rank() != 1) {
    Fail("GatherRows", "wants row-major x [R, ..] and an I64 index [B]", {&x, &index});
  }
  const int64_t rows = x.dim(0);
  Tensor y = Tensor::Empty(x.shape().WithDim(0, index.elements()), x.dtype());
  const auto indices = index.data<int64_t>();
  const size_t row_bytes = rows == 0 ? 0 : x.bytes() / static_cast<size_t>(rows);
  std::byte* to = y.raw();
  for (const int64_t row : indices) {
    if (row < 0 || row >= rows) [[unlikely]] {
      WEFT_CHECK(false) << "GatherRows: row " << row << " of x " << x.shape();
    }
    std::memcpy(to, x.raw() + static_cast<size_t>(row) * row_bytes, row_bytes);
    to += row_bytes;
  }
  return y;
}

Tensor Cast(const Tensor& x, DType dtype) {
  if (!x.defined() || x.layout() != Layout::kRowMajor)
    Fail("Cast", "wants a row-major tensor", {&x});
  if (x.dtype() == dtype) return x;
  Tensor y = Tensor::Empty(x.shape(), dtype);
  switch (x.dtype()) {
    case DType::kFloat32:
      ConvertTo<float>(x, y);
      break;
    case DType::kBFloat16:
      ConvertTo<BFloat16>(x, y);
      break;
    case DType::kFloat64:
      ConvertTo<double>(x, y);
      break;
    case DType::kInt32:
      ConvertTo<int32_t>(x, y);
      break;
    case DType::kInt64:
      ConvertTo<int64_t>(x, y);
      break;
    case DType::kUInt8:
      ConvertTo<uint8_t>(x, y);
      break;
  }
  if (dtype == DType::kFloat32 || dtype == DType::kBFloat16) {
    Record({.op = Op::kView, .dims = {x.elements()}}, {}, {&x}, {&y}, {});
  }
  return y;
}

}  // namespace weft
