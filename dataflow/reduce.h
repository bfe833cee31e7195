// Sums over the replicas of one fragment. The group sits in the main process (root) and adds the
// replicas' tensors in replica order, whatever the order they come in and wherever they run; in
// another process its stand-in (leaf) hands contributions on and brings the sum back.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "dataflow/control.h"
#include "tensor/tensor.h"

namespace weft {

class ReduceGroup {
 public:
  // Receives what must travel: in a leaf the contribution of a replica, in the root the sum
  // (replica -1).
  using Carrier = std::function<void(int replica, std::span<const Tensor>)>;

  // local[i]: replica i runs in this process. carrier may be null in the root when all are local.
  ReduceGroup(std::string fragment, std::vector<bool> local, bool root, Control* control,
              Carrier carrier);

  // A local replica calls from inside its step, then waits until Waiting is false; bell is rung
  // then. tensors stay where they are until then and receive the sum.
  void Contribute(int replica, std::span<Tensor> tensors, Bell* bell);
  bool Waiting(int replica) const {
    return seats_[replica].waiting.load(std::memory_order_acquire);
  }

  // Another replica waits in a call to which this one has not come yet. A leaf learns it through
  // SetWanted.
  bool Wants(int replica) const;
  void SetWanted(bool wanted);

  // Root: some replica waits in a call.
  bool Pending() const;

  // Root: the contribution of a replica elsewhere. Leaf: the sum. Called by the thread that talks
  // to processes.
  void TakeRemote(int replica, std::vector<Tensor> tensors);
  void TakeSum(std::span<const Tensor> sum);

  // "learner[0], learner[2]": the replicas that a pending call waits for.
  std::string Missing() const;

 private:
  struct Seat {
    bool local = false;
    bool present = false;  // has contributed to the pending call
    std::span<Tensor> tensors;
    std::vector<Tensor> remote;  // owns what tensors shows when the replica is elsewhere
    Bell* bell = nullptr;
    std::atomic<bool> waiting{false};
  };
  void Arrived();  // with mutex_ held
  void SumInPlace();
  void LetGo(Seat& seat);

  const std::string fragment_;
  const bool root_;
  Control* const control_;
  const Carrier carrier_;
  mutable std::mutex mutex_;  // guards all below but Seat::waiting
  std::vector<Seat> seats_;
  int present_ = 0;
  bool wanted_ = false;  // leaf only
};

}  // namespace weft
