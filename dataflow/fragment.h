// A fragment: a piece of a program with ports. It is stepped by whatever runs it (one thread for
// all, a thread each, a process each) and never knows which. A Step reads what Needs named, writes
// outputs, and returns; it never blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataflow/message.h"
#include "tensor/context.h"

namespace weft {

// A set of input ports, as bits.
class PortSet {
 public:
  PortSet() = default;
  PortSet(std::initializer_list<int> inputs) {
    for (const int input : inputs) bits_ |= uint32_t{1} << input;
  }
  bool Has(int input) const { return (bits_ >> input) & 1; }
  uint32_t bits() const { return bits_; }
  bool operator==(const PortSet&) const = default;

 private:
  uint32_t bits_ = 0;
};

// A fragment's view of its edges while it starts or steps. Inputs and outputs are numbered as in
// its PortList.
class Ports {
 public:
  virtual ~Ports() = default;
  // The oldest unread message of an input that Needs named (with max_lag: the newest). Reading
  // another port, or a port twice in a step, throws. An optional input that is not connected gives
  // an empty message.
  virtual Message Read(int input) = 0;
  // Never blocks: a step is only run when every connected output has room for one message more.
  // Writing more than there is room for throws; an output that is not connected drops the message.
  virtual void Write(int output, Message message) = 0;
  virtual bool Connected(int output) const = 0;

  // Sums tensors over all replicas of this fragment joined by a Reduce edge, in replica order and
  // in place, so that every replica gets the same bits; the only call that waits inside a step.
  // Nothing happens when there is one replica. All replicas make the same sequence of calls with
  // the same shapes, and call Stop, if they do, in the same step.
  virtual void AllReduce(std::span<Tensor> tensors) = 0;

  virtual void Log(std::string_view name,
                   double value) = 0;    // a metric; the runtime adds fragment, replica and time
  virtual void RequestCheckpoint() = 0;  // a cut is made soon after this step
  virtual void Stop(
      std::string_view reason) = 0;  // ends the run after this step; the first reason is kept
};

class Fragment {
 public:
  virtual ~Fragment() = default;
  virtual void Start(Ports& ports) {
    (void)ports;
  }                                   // may write first messages (primes cycles); not run on resume
  virtual PortSet Needs() const = 0;  // the inputs that the next Step reads
  virtual void Step(Ports& ports) = 0;
  // What a step that is going on is busy with, for the report of a stall; "": no more than that.
  // Called on any thread, at any time.
  virtual std::string Activity() const { return ""; }
  // Everything that the next Step depends on. Load is called instead of Start.
  virtual TensorMap Save() const { return {}; }
  virtual void Load(const TensorMap& state) { (void)state; }
};

struct Port {
  const char* name;
  bool optional = false;  // may stay unconnected
  bool primed = false;    // outputs only: Start writes the first message
  bool late =
      false;  // inputs only: the first steps do without it, which breaks a cycle as priming does
};

struct PortList {
  std::vector<Port> inputs, outputs;
};

// Which of the replicas an object is, and what it may use.
struct Replica {
  int index = 0;
  int count = 1;
  int incarnation = 0;  // how often its process was started again after a crash: part of the key of
                        // its randomness
  Context context;      // the thread share of the runner that will step it
};

// Graphs hold factories, not objects: every process builds the same graph and makes only the
// replicas placed on it.
struct FragmentFactory {
  PortList ports;
  std::function<std::unique_ptr<Fragment>(const Replica&)> make;
};

}  // namespace weft
