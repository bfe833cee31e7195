#include "environments/vector_environment.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "base/check.h"

namespace weft {
namespace {

bool Over(const TimeStep& step) {
  return std::ranges::all_of(step.type.data<uint8_t>(), [](uint8_t type) {
    return type == static_cast<uint8_t>(StepType::kLast);
  });
}

// Block `index` of `to` becomes all of `from`.
void CopyBlock(const Tensor& from, Tensor& to, size_t index) {
  std::memcpy(to.raw() + index * from.bytes(), from.raw(), from.bytes());
}
void CopyBlock(const TimeStep& from, TimeStep& to, size_t index) {
  for (size_t leaf = 0; leaf < from.observation.size(); ++leaf)
    CopyBlock(from.observation.entry(leaf).second, to.observation.entry(leaf).second, index);
  CopyBlock(from.reward, to.reward, index);
  CopyBlock(from.discount, to.discount, index);
  CopyBlock(from.type, to.type, index);
  CopyBlock(from.episode_id, to.episode_id, index);
}

std::string NameOf(int64_t id) {
  return "environment." + std::to_string(id);
}

}  // namespace

VectorEnvironment::VectorEnvironment(const EnvironmentConfig& config, const VectorOptions& options)
    : autoreset_(options.autoreset) {
  WEFT_CHECK_GE(options.environments, 1) << "environments of " << config.id;
  for (int64_t id = 0; id < options.environments; ++id) {
    auto unit = std::make_unique<Unit>();
    unit->batch = MakeBatchEnvironment(
        config,
        {.first_row = options.first + id, .seed = options.seed, .purpose = options.purpose});
    const Space& action = unit->batch->spec().action;
    unit->action = Tensor::Zeros(action.shape().Prepend(unit->batch->rows()), action.dtype());
    unit->now = unit->batch->MakeTimeStep();
    if (autoreset_ == Autoreset::kSameStep) unit->last = unit->batch->MakeTimeStep();
    units_.push_back(std::move(unit));
  }
  threads_ = std::make_unique<TaskThreads>(options.threads, [this](int64_t id) { Run(id); });
}

VectorEnvironment::~VectorEnvironment() = default;

VectorStep VectorEnvironment::MakeStep(int64_t environments) const {
  const int64_t rows = environments * units_.front()->batch->rows();
  VectorStep step{.now = MakeTimeStep(spec(), rows),
                  .last = {},
                  .ended = std::vector<uint8_t>(static_cast<size_t>(environments))};
  if (autoreset_ == Autoreset::kSameStep) step.last = MakeTimeStep(spec(), rows);
  return step;
}

void VectorEnvironment::Start(std::span<const int64_t> ids, Task task) {
  for (size_t i = 0; i < ids.size(); ++i) {
    WEFT_CHECK(ids[i] >= 0 && ids[i] < environments())
        << "there is no environment " << ids[i] << " of " << environments();
    Unit& unit = *units_[static_cast<size_t>(ids[i])];
    const bool refused = unit.task == Task::kNone && autoreset_ == Autoreset::kDisabled &&
                         task == Task::kStep && unit.over;
    if (unit.task == Task::kNone && !refused) {
      unit.task = task;
      continue;
    }
    const bool under_way = unit.task != Task::kNone;
    for (const int64_t id : ids.first(i)) units_[static_cast<size_t>(id)]->task = Task::kNone;
    throw Error(ErrorCode::kInvalidArgument,
                spec().id + ", environment " + std::to_string(ids[i]) +
                    (under_way ? " is under way: receive its last step first"
                               : ": its episode has ended: reset it first"));
  }
}

void VectorEnvironment::Reset() {
  std::vector<int64_t> ids(units_.size());
  std::iota(ids.begin(), ids.end(), 0);
  Reset(ids);
}

void VectorEnvironment::Reset(std::span<const int64_t> ids) {
  Start(ids, Task::kReset);
  under_way_ += std::ssize(ids);
  threads_->Post(ids);
}

void VectorEnvironment::Send(std::span<const int64_t> ids, const Tensor& action) {
  const Tensor& one = units_.front()->action;
  const int64_t rows = std::ssize(ids) * one.dim(0);
  WEFT_CHECK(action.defined() && action.shape() == one.shape().WithDim(0, rows) &&
             action.dtype() == one.dtype())
      << "the action of " << spec().id << " is " << one.dtype() << " "
      << one.shape().WithDim(0, rows) << ", not " << action.dtype() << " " << action.shape();
  Start(ids, Task::kStep);
  for (size_t i = 0; i < ids.size(); ++i) {
    Tensor& to = units_[static_cast<size_t>(ids[i])]->action;
    std::memcpy(to.raw(), action.raw() + i * to.bytes(), to.bytes());
  }
  under_way_ += std::ssize(ids);
  threads_->Post(ids);
}

void VectorEnvironment::Run(int64_t id) {
  Unit& unit = *units_[static_cast<size_t>(id)];
  try {
    Advance(unit);
  } catch (...) {
    unit.failure = std::current_exception();
  }
  bool wakes;
  {
    const std::scoped_lock lock(mutex_);
    ready_.push_back(id);
    ready_count_ = ready_.size();
    wakes = wanted_ > 0 && ready_.size() >= wanted_;
  }
  if (wakes) changed_.notify_one();
}

std::unique_lock<std::mutex> VectorEnvironment::AwaitReady(size_t count) {
  SpinBriefly([&] { return ready_count_ >= count; });
  std::unique_lock lock(mutex_);
  wanted_ = count;
  changed_.wait(lock, [&] { return ready_.size() >= count; });
  wanted_ = 0;
  return lock;
}

void VectorEnvironment::Advance(Unit& unit) const {
  unit.ended = false;
  if (unit.task == Task::kReset) {
    unit.batch->Reset(unit.now);
  } else {
    unit.batch->Step(unit.action, unit.now);
  }
  unit.over = Over(unit.now);
  if (!unit.over || autoreset_ != Autoreset::kSameStep) return;
  CopyBlock(unit.now, unit.last, 0);
  unit.batch->Step(unit.action, unit.now);  // which the end of the episode makes a reset
  unit.ended = true;
  unit.over = false;
}

void VectorEnvironment::Receive(std::span<int64_t> ids, VectorStep& out) {
  WEFT_CHECK_LE(std::ssize(ids), under_way_) << "environments of " << spec().id << " under way";
  {
    const auto lock = AwaitReady(ids.size());
    std::copy_n(ready_.begin(), ids.size(), ids.begin());
    ready_.erase(ready_.begin(), ready_.begin() + std::ssize(ids));
    ready_count_ = ready_.size();
  }
  under_way_ -= std::ssize(ids);
  std::ranges::sort(ids);
  for (const int64_t id : ids) units_[static_cast<size_t>(id)]->task = Task::kNone;
  const int64_t rows = std::ssize(ids) * units_.front()->batch->rows();
  WEFT_CHECK(out.now.type.shape() == Shape{rows} && out.ended.size() == ids.size())
      << "a step of " << ids.size() << " environments of " << spec().id << " has " << rows
      << " rows";
  for (size_t i = 0; i < ids.size(); ++i) {
    Unit& unit = *units_[static_cast<size_t>(ids[i])];
    if (unit.failure) std::rethrow_exception(std::exchange(unit.failure, nullptr));
    CopyBlock(unit.now, out.now, i);
    out.ended[i] = unit.ended;
    if (unit.ended) CopyBlock(unit.last, out.last, i);
  }
}

TensorMap VectorEnvironment::Save() const {
  WEFT_CHECK_EQ(under_way_, 0) << "environments of " << spec().id << " under way";
  TensorMap state;
  Tensor over = Tensor::Zeros({environments()}, DType::kUInt8);
  for (int64_t id = 0; id < environments(); ++id) {
    const Unit& unit = *units_[static_cast<size_t>(id)];
    state.Merge(NameOf(id), unit.batch->Save());
    over.data<uint8_t>()[static_cast<size_t>(id)] = unit.over;
  }
  state.Set("over", over);
  return state;
}

void VectorEnvironment::Load(const TensorMap& state) {
  {
    const auto lock = AwaitReady(static_cast<size_t>(under_way_));
    ready_.clear();
    ready_count_ = 0;
  }
  under_way_ = 0;
  const Tensor& over = state.At("over");
  if (over.shape() != Shape{environments()}) {
    throw Error(ErrorCode::kCorrupt, "the saved state is that of " +
                                         std::to_string(over.elements()) + " environments, not " +
                                         std::to_string(environments()));
  }
  for (int64_t id = 0; id < environments(); ++id) {
    Unit& unit = *units_[static_cast<size_t>(id)];
    unit.batch->Load(state.Extract(NameOf(id)));
    unit.over = over.data<uint8_t>()[static_cast<size_t>(id)] != 0;
    unit.task = Task::kNone;
    unit.failure = nullptr;
  }
}

}  // namespace weft
