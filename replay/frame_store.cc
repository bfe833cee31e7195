#include "replay/frame_store.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "replay/row_store.h"

namespace weft {

FrameStore::FrameStore(std::span<const LeafSpec> leaves, int64_t frames_expected)
    : layout_(leaves),
      // An eighth of what is alive: a partly used segment at either end then wastes little.
      shift_(SegmentShift(layout_.bytes(), std::max<int64_t>(64, frames_expected / 8))),
      mask_((int64_t{1} << shift_) - 1) {}

FrameStore::Segment& FrameStore::SegmentOf(int64_t frame) {
  const int64_t segment = (frame >> shift_) - first_;
  WEFT_CHECK(segment >= 0 && frame < next_) << "frame " << frame << " is not stored";
  return segments_[static_cast<size_t>(segment)];
}

int64_t FrameStore::Append(std::span<const std::byte* const> columns, int64_t row) {
  const int64_t frame = next_++;
  if ((frame >> shift_) - first_ == static_cast<int64_t>(segments_.size())) {
    Segment& fresh = segments_.emplace_back();
    if (!spare_.empty()) {
      fresh.memory = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  Segment& segment = segments_.back();
  segment.base = WritableSegment(segment.memory, mask_ + 1, layout_.bytes());
  ++segment.holds;
  layout_.Pack(columns, row, segment.base + static_cast<size_t>(frame & mask_) * layout_.bytes());
  return frame;
}

void FrameStore::Release(int64_t frame) {
  Segment& segment = SegmentOf(frame);
  WEFT_CHECK_GT(segment.holds, 0) << "frame " << frame << " was released too often";
  --segment.holds;
  // The segment that is being filled stays even when nothing in it is held.
  while (segments_.size() > 1 && segments_.front().holds == 0) {
    // Shared memory belongs to a saved state; writing it would only copy it.
    if (segments_.front().memory.unique()) spare_.push_back(std::move(segments_.front().memory));
    segments_.pop_front();
    ++first_;
  }
}

TensorMap FrameStore::Save() const {
  TensorMap state;
  state.Set("queue", Tensor::From<int64_t>({2}, {first_, next_}));
  Tensor holds = Tensor::Empty({static_cast<int64_t>(segments_.size())}, DType::kInt64);
  for (size_t i = 0; i < segments_.size(); ++i) {
    holds.data<int64_t>()[i] = segments_[i].holds;
    const int64_t begin = (first_ + static_cast<int64_t>(i)) << shift_;
    const int64_t frames = std::min(mask_ + 1, next_ - begin);
    state.Set("segment." + std::to_string(i), segments_[i].memory.Slice(0, frames));
  }
  state.Set("holds", holds);
  return state;
}

void FrameStore::Load(const TensorMap& state) {
  const auto queue = SavedTensor(state, "queue", {2}, DType::kInt64).data<int64_t>();
  const int64_t count = state.At("holds").elements();
  const auto holds = SavedTensor(state, "holds", {count}, DType::kInt64).data<int64_t>();
  first_ = queue[0];
  next_ = queue[1];
  segments_.clear();
  spare_.clear();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t frames = std::min(mask_ + 1, next_ - ((first_ + i) << shift_));
    const Shape shape{frames, static_cast<int64_t>(layout_.bytes())};
    const Tensor& saved = SavedTensor(state, "segment." + std::to_string(i), shape, DType::kUInt8);
    Segment& segment = segments_.emplace_back();
    segment.base = WritableSegment(segment.memory, mask_ + 1, layout_.bytes());
    segment.memory.Slice(0, frames).CopyFrom(saved);
    segment.holds = holds[static_cast<size_t>(i)];
  }
}

}  // namespace weft
