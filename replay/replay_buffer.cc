#include "replay/replay_buffer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace weft {
namespace {

std::vector<LeafSpec> InsertedLeaves(const ReplayOptions& options) {
  std::vector<LeafSpec> leaves = options.leaves;
  if (options.frames.empty()) return leaves;
  for (LeafSpec& leaf : FrameNumberLeaves()) leaves.push_back(std::move(leaf));
  return leaves;
}

std::vector<LeafSpec> DrawnLeaves() {
  return {
      {"index", {}, DType::kInt64}, {"key", {}, DType::kInt64}, {"weight", {}, DType::kFloat32}};
}

// Throws when two leaves of a batch would share a name.
void CheckNames(const ReplayOptions& options) {
  std::vector<LeafSpec> all = options.leaves;
  for (const auto& more : {DrawnLeaves(), options.frames, NextLeaves(options.frames)}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  RowLayout layout(all);
}

int64_t ReadInt64(const std::byte* bytes) {
  int64_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

// Throws kDiverged for the first error that is not finite.
void CheckFinite(const Tensor& errors, int64_t rows) {
  WEFT_CHECK_EQ(errors.elements(), rows) << "one error a row";
  const auto values = errors.data<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      throw Error(ErrorCode::kDiverged, "the error of row " + std::to_string(i) +
                                            " of the batch is " + std::to_string(values[i]));
    }
  }
}

}  // namespace

int64_t ReplayBytes(const ReplayOptions& options) {
  const RowLayout row(InsertedLeaves(options)), frame(options.frames);
  const int64_t record = static_cast<int64_t>(row.bytes() + sizeof(int64_t) + frame.bytes());
  const int64_t tree =
      options.sampler == SelectorKind::kPrioritised ? options.capacity * 64 / 7 : 0;
  return record * options.capacity + tree;
}

ReplayBuffer::ReplayBuffer(ReplayOptions options)
    : options_(std::move(options)),
      inserted_(InsertedLeaves(options_)),
      sampled_(options_.leaves),
      drawn_(DrawnLeaves()),
      observation_(options_.frames),
      next_(NextLeaves(options_.frames)),
      rows_(inserted_.bytes() + sizeof(int64_t), options_.capacity),
      sampler_(MakeSelector(options_.sampler, options_.capacity, options_.priority)),
      limiter_(options_.limit) {
  CheckNames(options_);
  WEFT_CHECK_GE(options_.max_times_sampled, 0) << "max_times_sampled";
  WEFT_CHECK(options_.remover != SelectorKind::kPrioritised)
      << "rows leave in order or at random: errors say what to draw, not what to drop";
  WEFT_CHECK_LE(options_.limit.min_size, options_.capacity)
      << "min_size is above the capacity: no sample could be drawn";
  const bool ring = options_.remover == SelectorKind::kFifo && options_.max_times_sampled == 0;
  if (!ring) remover_ = MakeSelector(options_.remover, options_.capacity);
  if (options_.max_times_sampled > 0) times_.assign(static_cast<size_t>(options_.capacity), 0);
  if (!options_.frames.empty()) {
    WEFT_CHECK(ring) << "rows that share frames must leave in the order in which they came";
    frames_ = std::make_unique<FrameStore>(options_.frames, options_.capacity);
  }
}

bool ReplayBuffer::Insert(const TensorMap& rows, const Tensor& errors) {
  const int64_t count = inserted_.Bind(rows, 1, sources_);
  if (errors.defined()) CheckFinite(errors, count);
  if (!limiter_.CanInsert(count)) return false;
  const auto values = errors.defined() ? errors.data<float>() : std::span<const float>();
  for (int64_t row = 0; row < count; ++row) {
    const int64_t slot = TakeSlot();
    const int64_t key = limiter_.inserted() + row;
    std::byte* record = rows_.MutableRow(slot);
    inserted_.Pack(sources_, row, record);
    std::memcpy(record + inserted_.bytes(), &key, sizeof(key));
    if (frames_) {
      frames_->Hold(ReadInt64(record + sampled_.bytes()));
      frames_->Hold(ReadInt64(record + sampled_.bytes() + sizeof(int64_t)));
    }
    sampler_->Insert(slot);
    if (remover_) remover_->Insert(slot);
    if (!values.empty()) sampler_->Update(slot, values[static_cast<size_t>(row)]);
    if (!times_.empty()) {
      times_[static_cast<size_t>(slot)] = 0;
      draws_left_ += options_.max_times_sampled;
    }
  }
  limiter_.Inserted(count);
  return true;
}

