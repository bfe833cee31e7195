#include "replay/trajectory_writer.h"

#include <cmath>
#include <cstring>
#include <string>

#include "base/check.h"

namespace weft {
namespace {

// As StepType of the environments, which this floor does not know.
enum Type : uint8_t { kFirst, kMid, kLast };

enum Status : uint8_t { kNothing, kOpen, kEnded };

void Append(std::vector<LeafSpec>& leaves, std::span<const LeafSpec> more) {
  leaves.insert(leaves.end(), more.begin(), more.end());
}

// Leaves of a transition in the order of their columns: held, carried, reward, discount, next.
std::vector<LeafSpec> ColumnLeaves(const TrajectoryOptions& options, bool shared_frames) {
  std::vector<LeafSpec> leaves;
  const std::vector<LeafSpec> numbers = FrameNumberLeaves();
  Append(leaves, shared_frames ? std::span(numbers).first(1) : std::span(options.observation));
  Append(leaves, TransitionLeaves(options, true));
  if (shared_frames) {
    Append(leaves, std::span(numbers).last(1));
  } else {
    Append(leaves, NextLeaves(options.observation));
  }
  return leaves;
}

}  // namespace

std::vector<LeafSpec> TransitionLeaves(const TrajectoryOptions& options, bool shared_frames) {
  if (!shared_frames) return ColumnLeaves(options, false);
  std::vector<LeafSpec> leaves = options.carried;
  leaves.push_back({"reward", {}, DType::kFloat32});
  leaves.push_back({"discount", {}, DType::kFloat32});
  return leaves;
}

struct TrajectoryWriter::Chunk {
  const float *reward, *discount;
  const uint8_t* type;
};

struct TrajectoryWriter::Output {
  std::span<std::byte*const> held, carried, next;
  float *reward, *discount;
  int64_t count = 0;
};

TrajectoryWriter::TrajectoryWriter(TrajectoryOptions options, FrameStore* frames)
    : options_(std::move(options)), frames_(frames), observation_(options_.observation) {
  WEFT_CHECK_GE(options_.n_step, 1) << "n_step";
  WEFT_CHECK_GE(options_.rows, 1) << "environment rows";
  const std::vector<LeafSpec> numbers = FrameNumberLeaves();
  held_ = frames ? RowLayout(std::span(numbers).first(1)) : observation_;
  carried_ = RowLayout(options_.carried);
  const std::vector<LeafSpec> scalars = {
      {"reward", {}}, {"discount", {}}, {"type", {}, DType::kUInt8}};
  scalars_ = RowLayout(scalars);
  transition_ = RowLayout(ColumnLeaves(options_, frames != nullptr));
  const int64_t rows = options_.rows, n = options_.n_step;
  current_ = Tensor::Zeros({rows, static_cast<int64_t>(held_.bytes())}, DType::kUInt8);
  status_ = Tensor::Zeros({rows}, DType::kUInt8);
  window_ = Tensor::Zeros({rows, n, static_cast<int64_t>(held_.bytes() + carried_.bytes())},
                          DType::kUInt8);
  sums_ = Tensor::Zeros({rows, n, 2}, DType::kFloat64);
  ring_ = Tensor::Zeros({rows, 2}, DType::kInt64);
}

std::byte* TrajectoryWriter::Entry(int64_t row, int64_t index) {
  return window_.raw() +
         static_cast<size_t>(row * options_.n_step + index) * (held_.bytes() + carried_.bytes());
}

TensorMap TrajectoryWriter::Append(const TensorMap& steps) {
  const Shape shape = steps.At("type").shape();
  WEFT_CHECK(shape.rank() == 2 && shape[1] == options_.rows)
      << "steps are [T, " << options_.rows << "], their type is " << shape;
  const int64_t ticks = shape[0];
  observation_.Bind(steps, 2, observation_columns_);
  carried_.Bind(steps, 2, carried_columns_);
  scalars_.Bind(steps, 2, scalar_columns_);
  for (const RowLayout* layout : {&observation_, &carried_}) {
    if (layout->leaves().empty()) continue;
    const auto dims = steps.At(layout->leaves()[0].name.text()).shape().dims();
    WEFT_CHECK_EQ(Shape(dims.first(2)), shape)
        << "ticks and rows of leaf " << layout->leaves()[0].name.text();
  }
  if (frames_) {
    for (const int64_t frame : unneeded_) frames_->Release(frame);
  }
  unneeded_.clear();

  const Chunk chunk{reinterpret_cast<const float*>(scalar_columns_[0]),
                    reinterpret_cast<const float*>(scalar_columns_[1]),
                    reinterpret_cast<const uint8_t*>(scalar_columns_[2])};
  transition_.Allocate((ticks + options_.n_step) * options_.rows, buffers_, output_columns_);
  const std::span<std::byte* const> columns(output_columns_);
  const size_t held = held_.leaves().size(), carried = carried_.leaves().size();
  Output output{columns.first(held), columns.subspan(held, carried), columns.last(held),
                reinterpret_cast<float*>(columns[held + carried]),
                reinterpret_cast<float*>(columns[held + carried + 1])};
  for (int64_t row = 0; row < options_.rows; ++row) {
    for (int64_t tick = 0; tick < ticks; ++tick) Step(chunk, row, tick, output);
  }
  TensorMap result;
  for (const auto& [name, tensor] : buffers_) result.Set(name, tensor.Slice(0, output.count));
  return result;
}

void TrajectoryWriter::Step(const Chunk& chunk, int64_t row, int64_t tick, Output& output) {
  const int64_t element = tick * options_.rows + row;
  uint8_t& status = status_.data<uint8_t>()[static_cast<size_t>(row)];
  int64_t* ring = ring_.data<int64_t>().data() + row * 2;
  const uint8_t type = chunk.type[element];
  if (type == kFirst) {
    while (ring[1] > 0) EmitOldest(row, output);
    if (frames_ && status != kNothing) {
      int64_t frame;
      std::memcpy(&frame, Current(row), sizeof(frame));
      unneeded_.push_back(frame);
    }
    SetCurrent(row, element);
    status = kOpen;
    return;
  }
  if (type == kLast && status != kOpen) return;  // the agent is not there
  WEFT_CHECK_EQ(static_cast<int>(status), static_cast<int>(kOpen))
      << "row " << row << ", tick " << tick << ": an episode begins with a step of type first";
  const float reward = chunk.reward[element], discount = chunk.discount[element];
  if (!std::isfinite(reward) || !std::isfinite(discount)) {
    throw Error(ErrorCode::kDiverged,
                "row " + std::to_string(row) + ", tick " + std::to_string(tick) + ": reward " +
                    std::to_string(reward) + ", discount " + std::to_string(discount));
  }
  ++steps_;

  const int64_t n = options_.n_step;
  double* sums = sums_.data<double>().data() + row * n * 2;
  const int64_t newest = (ring[0] + ring[1]) % n;
  std::byte* entry = Entry(row, newest);
  std::memcpy(entry, Current(row), held_.bytes());
  carried_.Pack(carried_columns_, element, entry + held_.bytes());
  sums[newest * 2] = 0;
  sums[newest * 2 + 1] = 1;
  ++ring[1];
  for (int64_t i = 0; i < ring[1]; ++i) {
    double* sum = sums + (ring[0] + i) % n * 2;
    sum[0] += sum[1] * reward;
    sum[1] *= options_.gamma * discount;
  }
  SetCurrent(row, element);
  if (ring[1] == n) EmitOldest(row, output);
  if (type != kLast) return;
  while (ring[1] > 0) EmitOldest(row, output);
  status = kEnded;
}

void TrajectoryWriter::SetCurrent(int64_t row, int64_t element) {
  if (!frames_) {
    observation_.Pack(observation_columns_, element, Current(row));
    return;
  }
  const int64_t frame = frames_->Append(observation_columns_, element);
  std::memcpy(Current(row), &frame, sizeof(frame));
}

void TrajectoryWriter::EmitOldest(int64_t row, Output& output) {
  int64_t* ring = ring_.data<int64_t>().data() + row * 2;
  const std::byte* entry = Entry(row, ring[0]);
  const double* sum = sums_.data<double>().data() + (row * options_.n_step + ring[0]) * 2;
  held_.Unpack(entry, output.held, output.count);
  carried_.Unpack(entry + held_.bytes(), output.carried, output.count);
  held_.Unpack(Current(row), output.next, output.count);
  output.reward[output.count] = static_cast<float>(sum[0]);
  output.discount[output.count] = static_cast<float>(sum[1]);
  ++output.count;
  if (frames_) {
    int64_t frame;
    std::memcpy(&frame, entry, sizeof(frame));
    unneeded_.push_back(frame);
  }
  ring[0] = (ring[0] + 1) % options_.n_step;
  --ring[1];
}

TensorMap TrajectoryWriter::Save() const {
  TensorMap state;
  state.Set("current", current_.Clone());
  state.Set("status", status_.Clone());
  state.Set("window", window_.Clone());
  state.Set("sums", sums_.Clone());
  state.Set("ring", ring_.Clone());
  state.Set("unneeded", Tensor::From<int64_t>({static_cast<int64_t>(unneeded_.size())}, unneeded_));
  state.Set("steps", Tensor::Scalar(static_cast<double>(steps_), DType::kInt64));
  return state;
}

void TrajectoryWriter::Load(const TensorMap& state) {
  for (const auto& [name, tensor] : {std::pair<const char*, Tensor*>{"current", &current_},
                                     {"status", &status_},
                                     {"window", &window_},
                                     {"sums", &sums_},
                                     {"ring", &ring_}}) {
    tensor->CopyFrom(SavedTensor(state, name, tensor->shape(), tensor->dtype()));
  }
  const Tensor unneeded =
      SavedTensor(state, "unneeded", {state.At("unneeded").elements()}, DType::kInt64);
  unneeded_.assign(unneeded.data<int64_t>().begin(), unneeded.data<int64_t>().end());
  steps_ = SavedTensor(state, "steps", {}, DType::kInt64).data<int64_t>()[0];
}

}  // namespace weft
