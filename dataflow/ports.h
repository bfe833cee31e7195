// A replica's side of its links: what Read, Write and AllReduce do while it steps, and whether it
// can step at all.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataflow/fragment.h"
#include "dataflow/link.h"

namespace weft {

// What a replica's ports need of whoever runs it.
class PortsOwner {
 public:
  virtual ~PortsOwner() = default;
  virtual void AllReduce(std::span<Tensor> tensors) = 0;
  virtual void Log(std::string_view name, double value) = 0;
  virtual void RequestCheckpoint() = 0;
  virtual void Stop(std::string_view reason) = 0;
};

class ReplicaPorts final : public Ports {
 public:
  struct Input {
    std::string name;                       // "learner.rollout"
    std::string edge = {};                  // "" when not connected
    std::vector<std::string> writers = {};  // label of each link's writer
    std::vector<Link*> links = {};          // by writer
    bool merge = false;                     // any one of links, else one of each
    int dim = 0;
    bool mixed_versions = false;  // the writers' versions may differ
  };
  struct OutputEdge {
    std::string edge;
    std::vector<std::string> readers;
    std::vector<Link*> links;  // by reader
    int split_dim = -1;        // >= 0: each link gets its block of rows
    std::vector<std::atomic<uint64_t>*>
        arrivals;  // Merge: the reader's arrival counter, else empty
  };
  struct Output {
    std::string name;
    bool primed = false;
    std::vector<OutputEdge> edges;
  };

  ReplicaPorts(std::vector<Input> inputs, std::vector<Output> outputs, PortsOwner* owner);

  Message Read(int input) override;
  void Write(int output, Message message) override;
  bool Connected(int output) const override;
  void AllReduce(std::span<Tensor> tensors) override { owner_->AllReduce(tensors); }
  void Log(std::string_view name, double value) override { owner_->Log(name, value); }
  void RequestCheckpoint() override { owner_->RequestCheckpoint(); }
  void Stop(std::string_view reason) override { owner_->Stop(reason); }

  // Throws when needs names an input that does not exist.
  void CheckNeeds(PortSet needs) const;
  bool Ready(uint32_t needs) const {
    for (uint32_t bits = needs & connected_inputs_; bits != 0; bits &= bits - 1) {
      if (!Available(inputs_[static_cast<size_t>(__builtin_ctz(bits))])) return false;
    }
    for (const Link* link : output_links_) {
      if (!link->HasRoom()) return false;
    }
    return true;
  }
  // Opens the inputs named by needs for one read each.
  void BeginStep(uint32_t needs) { readable_ = needs; }
  // After Start: throws naming an output that is declared primed and was not written.
  void CheckPrimed() const;
  // Restarts the cut links (link.h).
  void RestartCutLinks();
  // Why Ready is false: "waits for learner.rollout from actor[1] (0 unread)"; "" when it is true.
  // Any thread.
  std::string WaitsFor(uint32_t needs) const;

 private:
  static bool Available(const Input& input);

  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  PortsOwner* const owner_;
  uint32_t connected_inputs_ = 0;
  std::vector<Link*> output_links_;
  uint32_t readable_ = 0;
  uint64_t writes_;
  std::vector<Message> parts_;  // of a concatenation, kept for its memory
};

}  // namespace weft
