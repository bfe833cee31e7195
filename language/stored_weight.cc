#include "language/stored_weight.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "language/weight_blocks.h"

namespace weft {
namespace {

bool AllFinite(const float* values, int64_t count) {
  uint32_t worst = 0;
  for (int64_t i = 0; i < count; ++i) {
    worst = std::max(worst, std::bit_cast<uint32_t>(values[i]) & 0x7FFFFFFF);
  }
  return worst < 0x7F800000;
}

}  // namespace

StoredWeight::StoredWeight(const StoredTensor& tensor, const StoredPart& part, WeightType type,
                           const uint8_t* bytes, std::string file)
    : spec_(part.weight),
      type_(type),
      stored_(std::move(file) + ": tensor " + tensor.name),
      bytes_(bytes),
      map_(part.rows),
      stored_columns_(tensor.shape.back()),
      transposed_(tensor.transposed),
      offset_(tensor.offset) {}

StoredWeight::StoredWeight(WeightSpec spec, const float* values)
    : spec_(std::move(spec)),
      stored_(spec_.name),
      bytes_(reinterpret_cast<const uint8_t*>(values)) {}

StoredWeight::StoredWeight(WeightSpec spec, ReadFunction read, WeightType type)
    : spec_(std::move(spec)), type_(type), stored_(spec_.name), read_(std::move(read)) {}

const uint8_t* StoredWeight::RowBytes(int64_t row) const {
  if (transposed_ || offset_ != 0 || read_) return nullptr;
  return bytes_ + map_.Stored(row) * weft::RowBytes(type_, columns());
}

void StoredWeight::ReadRows(int64_t begin, int64_t end, float* out) const {
  WEFT_CHECK(begin >= 0 && begin <= end && end <= rows())
      << "rows " << begin << " to " << end << " of " << name() << " with " << rows();
  const int64_t width = columns();
  if (read_) {
    read_(begin, end, out);
  } else if (transposed_) {
    ReadTransposed(begin, end, out);
  } else {
    const int64_t row_bytes = weft::RowBytes(type_, width);
    for (int64_t row = begin; row < end; ++row) {
      DequantiseRow(type_, bytes_ + map_.Stored(row) * row_bytes, width,
                    out + (row - begin) * width);
    }
  }
  const int64_t count = (end - begin) * width;
  if (offset_ != 0) {
    for (int64_t i = 0; i < count; ++i) out[i] -= offset_;
  }
  if (!AllFinite(out, count)) {
    throw Error(ErrorCode::kCorrupt, stored_ + " holds a value that is not finite");
  }
}

// Whole stored rows are converted; each gives one column of the result.
void StoredWeight::ReadTransposed(int64_t begin, int64_t end, float* out) const {
  const int64_t width = columns();
  std::vector<float> stored(static_cast<size_t>(end - begin));
  const int64_t element = weft::RowBytes(type_, 1), first = map_.Stored(begin);
  for (int64_t column = 0; column < width; ++column) {
    DequantiseRow(type_, bytes_ + (column * stored_columns_ + first) * element, end - begin,
                  stored.data());
    for (int64_t row = 0; row < end - begin; ++row) {
      out[row * width + column] = stored[static_cast<size_t>(row)];
    }
  }
}

std::vector<float> StoredWeight::Read() const {
  std::vector<float> values(static_cast<size_t>(elements()));
  ReadRows(0, rows(), values.data());
  return values;
}

}  // namespace weft
