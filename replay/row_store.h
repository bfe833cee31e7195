// Memory of a table: records of equal size in segments of about 32 MiB that are allocated when
// first written, so an empty table costs nothing and a saved one shares its segments with the
// checkpoint: a segment is copied only when it is written while a saved handle of it lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensor/tensor_map.h"

namespace weft {

inline constexpr size_t kSegmentBytes = size_t{32} << 20;

// The largest power of two of rows whose records fit in kSegmentBytes and that is at most `rows`
// rounded up; at least 1.
int SegmentShift(size_t record_bytes, int64_t rows);

// Makes the segment writable: allocates it on first use, copies it when it is shared with a saved
// state.
std::byte* WritableSegment(Tensor& segment, int64_t rows, size_t record_bytes);

// Hints the processor to fetch a record that is read soon.
inline void PrefetchRecord(const std::byte* record, size_t bytes) {
  // Longer records are streamed by the hardware once their copy has begun.
  constexpr size_t kLine = 64, kLines = 6;
  for (size_t offset = 0; offset < bytes && offset < kLine * kLines; offset += kLine) {
    __builtin_prefetch(record + offset);
  }
}

class RowStore {
 public:
  RowStore(size_t record_bytes, int64_t capacity);

  size_t record_bytes() const { return record_bytes_; }
  // The record in a slot that was written before.
  const std::byte* Row(int64_t slot) const {
    return bases_[static_cast<size_t>(slot >> shift_)] +
           static_cast<size_t>(slot & mask_) * record_bytes_;
  }
  // The record in any slot, to be written.
  std::byte* MutableRow(int64_t slot);

  // Handles of the segments up to the highest slot written, "segment.<i>" u8 [rows, record bytes].
  TensorMap Save() const;
  void Load(const TensorMap& state);

 private:
  int64_t SegmentRows(size_t segment) const;  // when it is full

  size_t record_bytes_;
  int64_t capacity_;
  int shift_;
  int64_t mask_;
  int64_t used_ = 0;  // slots below it may have been written
  std::vector<Tensor> segments_;
  std::vector<std::byte*> bases_;  // of the segments, null before the first write
};

}  // namespace weft
