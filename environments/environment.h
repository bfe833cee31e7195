// One environment, in dm_env's semantics: a step is kFirst, kMid or kLast, and the discount says
// whether the end is a terminal state (0) or a truncation (1), so the two cannot be confused.
// Implement this to add an environment, and register the class with WEFT_REGISTER_ENVIRONMENT;
// conformance tests find it through the registry.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/archive.h"
#include "base/config.h"
#include "base/random.h"
#include "base/registry.h"
#include "environments/space.h"

namespace weft {

enum class StepType : uint8_t { kFirst, kMid, kLast };

// Where one row of the observation is written: one pointer per leaf of the spec, in order and in
// the leaf's dtype.
class ObservationRow {
 public:
  explicit ObservationRow(std::byte* const* leaves) : leaves_(leaves) {}
  template <class T>
  T* Leaf(size_t index = 0) const {
    return reinterpret_cast<T*>(leaves_[index]);
  }

 private:
  std::byte* const* leaves_;
};

// One row of a time step, written in place: the observation leaves by hand, the rest by one of
// First and Next.
struct StepRow {
  ObservationRow observation;
  double& reward;
  double& discount;
  StepType& type;

  void First() const {
    reward = 0;
    discount = 1;
    type = StepType::kFirst;
  }
  // terminal: the task ended here, and what follows is worth 0.
  void Next(double step_reward, bool terminal) const {
    reward = step_reward;
    discount = terminal ? 0 : 1;
    type = terminal ? StepType::kLast : StepType::kMid;
  }
};

// One action in canonical form (space.h): Box f32 or f64 values, the others i64.
class ActionRow {
 public:
  ActionRow(const void* data, DType dtype) : data_(data), dtype_(dtype) {}
  int64_t index(int64_t i = 0) const { return static_cast<const int64_t*>(data_)[i]; }
  double real(int64_t i = 0) const {
    return dtype_ == DType::kFloat32 ? static_cast<double>(static_cast<const float*>(data_)[i])
                                     : static_cast<const double*>(data_)[i];
  }
  DType dtype() const { return dtype_; }

 private:
  const void* data_;
  DType dtype_;
};

class Canvas;  // drawing/canvas.h

// One instance owns its state; all its randomness comes from the Rng handed in. Time limits,
// autoreset and wrappers are not its business: it writes kLast only when the task itself ends.
class Environment {
 public:
  virtual ~Environment() = default;
  // Rough cost of one step on one core. A class that knows better hides this constant with its own:
  // the batch gives each thread rows worth some tens of microseconds at a time, and steps cheap
  // batches inline.
  static constexpr double kStepNanoseconds = 1000;

  virtual const EnvironmentSpec& spec() const = 0;

  // Starts an episode and writes kFirst.
  virtual void Reset(Rng& rng, StepRow out) = 0;
  // Writes kMid, or kLast with discount 0 (terminal) or 1 (truncated). Never called after kLast
  // before a Reset.
  virtual void Step(ActionRow action, Rng& rng, StepRow out) = 0;

  // The physical state as numbers, for verify, cloning and planning; SetState then Observe gives
  // the reset observation.
  virtual void GetState(std::vector<double>& state) const = 0;
  virtual void SetState(std::span<const double> state) = 0;
  virtual void Observe(ObservationRow out) = 0;
  // spec().info.size() values of the last step (Gymnasium's info dict).
  virtual void Info(std::span<double> values) const { (void)values; }

  // Shows the state of now, for `weft play`, videos and observations of pixels. An environment
  // whose spec().appearance has a size draws all of the canvas, of whatever size that is; the
  // others throw Error(kConfig), as this does.
  virtual void Render(Canvas& canvas) const;
  // The state of now as lines for a terminal; "" where there is no such form.
  virtual std::string Text() const { return ""; }

  // Exact state, for resume: whatever Step's result depends on, warm starts included. As they are,
  // they save what GetState gives; override both when Step depends on more.
  virtual void Save(Writer& out) const;
  virtual void Load(Reader& in);
};

class BatchEnvironment;
class MultiAgentEnvironment;
struct BatchOptions;

struct EnvironmentNotes {
  std::vector<std::string> facts;     // what people want to know besides the spec
  std::vector<std::string> warnings;  // what looks like a mistake
};

// Registry entry. make_arguments makes the config of the environment's keyword arguments
// (Gymnasium's names) with their defaults; copy_arguments copies one; make or make_multi_agent (not
// both; neither for what lives elsewhere) builds one instance; make_batch builds a batch whose loop
// knows the concrete class, so stepping a row costs no virtual call. A config of another
// environment's arguments is refused with Error(kInvalidArgument).
struct EnvironmentEntry {
  std::string summary;  // one line for `weft list environments`
  std::function<std::unique_ptr<Config>()> make_arguments;
  std::function<std::unique_ptr<Config>(const Config& arguments)> copy_arguments;
  std::function<std::unique_ptr<Environment>(const Config& arguments)> make;
  std::function<std::unique_ptr<MultiAgentEnvironment>(const Config& arguments)> make_multi_agent =
      {};
  std::function<std::unique_ptr<BatchEnvironment>(const Config& arguments,
                                                  const BatchOptions& options)>
      make_batch;
  std::function<EnvironmentNotes(const Config& arguments)> notes = {};  // may be empty

  // Of an instance with these arguments.
  EnvironmentSpec Spec(const Config& arguments) const;
};
Registry<EnvironmentEntry>& Environments();

// Environments that are described elsewhere than in C++ are named SCHEME:WHERE, such as
// python:MODULE:NAME. A scheme makes the entry of such an id.
using EnvironmentScheme = EnvironmentEntry (*)(const std::string& id);
Registry<EnvironmentScheme>& EnvironmentSchemes();

// The entry of a registered id or of a scheme's. Throws Error(kConfig) when there is none.
EnvironmentEntry FindEnvironment(const std::string& id);

// Keyword arguments of an environment that has none.
struct NoArguments : Config {
  void Fields(FieldVisitor&) override {}
};

}  // namespace weft
