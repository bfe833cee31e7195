// weft export: the policy of a run as an ONNX file that other programs run.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/version.h"
#include "nn/onnx.h"
#include "program/commands.h"
#include "program/policy.h"

namespace weft {

int Export(const std::string& run, const std::string& file, bool json) {
  if (!file.ends_with(".onnx")) {
    throw Error(ErrorCode::kConfig, "the file to write must end in .onnx, not " + file);
  }
  Policy policy = Policy::Load(run);
  OnnxGraph graph("policy");
  policy.agent().Export(graph);
  graph.Metadata("producer", std::string("weft ") + kVersion);
  graph.Metadata("algorithm", policy.algorithm().algorithm);
  graph.Metadata("environment", policy.algorithm().environment.id);
  graph.Metadata("steps", std::to_string(policy.steps()));
  const std::string bytes = graph.ToBytes();
  WriteFileAtomic(file, bytes);
  if (json) {
    fmt::print(
        "{}\n",
        nlohmann::ordered_json{{"file", file}, {"bytes", bytes.size()}, {"steps", policy.steps()}}
            .dump());
  } else {
    fmt::print("{}: {} of {}, trained for {} steps; observations in, \"action\" out\n", file,
               policy.algorithm().algorithm, policy.algorithm().environment.id, policy.steps());
  }
  return 0;
}

}  // namespace weft