int64_t ReplayBuffer::TakeSlot() {
  if (!remover_) {
    const int64_t slot = cursor_;
    cursor_ = (cursor_ + 1) % options_.capacity;
    if (size() == options_.capacity) ReleaseFrames(slot);
    return slot;
  }
  if (free_.empty() && cursor_ < options_.capacity) return cursor_++;
  if (free_.empty()) {
    int64_t leaving;
    double probability;
    remover_->Sample(options_.rng, {&leaving, 1}, {&probability, 1});
    Free(leaving);
  }
  const int64_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void ReplayBuffer::Free(int64_t slot) {
  constexpr int64_t kNoKey = -1;
  std::memcpy(rows_.MutableRow(slot) + inserted_.bytes(), &kNoKey, sizeof(kNoKey));
  sampler_->Remove(slot);
  remover_->Remove(slot);
  if (!times_.empty())
    draws_left_ -= options_.max_times_sampled - times_[static_cast<size_t>(slot)];
  free_.push_back(slot);
}

void ReplayBuffer::ReleaseFrames(int64_t slot) {
  if (!frames_) return;
  const std::byte* record = rows_.Row(slot);
  frames_->Release(ReadInt64(record + sampled_.bytes()));
  frames_->Release(ReadInt64(record + sampled_.bytes() + sizeof(int64_t)));
}

int64_t ReplayBuffer::KeyOf(int64_t slot) const {
  return ReadInt64(rows_.Row(slot) + inserted_.bytes());
}

bool ReplayBuffer::Sample(int64_t batch, double beta, Rng& rng, TensorMap& out) {
  WEFT_CHECK_GT(batch, 0) << "rows of a batch";
  if (!limiter_.CanSample(batch, size())) return false;
  if (!times_.empty() && draws_left_ < batch) return false;
  sampled_.Allocate(batch, out, sampled_columns_);
  drawn_.Allocate(batch, out, drawn_columns_);
  observation_.Allocate(batch, out, observation_columns_);
  next_.Allocate(batch, out, next_columns_);
  auto* index = reinterpret_cast<int64_t*>(drawn_columns_[0]);
  auto* key = reinterpret_cast<int64_t*>(drawn_columns_[1]);
  auto* weight = reinterpret_cast<float*>(drawn_columns_[2]);

  slots_.resize(static_cast<size_t>(batch));
  probability_.resize(slots_.size());
  Draw(rng);
  limiter_.Sampled(batch);

  // All rows are on their way before the first is copied.
  for (const int64_t slot : slots_) PrefetchRecord(rows_.Row(slot), rows_.record_bytes());
  FillWeights(beta, {weight, slots_.size()});
  for (int64_t i = 0; i < batch; ++i) {
    const std::byte* record = rows_.Row(slots_[static_cast<size_t>(i)]);
    sampled_.Unpack(record, sampled_columns_, i);
    index[i] = slots_[static_cast<size_t>(i)];
    key[i] = ReadInt64(record + inserted_.bytes());
    if (frames_) {
      PrefetchRecord(frames_->Frame(ReadInt64(record + sampled_.bytes())), observation_.bytes());
      PrefetchRecord(frames_->Frame(ReadInt64(record + sampled_.bytes() + sizeof(int64_t))),
                     next_.bytes());
    }
  }
  if (!frames_) return true;
  for (int64_t i = 0; i < batch; ++i) {
    const std::byte* numbers = rows_.Row(slots_[static_cast<size_t>(i)]) + sampled_.bytes();
    observation_.Unpack(frames_->Frame(ReadInt64(numbers)), observation_columns_, i);
    next_.Unpack(frames_->Frame(ReadInt64(numbers + sizeof(int64_t))), next_columns_, i);
  }
  return true;
}

void ReplayBuffer::Draw(Rng& rng) {
  const std::span<int64_t> slots(slots_);
  const std::span<double> probability(probability_);
  if (times_.empty()) {
    sampler_->Sample(rng, slots, probability);
    return;
  }
  // A row that leaves changes what can be drawn next.
  for (size_t i = 0; i < slots.size(); ++i) {
    sampler_->Sample(rng, slots.subspan(i, 1), probability.subspan(i, 1));
    --draws_left_;
    if (++times_[static_cast<size_t>(slots[i])] == options_.max_times_sampled) Free(slots[i]);
  }
}

void ReplayBuffer::FillWeights(double beta, std::span<float> weights) const {
  if (options_.sampler != SelectorKind::kPrioritised) {
    std::fill(weights.begin(), weights.end(), 1.0f);
    return;
  }
  // (size p)^-beta over its largest: the rarest row has the largest weight, and the size cancels.
  const double rarest = *std::min_element(probability_.begin(), probability_.end());
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = static_cast<float>(std::pow(probability_[i] / rarest, -beta));
  }
}

