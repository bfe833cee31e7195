#include "dataflow/reduce.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace weft {
namespace {

// Every replica's elements become their sum in replica order. Block by block, so that a block stays
// in the cache.
template <class T>
void SumElements(std::span<T* const> replicas, size_t count) {
  constexpr size_t kBlock = 4096;
  T sum[kBlock];
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t size = std::min(kBlock, count - begin);
    std::memcpy(sum, replicas[0] + begin, size * sizeof(T));
    for (size_t r = 1; r < replicas.size(); ++r) {
      const T* values = replicas[r] + begin;
      for (size_t i = 0; i < size; ++i) sum[i] += values[i];
    }
    for (T* values : replicas) std::memcpy(values + begin, sum, size * sizeof(T));
  }
}

template <class T>
void SumTensors(std::span<Tensor* const> replicas) {
  std::vector<T*> elements;
  for (Tensor* tensor : replicas) elements.push_back(tensor->data<T>().data());
  SumElements<T>(elements, replicas[0]->data<T>().size());
}

}  // namespace

ReduceGroup::ReduceGroup(std::string fragment, std::vector<bool> local, bool root, Control* control,
                         Carrier carrier)
    : fragment_(std::move(fragment)),
      root_(root),
      control_(control),
      carrier_(std::move(carrier)),
      seats_(local.size()) {
  for (size_t i = 0; i < local.size(); ++i) seats_[i].local = local[i];
}

void ReduceGroup::Contribute(int replica, std::span<Tensor> tensors, Bell* bell) {
  const std::lock_guard lock(mutex_);
  Seat& seat = seats_[replica];
  seat.tensors = tensors;
  seat.bell = bell;
  seat.present = true;
  seat.waiting.store(true, std::memory_order_release);
  if (root_) {
    Arrived();
  } else {
    carrier_(replica, tensors);
  }
}

void ReduceGroup::TakeRemote(int replica, std::vector<Tensor> tensors) {
  const std::lock_guard lock(mutex_);
  WEFT_CHECK(replica >= 0 && replica < static_cast<int>(seats_.size()) && !seats_[replica].local &&
             !seats_[replica].present)
      << "a contribution of " << fragment_ << "[" << replica << "] that nobody waits for";
  Seat& seat = seats_[replica];
  seat.remote = std::move(tensors);
  seat.tensors = seat.remote;
  seat.present = true;
  Arrived();
}

void ReduceGroup::Arrived() {
  if (++present_ == 1) control_->PendingBegan();
  if (present_ < static_cast<int>(seats_.size())) return;
  SumInPlace();
  if (carrier_) carrier_(-1, seats_[0].tensors);
  present_ = 0;
  control_
      ->PendingEnded();  // first, so that no replica goes on while the call still counts as pending
  for (Seat& seat : seats_) LetGo(seat);
}

void ReduceGroup::LetGo(Seat& seat) {
  seat.present = false;
  seat.remote.clear();
  seat.tensors = {};
  if (!seat.local) return;
  seat.waiting.store(false, std::memory_order_release);
  if (seat.bell != nullptr) seat.bell->Ring();
}

void ReduceGroup::TakeSum(std::span<const Tensor> sum) {
  const std::lock_guard lock(mutex_);
  wanted_ = false;
  for (size_t r = 0; r < seats_.size(); ++r) {
    Seat& seat = seats_[r];
    if (!seat.present) continue;
    WEFT_CHECK_EQ(sum.size(), seat.tensors.size()) << "tensors in the sum over " << fragment_;
    for (size_t i = 0; i < sum.size(); ++i) seat.tensors[i].CopyFrom(sum[i]);
    LetGo(seat);
  }
}

void ReduceGroup::SumInPlace() {
  std::vector<Tensor*> replicas(seats_.size());
  for (size_t i = 0; i < seats_[0].tensors.size(); ++i) {
    const Tensor& first = seats_[0].tensors[i];
    for (size_t r = 0; r < seats_.size(); ++r) {
      WEFT_CHECK_EQ(seats_[r].tensors.size(), seats_[0].tensors.size())
          << "AllReduce: tensors given by " << fragment_ << "[" << r << "] and " << fragment_
          << "[0]";
      replicas[r] = &seats_[r].tensors[i];
      WEFT_CHECK(replicas[r]->shape() == first.shape() && replicas[r]->dtype() == first.dtype() &&
                 replicas[r]->layout() == first.layout())
          << "AllReduce: tensor " << i << " is " << first.dtype() << " " << first.shape() << " in "
          << fragment_ << "[0] and " << replicas[r]->dtype() << " " << replicas[r]->shape()
          << " in " << fragment_ << "[" << r << "]";
    }
    switch (first.dtype()) {
      case DType::kFloat32:
        SumTensors<float>(replicas);
        break;
      case DType::kFloat64:
        SumTensors<double>(replicas);
        break;
      case DType::kInt32:
        SumTensors<int32_t>(replicas);
        break;
      case DType::kInt64:
        SumTensors<int64_t>(replicas);
        break;
      default:
        throw Error(ErrorCode::kInvalidArgument, std::string("AllReduce cannot sum ") +
                                                     Name(first.dtype()) + " of " + fragment_);
    }
    for (Tensor* tensor : replicas) tensor->MarkWritten();
  }
}

bool ReduceGroup::Wants(int replica) const {
  const std::lock_guard lock(mutex_);
  return (root_ ? present_ > 0 : wanted_) && !seats_[replica].present;
}

bool ReduceGroup::Pending() const {
  const std::lock_guard lock(mutex_);
  return present_ > 0;
}

void ReduceGroup::SetWanted(bool wanted) {
  const std::lock_guard lock(mutex_);
  wanted_ = wanted;
}

std::string ReduceGroup::Missing() const {
  const std::lock_guard lock(mutex_);
  std::string missing;
  for (size_t r = 0; r < seats_.size(); ++r) {
    if (seats_[r].present || (!root_ && !seats_[r].local)) continue;
    missing += (missing.empty() ? "" : ", ") + fragment_ + "[" + std::to_string(r) + "]";
  }
  return missing.empty() ? "the main process" : missing;
}

}  // namespace weft
