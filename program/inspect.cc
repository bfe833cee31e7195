// weft list and weft graph, and the keys behind weft train --help: what there is, without running
// it.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "algorithms/algorithm.h"
#include "environments/availability.h"
#include "environments/environment.h"
#include "program/commands.h"
#include "program/fields.h"
#include "program/methods.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

struct Row {
  std::string name, facts, summary;
  std::vector<std::string> lines;  // below it
};

void Print(const std::vector<Row>& rows, bool json) {
  if (json) {
    Json list = Json::array();
    for (const Row& row : rows) {
      list.push_back({{"name", row.name}, {"facts", row.facts}, {"summary", row.summary}});
      if (!row.lines.empty()) list.back()["fields"] = row.lines;
    }
    fmt::print("{}\n", list.dump());
    return;
  }
  size_t name = 0, facts = 0;
  for (const Row& row : rows) {
    name = std::max(name, row.name.size());
    facts = std::max(facts, row.facts.size());
  }
  for (const Row& row : rows) {
    fmt::print("{:{}}  {:{}}  {}\n", row.name, name, row.facts, facts, row.summary);
    for (const std::string& line : row.lines) fmt::print("    {}\n", line);
  }
}

std::string Facts(const EnvironmentSpec& spec) {
  std::string text;
  for (const Leaf& leaf : spec.observation) text += (text.empty() ? "" : " + ") + LeafText(leaf);
  return text + " -> " + spec.action.ToString();
}

std::vector<Row> AlgorithmRows() {
  std::vector<Row> rows;
  for (const auto& [name, entry] : Algorithms()) {
    rows.push_back({name, "environments", entry.summary, {}});
  }
  for (const auto& [name, entry] : LanguageMethods()) {
    rows.push_back({name, "language models", entry.summary, {}});
  }
  return rows;
}

Row EnvironmentRowOf(const std::string& id, const EnvironmentEntry& entry, bool fields) {
  if (!WhyUnavailable(entry).empty()) return {id, "(model files missing)", entry.summary, {}};
  const EnvironmentSpec spec = entry.Spec(*entry.make_arguments());
  return {id, Facts(spec), entry.summary, fields ? FieldLines(spec) : std::vector<std::string>()};
}

}  // namespace

int List(const std::string& what, const std::string& only, bool fields, bool json) {
  std::vector<Row> rows;
  if (what == "algorithms") {
    rows = AlgorithmRows();
  } else if (!only.empty()) {
    const std::string id = EnvironmentIdOf(only);
    rows.push_back(EnvironmentRowOf(id, FindEnvironment(id), fields));
  } else {
    for (const auto& [id, entry] : Environments())
      rows.push_back(EnvironmentRowOf(id, entry, fields));
  }
  Print(rows, json);
  return 0;
}

GraphText DescribeGraph(const std::string& config, const std::vector<std::string>& overrides) {
  ConfigSource source = ConfigSource::File(config);
  for (const auto& assignment : overrides) source.Override(assignment);
  const auto algorithm = LoadMethod(source);
  FragmentGraph graph;
  algorithm->Build(graph);
  graph.Validate();
  const Placement placement = DistributionPolicies().At(algorithm->placement)(
      graph,
      {.threads = algorithm->ThreadBudget(), .processes = static_cast<int>(algorithm->processes)});
  return {.dot = graph.ToDot(), .text = graph.ToText(), .plan = placement.ToText(graph)};
}

int Graph(const std::string& config, const std::vector<std::string>& overrides, bool dot,
          bool json) {
  ConfigSource source = ConfigSource::File(config);
  for (const auto& assignment : overrides) source.Override(assignment);
  if (source.Scalar("algorithm") == "pipeline") return GraphOfPipeline(source, dot, json);
  const GraphText graph = DescribeGraph(config, overrides);
  if (json) {
    fmt::print("{}\n", Json{{"dot", graph.dot}, {"text", graph.text}, {"plan", graph.plan}}.dump());
  } else if (dot) {
    fmt::print("{}", graph.dot);
  } else {
    fmt::print("{}\n{}\n", graph.text, graph.plan);
  }
  return 0;
}

std::string TrainHelp(const std::string& config) {
  std::string text =
      "weft train CONFIG [key=value ...] [--json]\n"
      "Trains an agent; the result is a folder runs/NAME. Ctrl-C saves and exits 75, `weft resume "
      "NAME` goes on.\n"
      "Any key of the config can be overridden on the command line; sections by dots "
      "(environment.rows=8).\n\n";
  if (config.empty()) {
    text += "`weft train CONFIG --help` lists the keys of the config's algorithm. Algorithms:\n";
    for (const Row& row : AlgorithmRows())
      text += fmt::format("  {:12} {}\n", row.name, row.summary);
    return text;
  }
  const auto algorithm = LoadMethod(ConfigSource::File(config));
  return text + "Keys, with the values that " + config + " gives them:\n" + ConfigHelp(*algorithm);
}

}  // namespace weft