int64_t ReplayBuffer::UpdatePriorities(const Tensor& index, const Tensor& key,
                                       const Tensor& errors) {
  const auto slots = index.data<int64_t>();
  const auto keys = key.data<int64_t>();
  WEFT_CHECK_EQ(slots.size(), keys.size()) << "one key a row";
  CheckFinite(errors, index.elements());
  const auto values = errors.data<float>();
  const int64_t written = std::min(inserted(), options_.capacity);
  int64_t updated = 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    WEFT_CHECK(slots[i] >= 0 && slots[i] < written) << "index " << slots[i] << " of row " << i;
    if (keys[i] < 0 || KeyOf(slots[i]) != keys[i]) continue;
    sampler_->Update(slots[i], values[i]);
    ++updated;
  }
  return updated;
}

TensorMap ReplayBuffer::Save() const {
  TensorMap state;
  state.Merge("rows", rows_.Save());
  state.Merge("sampler", sampler_->Save());
  if (remover_) state.Merge("remover", remover_->Save());
  if (frames_) state.Merge("frames", frames_->Save());
  const auto& random = options_.rng.state();
  state.Set("counters", Tensor::From<int64_t>({4}, {cursor_, inserted(), sampled(), draws_left_}));
  state.Set("rng", Tensor::From<int64_t>(
                       {3}, {static_cast<int64_t>(random.seed), static_cast<int64_t>(random.stream),
                             static_cast<int64_t>(random.position)}));
  state.Set("free", Tensor::From<int64_t>({static_cast<int64_t>(free_.size())}, free_));
  state.Set("times", Tensor::From<int64_t>({static_cast<int64_t>(times_.size())}, times_));
  return state;
}

void ReplayBuffer::Load(const TensorMap& state) {
  const auto counters = SavedTensor(state, "counters", {4}, DType::kInt64).data<int64_t>();
  const auto random = SavedTensor(state, "rng", {3}, DType::kInt64).data<int64_t>();
  const Tensor free = SavedTensor(state, "free", {state.At("free").elements()}, DType::kInt64);
  const Tensor times =
      SavedTensor(state, "times", {static_cast<int64_t>(times_.size())}, DType::kInt64);
  rows_.Load(state.Extract("rows"));
  sampler_->Load(state.Extract("sampler"));
  if (remover_) remover_->Load(state.Extract("remover"));
  if (frames_) frames_->Load(state.Extract("frames"));
  cursor_ = counters[0];
  limiter_.Restore(counters[1], counters[2]);
  draws_left_ = counters[3];
  options_.rng = Rng({static_cast<uint64_t>(random[0]), static_cast<uint64_t>(random[1]),
                      static_cast<uint64_t>(random[2])});
  free_.assign(free.data<int64_t>().begin(), free.data<int64_t>().end());
  times_.assign(times.data<int64_t>().begin(), times.data<int64_t>().end());
}

}  // namespace weft
