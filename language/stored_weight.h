// One weight of a model under its canonical name (weight_layout.h), read from where it lies. A
// StoredWeight is a view: it is valid as long as the file or the memory that it was made from.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "language/weight_layout.h"
#include "language/weight_type.h"

namespace weft {

class StoredWeight {
 public:
  // out: f32 [end - begin, columns].
  using ReadFunction = std::function<void(int64_t begin, int64_t end, float* out)>;

  // A part of a stored tensor: `bytes` are the tensor's, of this type and shape. `file` stands for
  // the file in messages.
  StoredWeight(const StoredTensor& tensor, const StoredPart& part, WeightType type,
               const uint8_t* bytes, std::string file);
  // f32, row-major in memory, or whatever `read` gives. `type`: what it is to be written as when
  // nothing else is said.
  StoredWeight(WeightSpec spec, const float* values);
  StoredWeight(WeightSpec spec, ReadFunction read, WeightType type = WeightType::kF32);

  const std::string& name() const { return spec_.name; }
  const std::vector<int64_t>& shape() const { return spec_.shape; }  // [out, in] or [n], as torch
  WeightType type() const { return type_; }
  // [n] counts as n rows of one column where it is read by rows.
  int64_t rows() const { return spec_.shape[0]; }
  int64_t columns() const { return spec_.shape.size() > 1 ? spec_.shape[1] : 1; }
  int64_t elements() const { return rows() * columns(); }

  // Rows [begin, end) as f32, [end - begin, columns]. Error(kCorrupt) naming the tensor when a
  // value is not finite. Thread-safe.
  void ReadRows(int64_t begin, int64_t end, float* out) const;
  std::vector<float> Read() const;

  // The mapped bytes of a row, RowBytes(type(), columns()) of them, unaligned; null when rows do
  // not lie together in the file as they are (transposed matrices, norms stored with an offset,
  // weights that are not mapped). True for all rows or for none.
  const uint8_t* RowBytes(int64_t row) const;

 private:
  void ReadTransposed(int64_t begin, int64_t end, float* out) const;

  WeightSpec spec_;
  WeightType type_ = WeightType::kF32;
  std::string stored_;  // "FILE: tensor NAME", for messages
  const uint8_t* bytes_ = nullptr;
  RowMap map_;
  int64_t stored_columns_ = 0;  // of a transposed tensor: its rows are our columns
  bool transposed_ = false;
  float offset_ = 0;
  ReadFunction read_;
};

}  // namespace weft
