// What the ops share: checks whose failure is out of the way of the hot path, and recording.
#pragma once

#include <array>
#include <initializer_list>

#include "tensor/context.h"
#include "tensor/tape_record.h"
#include "tensor/tensor.h"

namespace weft::ops {

// Throws Error(kInvalidArgument): "Dense: x [64, 17] f32, w [16, 64] F32 in panels: the columns of
// x are not ...".
[[noreturn]] void Fail(const char* op, const char* reason,
                       std::initializer_list<const Tensor*> inputs);

inline bool IsFloat(const Tensor& tensor) {
  return tensor.defined() && tensor.dtype() == DType::kFloat32 &&
         tensor.layout() == Layout::kRowMajor;
}
inline void CheckFloat(const char* op, const Tensor& x) {
  if (!IsFloat(x)) [[unlikely]]
    Fail(op, "wants a row-major F32 tensor", {&x});
}
// Also that there is a last dimension.
inline void CheckRows(const char* op, const Tensor& x) {
  if (!IsFloat(x) || x.shape().rank() == 0) [[unlikely]]
    Fail(op, "wants a row-major F32 tensor of rank >= 1", {&x});
}
// The elements of a tensor already known to be F32: data<float>() without its count and check.
inline const float* Floats(const Tensor& x) {
  return reinterpret_cast<const float*>(x.raw());
}
inline float* Floats(Tensor& x) {
  return reinterpret_cast<float*>(x.raw());
}
inline int64_t Columns(const Tensor& x) {
  return x.shape().dims().back();
}
// Of x seen as a matrix; an empty last dimension counts no rows.
int64_t Rows(const Tensor& x);
// [.., A] -> [..].
Shape DropLast(const Shape& shape);

// Appends to the tape that records on this thread when it tracks an input; undefined inputs are
// allowed.
inline void Record(const Node& node, std::array<float, 2> numbers,
                   std::initializer_list<const Tensor*> inputs,
                   std::initializer_list<Tensor*> outputs,
                   std::initializer_list<const Tensor*> saved) {
  TapeRecord* record = TapeRecord::Current();
  if (record == nullptr) return;
  bool tracked = false;
  for (const Tensor* input : inputs) tracked |= record->Tracks(*input);
  if (!tracked) return;
  record->Begin(node, numbers);
  for (const Tensor* input : inputs) record->AddInput(*input);
  for (Tensor* output : outputs) record->AddOutput(*output);
  for (const Tensor* tensor : saved) record->AddSaved(*tensor);
}

}  // namespace weft::ops
