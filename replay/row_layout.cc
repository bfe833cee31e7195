#include "replay/row_layout.h"

#include <cstring>

#include "base/check.h"

namespace weft {
namespace {

// Most leaves are one number: a copy of fixed size is a load and a store.
inline void CopyLeaf(std::byte* to, const std::byte* from, size_t bytes) {
  switch (bytes) {
    case 1:
      *to = *from;
      return;
    case 4:
      std::memcpy(to, from, 4);
      return;
    case 8:
      std::memcpy(to, from, 8);
      return;
    default:
      std::memcpy(to, from, bytes);
  }
}

}  // namespace

std::vector<LeafSpec> NextLeaves(std::span<const LeafSpec> leaves) {
  std::vector<LeafSpec> next(leaves.begin(), leaves.end());
  for (LeafSpec& leaf : next) leaf.name = "next_" + leaf.name;
  return next;
}

std::vector<LeafSpec> FrameNumberLeaves() {
  return {{"frame", {}, DType::kInt64}, {"next_frame", {}, DType::kInt64}};
}

RowLayout::RowLayout(std::span<const LeafSpec> leaves) {
  for (const LeafSpec& leaf : leaves) {
    const TensorName name(leaf.name);
    for (const Leaf& other : leaves_)
      WEFT_CHECK(!(other.name == name)) << "two leaves are called " << leaf.name;
    const size_t bytes = static_cast<size_t>(leaf.shape.elements()) * SizeOf(leaf.dtype);
    leaves_.push_back({name, leaf.shape, leaf.dtype, bytes_, bytes});
    bytes_ += bytes;
  }
}

int64_t RowLayout::Bind(const TensorMap& rows, int leading,
                        std::vector<const std::byte*>& columns) const {
  columns.clear();
  Shape lead;
  for (const Leaf& leaf : leaves_) {
    const Tensor& tensor = rows.At(leaf.name.text());
    const auto dims = tensor.shape().dims();
    WEFT_CHECK_EQ(tensor.dtype(), leaf.dtype) << "leaf " << leaf.name.text();
    WEFT_CHECK_EQ(tensor.shape().rank(), leaf.shape.rank() + leading)
        << "leaf " << leaf.name.text() << " has the shape " << tensor.shape() << ", a row has "
        << leaf.shape;
    WEFT_CHECK_EQ(Shape(dims.subspan(static_cast<size_t>(leading))), leaf.shape)
        << "leaf " << leaf.name.text();
    const Shape own_lead(dims.first(static_cast<size_t>(leading)));
    if (columns.empty()) lead = own_lead;
    WEFT_CHECK_EQ(own_lead, lead) << "rows of leaf " << leaf.name.text();
    columns.push_back(tensor.raw());
  }
  return lead.elements();
}

void RowLayout::Allocate(int64_t rows, TensorMap& out, std::vector<std::byte*>& columns) const {
  columns.clear();
  for (const Leaf& leaf : leaves_) {
    const Shape shape = leaf.shape.Prepend(rows);
    const Tensor* present = out.Find(leaf.name.text());
    if (!present || !present->defined() || present->dtype() != leaf.dtype ||
        !(present->shape() == shape) || !present->unique()) {
      out.Set(leaf.name, Tensor::Empty(shape, leaf.dtype));
    }
    columns.push_back(out.At(leaf.name.text()).raw());
  }
}

void RowLayout::Pack(std::span<const std::byte* const> columns, int64_t row,
                     std::byte* record) const {
  for (size_t i = 0; i < leaves_.size(); ++i) {
    const Leaf& leaf = leaves_[i];
    CopyLeaf(record + leaf.offset, columns[i] + static_cast<size_t>(row) * leaf.bytes, leaf.bytes);
  }
}

void RowLayout::Unpack(const std::byte* record, std::span<std::byte* const> columns,
                       int64_t row) const {
  for (size_t i = 0; i < leaves_.size(); ++i) {
    const Leaf& leaf = leaves_[i];
    CopyLeaf(columns[i] + static_cast<size_t>(row) * leaf.bytes, record + leaf.offset, leaf.bytes);
  }
}

const Tensor& SavedTensor(const TensorMap& state, std::string_view name, const Shape& shape,
                          DType dtype) {
  const Tensor* tensor = state.Find(name);
  if (tensor && tensor->shape() == shape && tensor->dtype() == dtype) return *tensor;
  const std::string found =
      !tensor ? "nothing" : tensor->shape().ToString() + " " + Name(tensor->dtype());
  throw Error(ErrorCode::kCorrupt, "saved replay: " + std::string(name) + " should be " +
                                       shape.ToString() + " " + Name(dtype) + " and is " + found +
                                       ": the run was made with other settings");
}

}  // namespace weft
