// weft list and weft graph, and the keys behind weft train --help: what there is, without running
// it.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "algorithms/algorithm.h"
#include "environments/availability.h"
#include "environments/environment.h"
#include "program/commands.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

struct Row {
  std::string name, facts, summary;
};

void Print(const std::vector<Row>& rows, bool json) {
  if (json) {
    Json list = Json::array();
    for (const Row& row : rows)
      list.push_back({{"name", row.name}, {"facts", row.facts}, {"summary", row.summary}});
    fmt::print("{}\n", list.dump());
    return;
  }
  size_t name = 0, facts = 0;
  for (const Row& row : rows) {
    name = std::max(name, row.name.size());
    facts = std::max(facts, row.facts.size());
  }
  for (const Row& row : rows)
    fmt::print("{:{}}  {:{}}  {}\n", row.name, name, row.facts, facts, row.summary);
}

// "[17]", and of one integer "Discrete(16)".
std::string LeafText(const Leaf& leaf) {
  if (leaf.dtype != DType::kInt64 || leaf.shape.rank() > 0 || leaf.low.empty() || leaf.high.empty())
    return leaf.shape.ToString();
  const auto low = static_cast<int64_t>(leaf.low[0]), high = static_cast<int64_t>(leaf.high[0]);
  return Space(Discrete{.n = high - low + 1, .start = low}).ToString();
}

std::string Facts(const EnvironmentEntry& entry) {
  if (!WhyUnavailable(entry).empty()) return "(model files missing)";
  const EnvironmentSpec spec = entry.Spec(*entry.make_arguments());
  std::string text;
  for (const Leaf& leaf : spec.observation) text += (text.empty() ? "" : " + ") + LeafText(leaf);
  return text + " -> " + spec.action.ToString();
}

}  // namespace

int List(const std::string& what, bool json) {
  std::vector<Row> rows;
  if (what == "algorithms") {
    for (const auto& [name, entry] : Algorithms()) rows.push_back({name, "", entry.summary});
  } else {
    for (const auto& [id, entry] : Environments())
      rows.push_back({id, Facts(entry), entry.summary});
  }
  Print(rows, json);
  return 0;
}

int Graph(const std::string& config, const std::vector<std::string>& overrides, bool dot,
          bool json) {
  ConfigSource source = ConfigSource::File(config);
  for (const auto& assignment : overrides) source.Override(assignment);
  const auto algorithm = LoadAlgorithm(source);
  FragmentGraph graph;
  algorithm->Build(graph);
  graph.Validate();
  const Placement placement = DistributionPolicies().At(algorithm->placement)(
      graph,
      {.threads = algorithm->ThreadBudget(), .processes = static_cast<int>(algorithm->processes)});
  if (json) {
    fmt::print(
        "{}\n",
        Json{{"dot", graph.ToDot()}, {"text", graph.ToText()}, {"plan", placement.ToText(graph)}}
            .dump());
  } else if (dot) {
    fmt::print("{}", graph.ToDot());
  } else {
    fmt::print("{}\n{}\n", graph.ToText(), placement.ToText(graph));
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
    for (const auto& [name, entry] : Algorithms())
      text += fmt::format("  {:8} {}\n", name, entry.summary);
    return text;
  }
  const auto algorithm = LoadAlgorithm(ConfigSource::File(config));
  return text + "Keys, with the values that " + config + " gives them:\n" + ConfigHelp(*algorithm);
}

}  // namespace weft
