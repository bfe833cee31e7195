#include "language/tensor_maker.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "language/weight_blocks.h"

namespace weft {
namespace {

constexpr int64_t kChunkElements = 1 << 16;

int64_t Columns(const std::vector<int64_t>& shape) {
  return shape.size() > 1 ? shape[1] : 1;
}

}  // namespace

TensorMaker::TensorMaker(std::span<const StoredWeight> weights) {
  for (const StoredWeight& weight : weights) weights_.emplace(weight.name(), &weight);
}

const StoredWeight& TensorMaker::Find(const WeightSpec& spec) const {
  const auto found = weights_.find(spec.name);
  WEFT_CHECK(found != weights_.end()) << "there is no weight " << spec.name;
  WEFT_CHECK(found->second->shape() == spec.shape) << spec.name << " has another shape";
  return *found->second;
}

WeightType TensorMaker::TypeOf(const StoredTensor& tensor) const {
  const WeightType type = Find(tensor.parts[0].weight).type();
  const bool same = std::ranges::all_of(
      tensor.parts, [&](const StoredPart& part) { return Find(part.weight).type() == type; });
  return same ? type : WeightType::kF32;
}

void TensorMaker::Fill(const StoredTensor& tensor, WeightType type, std::span<uint8_t> out) const {
  if (tensor.transposed) return FillTransposed(tensor, type, out);
  const int64_t columns = Columns(tensor.shape), row_bytes = RowBytes(type, columns);
  const int64_t chunk = std::max<int64_t>(1, kChunkElements / columns);
  std::vector<float> values;
  for (const StoredPart& part : tensor.parts) {
    const StoredWeight& weight = Find(part.weight);
    const bool as_is = weight.type() == type && tensor.offset == 0 && weight.RowBytes(0) != nullptr;
    for (int64_t begin = 0; begin < weight.rows(); begin += chunk) {
      const int64_t end = std::min(begin + chunk, weight.rows());
      if (!as_is) {
        values.resize(static_cast<size_t>((end - begin) * columns));
        weight.ReadRows(begin, end, values.data());
        for (float& value : values) value += tensor.offset;
      }
      for (int64_t row = begin; row < end; ++row) {
        uint8_t* place = out.data() + part.rows.Stored(row) * row_bytes;
        if (as_is) {
          std::memcpy(place, weight.RowBytes(row), static_cast<size_t>(row_bytes));
        } else {
          QuantiseRow(type, values.data() + (row - begin) * columns, columns, place);
        }
      }
    }
  }
}

void TensorMaker::FillTransposed(const StoredTensor& tensor, WeightType type,
                                 std::span<uint8_t> out) const {
  const int64_t rows = tensor.shape[0], width = tensor.shape[1];
  std::vector<float> stored(static_cast<size_t>(rows * width));
  for (const StoredPart& part : tensor.parts) {
    const std::vector<float> values = Find(part.weight).Read();
    const int64_t outputs = part.weight.shape[0];
    for (int64_t output = 0; output < outputs; ++output) {
      const int64_t column = part.rows.Stored(output);
      for (int64_t row = 0; row < rows; ++row) {
        stored[static_cast<size_t>(row * width + column)] =
            values[static_cast<size_t>(output * rows + row)];
      }
    }
  }
  for (int64_t row = 0; row < rows; ++row) {
    QuantiseRow(type, stored.data() + row * width, width, out.data() + row * RowBytes(type, width));
  }
}

}  // namespace weft
