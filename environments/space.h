// Action spaces, as Gymnasium names them; Dict and Tuple observations are flattened to named
// leaves.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tensor/tensor.h"

namespace weft {

class Rng;

struct Box {                      // real vector [size]; each bound may be infinite
  std::vector<double> low, high;  // same size
};
struct Discrete {  // start .. start + n - 1
  int64_t n = 0, start = 0;
};
struct MultiDiscrete {
  std::vector<int64_t> n, start;  // start is empty or as long as n
};
struct MultiBinary {
  int64_t n = 0;
};

// What policies write is the space's canonical form: Box f32 [A] in the space's own units, Discrete
// i64 [] in [0, n) (the adapter adds start), MultiDiscrete i64 [A] from 0, MultiBinary i64 [A] of 0
// and 1.
class Space {
 public:
  Space() = default;
  Space(Box box) : kind_(std::move(box)) {}                // NOLINT(google-explicit-constructor)
  Space(Discrete discrete) : kind_(discrete) {}            // NOLINT(google-explicit-constructor)
  Space(MultiDiscrete multi) : kind_(std::move(multi)) {}  // NOLINT(google-explicit-constructor)
  Space(MultiBinary binary) : kind_(binary) {}             // NOLINT(google-explicit-constructor)

  template <class T>
  const T* As() const {
    return std::get_if<T>(&kind_);
  }
  Shape shape() const;           // of one action: [] or [A]
  DType dtype() const;           // f32 for Box, i64 for the rest
  bool bounded() const;          // false for a Box with an infinite bound
  std::string ToString() const;  // "Box(-1, 1, [6])", "Discrete(2)"

  // Writes one random action in canonical form to `action`, a float* for Box and an int64_t*
  // otherwise: uniform, as Gymnasium's sample(); an element without bounds is standard normal, one
  // with a single bound is exponential from it.
  void Sample(Rng& rng, void* action) const;
  // Of a discrete space: uniform over the actions that the mask allows, of which there are some.
  // mask: n values of 0 or 1, of a MultiDiscrete those of its elements one after the other.
  void Sample(Rng& rng, const uint8_t* mask, void* action) const;

 private:
  std::variant<Box, Discrete, MultiDiscrete, MultiBinary> kind_;
};

// A named part of an observation.
struct Leaf {
  // "observation" when there is only one. Reserved: "action_mask", u8, 1 for what is legal of a
  // Discrete [n] or MultiDiscrete [sum of n] action. It must allow something but at the end of an
  // episode, where batches allow what nothing is left of. "state", floating: what critics may see
  // besides, and policies never do.
  std::string name;
  Shape shape;                              // of one row
  DType dtype = DType::kFloat32;            // as the environment writes it: f32, f64, u8, i64
  std::vector<double> low = {}, high = {};  // one value for all elements, or one each
  // The bounds are what the original declares and does not quite keep: they are not checked.
  bool nominal = false;
  // What its first elements are, for people; may be empty.
  std::vector<std::string> elements = {};
};

// One of several agents: what of the rows, which are as wide as the widest agent needs, is its own.
struct AgentSpec {
  std::string name;
  int64_t observation_size = 0;  // leading elements of the first leaf; zeros follow
  Space action;  // Discrete: the first n of the row's actions; Box: the first elements of them
};

// How an environment shows itself in pictures (Environment::Render).
struct Appearance {
  int64_t width = 0, height = 0;  // of its usual picture, in pixels; 0: it draws none
  double frames_per_second = 30;  // steps per second of its own time
};

struct EnvironmentSpec {
  std::string id;
  std::vector<Leaf> observation;
  Space action;
  std::vector<AgentSpec> agents = {};  // of a multi_agent.h environment; empty: there is but one
  int64_t time_limit = 0;              // steps until truncation; 0: none
  double reward_threshold = 0;         // Gymnasium's, for reports; 0: none
  std::vector<std::string> info =
      {};  // names of the values that Environment::Info writes, for verify and reports
  Appearance appearance = {};

  // Rows that one environment takes in a batch.
  int64_t agent_count() const { return agents.empty() ? 1 : std::ssize(agents); }
  bool Has(std::string_view name) const;  // a leaf
  // Throws Error(kInvalidArgument) naming the leaves that there are.
  const Leaf& leaf(std::string_view name) const;
};

}  // namespace weft
