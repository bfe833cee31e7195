#include "replay/frame_store.h"

#include <cstring>
#include <gtest/gtest.h>
#include <vector>

#include "base/check.h"

namespace weft {
namespace {

constexpr int64_t kSegment = 64;  // frames, the smallest segment

class Frames {
 public:
  Frames() : store_(kLeaves, 0) {}

  FrameStore& store() { return store_; }
  int64_t Append(float value) {
    TensorMap one;
    one.Set("pixel", Tensor::Full({1, 3}, value));
    std::vector<const std::byte*> columns;
    store_.layout().Bind(one, 1, columns);
    return store_.Append(columns, 0);
  }
  float At(int64_t frame) const {
    float values[3];
    std::memcpy(values, store_.Frame(frame), sizeof(values));
    EXPECT_EQ(values[0], values[2]);
    return values[0];
  }

 private:
  inline static const std::vector<LeafSpec> kLeaves = {{"pixel", {3}}};
  FrameStore store_;
};

TEST(FrameStore, KeepsWhatIsHeldAndFreesWholeSegmentsFromTheFront) {
  Frames frames;
  for (int i = 0; i < 3 * kSegment; ++i) EXPECT_EQ(frames.Append(static_cast<float>(i)), i);
  EXPECT_EQ(frames.store().live_segments(), 3);
  frames.store().Hold(5);
  for (int i = 0; i < 2 * kSegment; ++i) frames.store().Release(i);
  EXPECT_EQ(frames.store().live_segments(), 3) << "frame 5 is held once more";
  EXPECT_EQ(frames.At(5), 5);
  frames.store().Release(5);
  EXPECT_EQ(frames.store().live_segments(), 1);
  EXPECT_EQ(frames.At(2 * kSegment), 2 * kSegment);
}

TEST(FrameStore, MemoryOfFreedSegmentsIsUsedAgain) {
  Frames frames;
  for (int i = 0; i < 2 * kSegment; ++i) frames.Append(0);
  const int64_t in_use = TensorAllocator().bytes_in_use;
  for (int i = 0; i < 20 * kSegment; ++i) {
    frames.Append(static_cast<float>(i));
    frames.store().Release(i);
  }
  EXPECT_LE(frames.store().live_segments(), 3);
  // Room for one segment more than before: the front is freed only when the back has moved on.
  EXPECT_LE(TensorAllocator().bytes_in_use - in_use, 2 * kSegment * 12);
}

TEST(FrameStore, ASavedStateDoesNotChangeAndGoesOnExactly) {
  Frames original, loaded;
  for (int i = 0; i < 100; ++i) original.Append(static_cast<float>(i));
  for (int i = 0; i < kSegment; ++i) original.store().Release(i);
  const TensorMap state = original.store().Save();
  const uint64_t hash = Hash(state);
  loaded.store().Load(state);
  EXPECT_EQ(original.Append(100), 100);
  EXPECT_EQ(loaded.Append(100), 100);
  EXPECT_EQ(Hash(state), hash);
  for (int i = kSegment; i <= 100; ++i) EXPECT_EQ(loaded.At(i), static_cast<float>(i));
  EXPECT_EQ(Hash(original.store().Save()), Hash(loaded.store().Save()));
}

TEST(FrameStore, FramesThatAreNotThereAreNamed) {
  Frames frames;
  frames.Append(1);
  frames.store().Release(0);
  EXPECT_THROW(frames.store().Release(0), Error);
  EXPECT_THROW(frames.store().Hold(1), Error);
  EXPECT_THROW(frames.store().Hold(-1), Error);
}

}  // namespace
}  // namespace weft
