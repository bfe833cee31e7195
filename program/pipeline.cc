// Several runs in a row, each on what an earlier one left:
//
//   algorithm: pipeline
//   run: things
//   steps:
//     - {name: pretrain, config: configs/rlhf/things/pretrain.yaml}
//     - {name: sft, config: configs/rlhf/things/sft.yaml, set: ["model={pretrain}"]}
//
// Each is an ordinary run, RUN-STEP. Steps that are finished are passed over and one that was
// interrupted is resumed, so the command is started again until all is there.
#include <deque>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

#include "base/config.h"
#include "base/file.h"
#include "base/log.h"
#include "program/commands.h"
#include "program/subprocess.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

struct PipelineStep : Config {
  explicit PipelineStep(std::string step) : name(std::move(step)) {}
  void Fields(FieldVisitor& v) override {
    v.Field("config", config, "the run's config");
    v.Field("set", set, "what it says otherwise, KEY=VALUE; {STEP} is the model that step left");
  }
  void Check() const override {
    if (config.empty()) throw ConfigProblem("config", "is missing");
  }

  const std::string name;
  std::string config;
  std::vector<std::string> set;
};

struct Pipeline : Config {
  void Fields(FieldVisitor& v) override {
    v.Choice("algorithm", algorithm, {"pipeline"}, "what this config is");
    v.Field("run", run, "the first part of the runs' names");
    v.Sections(
        "steps",
        {.clear = [this] { steps.clear(); },
         .make = [this](const std::string& name) -> Config& { return steps.emplace_back(name); },
         .current =
             [this] {
               std::vector<std::pair<std::string, Config*>> sections;
               for (PipelineStep& step : steps) sections.emplace_back(step.name, &step);
               return sections;
             }},
        "runs in their order");
  }
  void Check() const override {
    if (run.empty()) throw ConfigProblem("run", "is missing");
    if (steps.empty()) throw ConfigProblem("steps", "there is none");
    std::set<std::string> names;
    for (const PipelineStep& step : steps) {
      if (!names.insert(step.name).second) {
        throw ConfigProblem("steps", "two are called " + step.name);
      }
      for (const std::string& assignment : step.set) Filled(assignment, names, step.name);
    }
  }

  std::string Path(const std::string& step) const { return "runs/" + run + "-" + step; }

  // {STEP} replaced by that step's model.
  std::string Filled(const std::string& text, const std::set<std::string>& earlier,
                     const std::string& self) const {
    const size_t open = text.find('{');
    const size_t close = text.find('}', open);
    if (open == std::string::npos || close == std::string::npos) return text;
    const std::string step = text.substr(open + 1, close - open - 1);
    if (step == self || !earlier.contains(step)) {
      throw ConfigProblem("steps", self + ": {" + step + "} is no earlier step");
    }
    return text.substr(0, open) + std::filesystem::absolute(Path(step) + "/model").string() +
           Filled(text.substr(close + 1), earlier, self);
  }

  std::string algorithm = "pipeline", run;
  std::deque<PipelineStep> steps;
};

}  // namespace

int TrainPipeline(const ConfigSource& source, bool json) {
  Pipeline pipeline;
  source.Parse(pipeline);
  std::set<std::string> earlier;
  Json results = Json::object();
  for (const PipelineStep& step : pipeline.steps) {
    const std::string path = pipeline.Path(step.name);
    std::vector<std::string> arguments;
    if (DirectoryExists(path + "/model")) {
      LogInfo(path + " is there");
    } else {
      if (FileExists(path + "/config.yaml")) {
        arguments = {"resume", path};
      } else {
        arguments = {"train", step.config, "run=" + pipeline.run + "-" + step.name};
        for (const std::string& assignment : step.set) {
          arguments.push_back(pipeline.Filled(assignment, earlier, step.name));
        }
      }
      LogInfo("step " + step.name);
      if (const int status = RunSelf(arguments); status != 0) {
        LogWarn(path + " ended with status " + std::to_string(status) +
                "; the same command goes on from there");
        return status;
      }
    }
    earlier.insert(step.name);
    const Json manifest = Json::parse(ReadFile(path + "/manifest.json", 1 << 20), nullptr, false);
    if (manifest.is_object() && manifest.contains("result")) {
      results[step.name] = manifest.at("result");
    }
  }
  if (json) {
    fmt::print("{}\n", results.dump());
  } else {
    fmt::print("\n");
    for (const auto& [name, result] : results.items()) {
      fmt::print("{:<14}", name);
      for (const char* figure : {"held_out_loss_before", "held_out_loss", "held_out_accuracy",
                                 "held_out_before", "held_out"}) {
        const auto& evaluation = result.at("evaluation");
        if (evaluation.contains(figure)) {
          fmt::print("  {} {:.3f}", figure, evaluation.at(figure).template get<double>());
        }
      }
      fmt::print("  ({:.0f} s)\n", result.at("wall_seconds").template get<double>());
    }
    fmt::print("model         {}/model\n", pipeline.Path(pipeline.steps.back().name));
  }
  return 0;
}

int GraphOfPipeline(const ConfigSource& source, bool dot, bool json) {
  Pipeline pipeline;
  source.Parse(pipeline);
  std::set<std::string> earlier;
  Json graphs = Json::object();
  for (const PipelineStep& step : pipeline.steps) {
    std::vector<std::string> overrides;
    for (const std::string& assignment : step.set) {
      overrides.push_back(pipeline.Filled(assignment, earlier, step.name));
    }
    earlier.insert(step.name);
    if (!dot && !json) fmt::print("{}: {}\n", step.name, step.config);
    try {
      const GraphText graph = DescribeGraph(step.config, overrides);
      graphs[step.name] = {{"dot", graph.dot}, {"text", graph.text}, {"plan", graph.plan}};
      if (dot) fmt::print("{}", graph.dot);
      if (!dot && !json) fmt::print("{}\n{}\n", graph.text, graph.plan);
    } catch (const Error& error) {
      if (step.set.empty()) throw;  // else it may be made of what an earlier step has yet to leave
      graphs[step.name] = {{"error", error.message()}};
      if (!json) LogWarn(step.name + " has no graph yet: " + error.message());
    }
  }
  if (json) fmt::print("{}\n", graphs.dump());
  return 0;
}

}  // namespace weft
