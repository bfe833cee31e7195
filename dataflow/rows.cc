#include "dataflow/rows.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace weft {
namespace {

// A tensor seen as [outer, rows, inner]: bytes of one row and number of outer repeats.
struct Blocks {
  int64_t outer = 1, rows = 0;
  size_t row_bytes = 0;
};

Blocks View(const Tensor& tensor, std::string_view leaf, int dim, const std::string& edge) {
  if (dim >= tensor.shape().rank() || tensor.layout() != Layout::kRowMajor) {
    throw Error(ErrorCode::kInvalidArgument,
                edge + ": leaf \"" + std::string(leaf) + "\" of shape " +
                    tensor.shape().ToString() + " has no rows in dimension " + std::to_string(dim));
  }
  Blocks blocks;
  for (int d = 0; d < dim; ++d) blocks.outer *= tensor.dim(d);
  blocks.rows = tensor.dim(dim);
  int64_t inner = 1;
  for (int d = dim + 1; d < tensor.shape().rank(); ++d) inner *= tensor.dim(d);
  blocks.row_bytes = static_cast<size_t>(inner) * SizeOf(tensor.dtype());
  return blocks;
}

Tensor ConcatenateLeaf(std::span<Message> parts, size_t leaf, int dim, const std::string& edge) {
  const auto& [name, first] = parts[0].body.entry(leaf);
  int64_t rows = 0;
  for (const Message& part : parts) {
    const auto& [other_name, other] = part.body.entry(leaf);
    WEFT_CHECK(other_name == name)
        << edge << ": leaf " << leaf << " is \"" << name.text() << "\" from one writer and \""
        << other_name.text() << "\" from another";
    rows += View(other, name.text(), dim, edge).rows;
    WEFT_CHECK(other.dtype() == first.dtype() &&
               other.shape().WithDim(dim, 0) == first.shape().WithDim(dim, 0))
        << edge << ": leaf \"" << name.text() << "\" is " << first.dtype() << " " << first.shape()
        << " from one writer and " << other.dtype() << " " << other.shape() << " from another";
  }
  Tensor whole = Tensor::Empty(first.shape().WithDim(dim, rows), first.dtype());
  const int64_t outer = View(first, name.text(), dim, edge).outer;
  std::byte* out = whole.raw();
  for (int64_t o = 0; o < outer; ++o) {
    for (const Message& part : parts) {
      const Tensor& tensor = part.body.entry(leaf).second;
      const Blocks blocks = View(tensor, name.text(), dim, edge);
      const size_t bytes = static_cast<size_t>(blocks.rows) * blocks.row_bytes;
      if (bytes > 0) std::memcpy(out, tensor.raw() + static_cast<size_t>(o) * bytes, bytes);
      out += bytes;
    }
  }
  return whole;
}

}  // namespace

Message ConcatenateRows(std::span<Message> parts, int dim, bool mixed_versions,
                        const std::string& edge) {
  Message whole;
  whole.version = parts[0].version;
  for (const Message& part : parts) {
    WEFT_CHECK_EQ(part.body.size(), parts[0].body.size())
        << edge << ": leaves of two writers' messages";
    WEFT_CHECK(mixed_versions || part.version == whole.version)
        << edge << ": versions " << whole.version << " and " << part.version
        << " of two writers' messages";
    whole.version = std::max(whole.version, part.version);
  }
  for (size_t leaf = 0; leaf < parts[0].body.size(); ++leaf) {
    whole.body.Set(parts[0].body.entry(leaf).first, ConcatenateLeaf(parts, leaf, dim, edge));
  }
  return whole;
}

Message SplitRows(const Message& message, int dim, int index, int parts, const std::string& edge) {
  Message block;
  block.version = message.version;
  for (const auto& [name, tensor] : message.body) {
    const Blocks blocks = View(tensor, name.text(), dim, edge);
    WEFT_CHECK_EQ(blocks.rows % parts, 0)
        << edge << ": leaf \"" << name.text() << "\" of shape " << tensor.shape()
        << " does not split into " << parts << " parts";
    const int64_t rows = blocks.rows / parts;
    if (dim == 0) {
      block.body.Set(name, tensor.Slice(index * rows, (index + 1) * rows));
      continue;
    }
    Tensor copy = Tensor::Empty(tensor.shape().WithDim(dim, rows), tensor.dtype());
    const size_t bytes = static_cast<size_t>(rows) * blocks.row_bytes;
    for (int64_t o = 0; o < blocks.outer && bytes > 0; ++o) {
      std::memcpy(copy.raw() + static_cast<size_t>(o) * bytes,
                  tensor.raw() + static_cast<size_t>(o * parts + index) * bytes, bytes);
    }
    block.body.Set(name, copy);
  }
  return block;
}

}  // namespace weft
