#include "replay/row_store.h"

#include <algorithm>
#include <bit>
#include <string>

#include "base/check.h"
#include "replay/row_layout.h"

namespace weft {

int SegmentShift(size_t record_bytes, int64_t rows) {
  const uint64_t fitting = std::max<uint64_t>(1, kSegmentBytes / std::max<size_t>(1, record_bytes));
  const uint64_t wanted = std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, rows)));
  return std::countr_zero(std::min(std::bit_floor(fitting), wanted));
}

std::byte* WritableSegment(Tensor& segment, int64_t rows, size_t record_bytes) {
  if (!segment.defined()) {
    segment = Tensor::Empty({rows, static_cast<int64_t>(record_bytes)}, DType::kUInt8);
  } else if (!segment.unique()) {
    segment = segment.Clone();
  }
  return segment.raw();
}

RowStore::RowStore(size_t record_bytes, int64_t capacity)
    : record_bytes_(record_bytes),
      capacity_(capacity),
      shift_(SegmentShift(record_bytes, capacity)),
      mask_((int64_t{1} << shift_) - 1),
      segments_(static_cast<size_t>((capacity + mask_) >> shift_)),
      bases_(segments_.size(), nullptr) {}

int64_t RowStore::SegmentRows(size_t segment) const {
  const int64_t begin = static_cast<int64_t>(segment) << shift_;
  return std::min(int64_t{1} << shift_, capacity_ - begin);
}

std::byte* RowStore::MutableRow(int64_t slot) {
  const auto segment = static_cast<size_t>(slot >> shift_);
  used_ = std::max(used_, slot + 1);
  bases_[segment] = WritableSegment(segments_[segment], SegmentRows(segment), record_bytes_);
  return bases_[segment] + static_cast<size_t>(slot & mask_) * record_bytes_;
}

TensorMap RowStore::Save() const {
  TensorMap state;
  for (size_t i = 0; i < segments_.size(); ++i) {
    const int64_t rows = std::min(SegmentRows(i), used_ - (static_cast<int64_t>(i) << shift_));
    if (rows > 0) state.Set("segment." + std::to_string(i), segments_[i].Slice(0, rows));
  }
  return state;
}

void RowStore::Load(const TensorMap& state) {
  used_ = 0;
  for (size_t i = 0; i < segments_.size(); ++i) {
    const std::string name = "segment." + std::to_string(i);
    segments_[i] = Tensor();
    bases_[i] = nullptr;
    const Tensor* saved = state.Find(name);
    if (!saved) continue;
    const int64_t rows = std::min(saved->shape().rank() > 0 ? saved->dim(0) : 0, SegmentRows(i));
    const Shape shape{rows, static_cast<int64_t>(record_bytes_)};
    bases_[i] = WritableSegment(segments_[i], SegmentRows(i), record_bytes_);
    segments_[i].Slice(0, rows).CopyFrom(SavedTensor(state, name, shape, DType::kUInt8));
    used_ = (static_cast<int64_t>(i) << shift_) + rows;
  }
}

}  // namespace weft
