#include "environments/python/python_environment.h"

#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "base/check.h"
#include "environments/python/python_batch.h"

namespace weft {
namespace {

struct PythonArguments : Config {
  void Fields(FieldVisitor& v) override {
    v.Field("workers", workers, "Python processes that share the rows; 0: one per core",
            Range::Between(0, 1024));
    v.Field("timeout", timeout, "seconds after which a worker that does not answer counts as hung",
            Range::Positive());
    v.Choice("preset", preset, {"none", "atari"},
             "atari: no-op starts, frames in fours, grey pictures of 84 x 84");
    v.Field("vector", vector, "the target makes Gymnasium vector environments, from num_envs");
    v.Field("nominal_bounds", nominal_bounds,
            "real observations may leave the bounds that their space declares");
  }
  void Check() const override {
    if (vector && preset != "none")
      throw ConfigProblem("preset", "is for environments one by one, not for vectors");
  }
  int64_t workers = 0;
  double timeout = 60;
  std::string preset = "none";
  bool vector = false, nominal_bounds = false;
};

const EnvironmentSpec& SpecOf(const PythonTarget& target) {
  static auto& mutex = *new std::mutex;
  const std::scoped_lock lock(mutex);
  static auto& specs =
      *new std::map<std::tuple<std::string, std::string, bool, int64_t>, EnvironmentSpec>;
  const auto key = std::tuple(target.name, target.preset, target.vector, target.time_limit);
  const auto found = specs.find(key);
  if (found != specs.end()) return found->second;
  return specs.emplace(key, PythonWorker(target, 1).Open()).first->second;
}

const PythonArguments& Cast(const Config& config) {
  const auto* arguments = dynamic_cast<const PythonArguments*>(&config);
  WEFT_CHECK(arguments != nullptr) << "these are the arguments of another environment";
  return *arguments;
}

std::unique_ptr<BatchEnvironment> MakeBatch(const std::string& name,
                                            const PythonArguments& arguments,
                                            const BatchOptions& options) {
  const PythonTarget target{.name = name,
                            .preset = arguments.preset,
                            .training = options.purpose != Purpose::kEvaluation,
                            .vector = arguments.vector,
                            .time_limit = options.time_limit,
                            .timeout = arguments.timeout};
  EnvironmentSpec spec = SpecOf(target);
  for (Leaf& leaf : spec.observation) leaf.nominal = arguments.nominal_bounds;
  return std::make_unique<PythonBatch>(target, arguments.workers, spec, options);
}

}  // namespace

EnvironmentEntry PythonEnvironment(const std::string& id) {
  const std::string target = id.substr(sizeof(kPythonPrefix) - 1);
  return {.summary = "an environment of Python",
          .make_arguments = [] { return std::make_unique<PythonArguments>(); },
          .copy_arguments =
              [](const Config& config) { return std::make_unique<PythonArguments>(Cast(config)); },
          .make = {},
          .make_batch =
              [target](const Config& config, const BatchOptions& options) {
                return MakeBatch(target, Cast(config), options);
              }};
}

namespace {
[[maybe_unused]] const bool kRegistered = EnvironmentSchemes().Add("python", PythonEnvironment);
}

}  // namespace weft
