// Observations stored once: a queue of frames that consecutive transitions share (a transition
// holds the numbers of its first and its next frame). Numbers count up and are never used twice.
// Frames lie in segments; a segment in which no frame is held any more gives its memory to the next
// one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "replay/row_layout.h"

namespace weft {

class FrameStore {
 public:
  // frames_expected: frames alive at a time, sets the size of a segment; not a limit.
  FrameStore(std::span<const LeafSpec> leaves, int64_t frames_expected);

  const RowLayout& layout() const { return layout_; }
  int64_t live_segments() const { return static_cast<int64_t>(segments_.size()); }

  // Stores row `row` of the columns (RowLayout::Bind) as a new frame that is held once; returns its
  // number.
  int64_t Append(std::span<const std::byte* const> columns, int64_t row);
  // Every frame is freed when it was released as often as it was held.
  void Hold(int64_t frame) { ++SegmentOf(frame).holds; }
  void Release(int64_t frame);

  const std::byte* Frame(int64_t frame) const {
    return segments_[static_cast<size_t>((frame >> shift_) - first_)].base +
           static_cast<size_t>(frame & mask_) * layout_.bytes();
  }

  TensorMap Save() const;
  void Load(const TensorMap& state);

 private:
  struct Segment {
    Tensor memory;
    std::byte* base = nullptr;
    int64_t holds = 0;
  };
  Segment& SegmentOf(int64_t frame);

  RowLayout layout_;
  int shift_;
  int64_t mask_;
  int64_t first_ = 0;  // number of the segment at the front of segments_
  int64_t next_ = 0;   // number of the next frame
  std::deque<Segment> segments_;
  std::vector<Tensor> spare_;  // memory of freed segments
};

}  // namespace weft
