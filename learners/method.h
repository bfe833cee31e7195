// A method of training is a config that can build a graph. This header holds what all share,
// whatever is trained: the keys of a run, and the registry that names methods.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/registry.h"
#include "dataflow/fragment_graph.h"
#include "tensor/tensor_map.h"

namespace weft {

struct CheckpointConfig : Config {
  int64_t every = 0;  // steps; 0: twenty times over the run
  double min_seconds = 10;
  int64_t keep = 3;

  void Fields(FieldVisitor& v) override;
};

class Method : public Config {
 public:
  std::string algorithm;  // its name in the registry
  uint64_t seed = 1;
  int64_t total_steps = 100'000;
  std::string placement = "serial";
  int64_t processes = 2;
  std::string device = "cpu";
  int64_t threads = 0;
  std::string run;
  std::string published;
  CheckpointConfig checkpoint;
  // The folder of the run, which no config names: "" until there is one.
  std::string run_folder;

  // The keys above but algorithm, whose choices the kind of method knows.
  void Fields(FieldVisitor& v) override;

  // Adds the method's fragments and edges; one is called "learner". The graph keeps a reference to
  // this config.
  virtual void Build(FragmentGraph& graph) const = 0;
  // What is trained or trained on, for titles and names of folders.
  virtual std::string Subject() const = 0;

  // Threads of this machine that the run may use.
  int ThreadBudget() const;
  int64_t CheckpointEvery() const;
};

// Methods that train language models. Those that act in environments are algorithms
// (algorithms/algorithm.h).
class LanguageMethod : public Method {
 public:
  void Fields(FieldVisitor& v) override;

  struct Figure {
    std::string name;
    double value;
  };
  // The weights that a run leaves, of the learner's state (Learner::Save).
  virtual TensorMap Result(const TensorMap& learner) const { return learner.Extract("policy"); }
  // After the last step: what those weights are worth, and what they leave in the run's folder.
  virtual std::vector<Figure> Finish(const TensorMap& policy, const std::string& folder) const = 0;
};

struct LanguageMethodEntry {
  std::string summary;  // one line for `weft list algorithms`
  std::function<std::unique_ptr<LanguageMethod>()> make;
};
Registry<LanguageMethodEntry>& LanguageMethods();

#define WEFT_REGISTER_LANGUAGE_METHOD(Class, name, summary) \
  [[maybe_unused]] static const bool registered_##Class =   \
      ::weft::LanguageMethods().Add(name, {summary, [] { return std::make_unique<Class>(); }})

}  // namespace weft
