// Rows as records: how the leaves of one row lie behind each other in memory. A table keeps
// records, so a random row costs one place in memory however many leaves it has; messages keep one
// tensor per leaf. Leaves keep their dtype (u8 stays u8).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor/tensor_map.h"

namespace weft {

// A named part of a row.
struct LeafSpec {
  std::string name;
  Shape shape;  // of one row
  DType dtype = DType::kFloat32;
};

// The same leaves called "next_" + name.
std::vector<LeafSpec> NextLeaves(std::span<const LeafSpec> leaves);
// "frame" and "next_frame" i64: how a row names its observations when they are stored once
// (frame_store.h).
std::vector<LeafSpec> FrameNumberLeaves();

class RowLayout {
 public:
  struct Leaf {
    TensorName name;
    Shape shape;
    DType dtype;
    size_t offset, bytes;  // within the record
  };

  RowLayout() = default;
  // Throws when two leaves share a name. Records are packed without gaps.
  explicit RowLayout(std::span<const LeafSpec> leaves);

  const std::vector<Leaf>& leaves() const { return leaves_; }
  size_t bytes() const { return bytes_; }  // of a record

  // columns[i] points to row 0 of leaf i in `rows`, whose leaves are [.., shape of the leaf];
  // returns the number of rows, which all leaves must share. Throws kInvalidArgument naming a leaf
  // that is missing or does not fit. Other leaves of `rows` are ignored. leading: the number of
  // leading dimensions that count rows (2 for [T, N, ..]).
  int64_t Bind(const TensorMap& rows, int leading, std::vector<const std::byte*>& columns) const;

  // Makes `out` hold [rows, ..] for each leaf. A tensor of the right kind that nobody else holds is
  // kept, so a map that is handed round allocates once. The elements are not initialised.
  void Allocate(int64_t rows, TensorMap& out, std::vector<std::byte*>& columns) const;

  // Between row `row` of the columns and a record.
  void Pack(std::span<const std::byte* const> columns, int64_t row, std::byte* record) const;
  void Unpack(const std::byte* record, std::span<std::byte* const> columns, int64_t row) const;

 private:
  std::vector<Leaf> leaves_;
  size_t bytes_ = 0;
};

// For tensors of a state that is saved and loaded: the leaf called name with exactly this shape and
// dtype, else Error(kCorrupt).
const Tensor& SavedTensor(const TensorMap& state, std::string_view name, const Shape& shape,
                          DType dtype);

}  // namespace weft
