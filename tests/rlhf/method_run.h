// A run of a language method inside a test.
#pragma once

#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "dataflow/runtime.h"
#include "learners/method.h"

namespace weft {

// changes: lines "key: value" that take the place of the same keys of yaml.
inline std::unique_ptr<LanguageMethod> ParseMethod(const std::string& name, const std::string& yaml,
                                                   const std::string& changes = "") {
  ConfigSource source = ConfigSource::Text("algorithm: " + name + "\n" + yaml, "config");
  std::istringstream lines(changes);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(": ");
    source.Override(line.substr(0, colon) + "=" + line.substr(colon + 2));
  }
  auto method = LanguageMethods().At(name).make();
  source.Parse(*method);
  return method;
}

struct MethodRun {
  Cut cut;
  std::map<std::string, std::vector<double>, std::less<>> metrics;
  TensorMap policy() const { return cut.at("learner.0").Extract("policy"); }
};

inline MethodRun RunMethod(const LanguageMethod& method, const std::string& placement = "serial",
                           const Cut* resume = nullptr) {
  FragmentGraph graph;
  method.Build(graph);
  graph.Validate();
  MethodRun run;
  RuntimeOptions options;
  options.on_metric = [&](const MetricEvent& event) {
    run.metrics[std::string(event.name)].push_back(event.value);
  };
  run.cut =
      Run(graph, DistributionPolicies().At(placement)(graph, {.threads = 2}), options, resume).cut;
  return run;
}

}  // namespace weft
