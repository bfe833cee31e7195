// The graph of a run: fragments by name with replica counts, edges with contracts. Pure data and
// factories; it never knows where anything will run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataflow/fragment.h"

namespace weft {

// What an edge does when its two ends have different replica counts.
struct Contract {
  enum class Kind { kRows, kMerge, kBroadcast, kReduce };
  Kind kind = Kind::kRows;
  int dim = 0;  // kRows: the dimension that holds the rows
  int capacity =
      2;  // unread messages a reader may have from each writer (kMerge: from all of them together)
  int max_lag = 0;  // kBroadcast
};

// Equal contiguous row blocks of one logical tensor, in replica order: forwards when counts agree,
// concatenates or splits along dim when one count divides the other (Validate says so otherwise).
// Messages of the writers are matched one by one, so order never depends on timing, and their
// versions must agree (but where Merge or max_lag in the graph or a worker that was started again
// let them differ: then the message has the largest).
Contract Rows(int dim = 0, int capacity = 2);
// Many writers into one reader, in order of arrival: fast and not deterministic. With several
// readers, writer i goes to reader i mod readers.
Contract Merge(int capacity = 16);
// Every message of the writer to every reader. max_lag 0: each reader reads each message
// (lockstep). max_lag > 0: a reader gets the newest and never holds the writer up; it may read one
// message at most max_lag + 1 times, then its step waits for the next. Several writers must be
// joined by Reduce, as they then write the same: R readers are split over W writers in contiguous
// blocks, the pairing that Rows has.
Contract Broadcast(int max_lag = 0);
// Joins the replicas of one fragment for Ports::AllReduce; both ends name the same fragment.
Contract Reduce();

// Where distribution policies tend to put a fragment: workers are many, small and near each other,
// and go to the worker processes, replica i of all of them together; the centre stays in the main
// process.
enum class Role { kCentre, kWorker };

class FragmentGraph {
 public:
  struct Node {
    std::string name;
    int replicas;
    FragmentFactory factory;
    Role role = Role::kCentre;
  };
  struct Edge {
    int from, from_port, to, to_port;  // node and port numbers; ports are -1 for Reduce
    Contract contract;
    std::string name;  // "actor.rollout -> learner.rollout"
  };

  // Throws on a name used twice, a name with a dot, less than one replica, more than 32 inputs.
  void Add(std::string name, int replicas, FragmentFactory factory, Role role = Role::kCentre);
  // from and to are "fragment.port". Throws at once on an unknown fragment or port, naming the
  // nearest.
  void Connect(const std::string& from, const std::string& to, Contract contract);

  // Throws Error(kInvalidArgument) naming the culprit: unconnected required ports, two edges into
  // one input, replica counts that do not divide, cycles in which no output is primed and no input
  // late.
  void Validate() const;

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Edge>& edges() const { return edges_; }
  int NodeIndex(std::string_view name) const;  // -1 when there is none
  bool Reduces(int node) const;                // its replicas are joined by a Reduce edge
  std::string ToDot() const;
  std::string ToText() const;  // one line per edge, for terminals

 private:
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
};

}  // namespace weft
