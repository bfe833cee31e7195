// weft repro: a row of the results table. Each seed is an ordinary run, repro-CONFIG-SEED; finished
// ones are taken as they are, interrupted ones are resumed, so the command can be started again
// until all is there.
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "algorithms/algorithm.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "program/commands.h"
#include "program/machine.h"
#include "program/results_table.h"
#include "program/subprocess.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// The algorithm of a config, with what the command line says.
std::unique_ptr<Algorithm> Load(const std::string& config, const ReproOptions& options) {
  ConfigSource source = ConfigSource::File(config);
  for (const std::string& assignment : options.overrides) source.Override(assignment);
  return LoadAlgorithm(source);
}

struct SeedRun {
  std::string config, name;
  int64_t seed = 0;
  std::string path() const { return "runs/" + name; }
};

// The result that a finished run left in its manifest; null before that.
Json ResultOf(const SeedRun& run) {
  const std::string path = run.path() + "/manifest.json";
  if (!FileExists(path)) return nullptr;
  const Json manifest = Json::parse(ReadFile(path, 1 << 20), nullptr, false);
  const auto result = manifest.is_object() ? manifest.find("result") : manifest.end();
  if (result == manifest.end() || result->at("evaluation").at("n").get<int64_t>() == 0)
    return nullptr;
  return *result;
}

void RunAll(const std::vector<SeedRun>& runs, const ReproOptions& options) {
  std::map<pid_t, SeedRun> children;
  const auto wait_for_one = [&] {
    const auto [pid, status] = WaitAny();
    const auto child = children.find(pid);
    if (child == children.end()) return;
    if (status != 0) {
      LogWarn(fmt::format("{} ended with status {}; see runs/{}.log", child->second.name, status,
                          child->second.name));
    } else {
      LogInfo(child->second.name + " done");
    }
    children.erase(child);
  };
  MakeDirectories("runs");
  for (const SeedRun& run : runs) {
    if (!ResultOf(run).is_null()) continue;
    while (static_cast<int>(children.size()) >= options.parallel) wait_for_one();
    std::vector<std::string> arguments;
    if (FileExists(run.path() + "/config.yaml")) {
      arguments = {"resume", run.path(), "--json"};
    } else {
      arguments = {"train", run.config, fmt::format("seed={}", run.seed), "run=" + run.name,
                   "--json"};
      arguments.insert(arguments.end(), options.overrides.begin(), options.overrides.end());
    }
    LogInfo("start " + run.name);
    children.emplace(StartSelf(arguments, "runs/" + run.name + ".log"), run);
  }
  while (!children.empty()) wait_for_one();
}

struct Row {
  std::vector<std::string> cells;
  Json json;
};

Row MakeRow(const std::string& config, const ReproOptions& options,
            const std::vector<SeedRun>& runs) {
  const auto algorithm = Load(config, options);
  std::vector<double> means;
  std::vector<std::string> per_seed;
  double wall = 0;
  int64_t steps = 0, episodes = 0;
  for (const SeedRun& run : runs) {
    const Json result = ResultOf(run);
    if (result.is_null()) continue;
    means.push_back(result.at("evaluation").at("mean"));
    per_seed.push_back(fmt::format("{}: {:.1f}", run.seed, means.back()));
    wall += result.at("wall_seconds").get<double>();
    steps = std::max(steps, result.at("steps").get<int64_t>());
    episodes = result.at("evaluation").at("n");
  }
  const auto n = static_cast<double>(means.size());
  const double mean = std::accumulate(means.begin(), means.end(), 0.0) / std::max(1.0, n);
  double squares = 0;
  for (const double value : means) squares += (value - mean) * (value - mean);
  const double std = means.size() > 1 ? std::sqrt(squares / (n - 1)) : 0;
  const double seconds = wall / std::max(1.0, n);
  const std::string name = algorithm->algorithm + " " + algorithm->environment.id;
  return {{name, HumanCount(static_cast<double>(steps)), fmt::format("{:.1f} +- {:.1f}", mean, std),
           Join(per_seed, ", "), HumanSeconds(seconds), algorithm->published, config},
          {{"config", config},
           {"mean", mean},
           {"std", std},
           {"seeds", means.size()},
           {"returns", means},
           {"episodes", episodes},
           {"steps", steps},
           {"wall_seconds", seconds},
           {"published", algorithm->published}}};
}

}  // namespace

int Repro(const ReproOptions& options) {
  std::map<std::string, std::vector<SeedRun>> by_config;
  std::vector<SeedRun> all;
  for (const auto& config : options.configs) {
    const auto algorithm = Load(config, options);
    std::string stem = std::filesystem::path(config).stem().string();
    // Another environment than the file's makes other runs.
    if (LoadAlgorithm(ConfigSource::File(config))->environment.id != algorithm->environment.id)
      stem += "-" + algorithm->environment.FileName();
    for (const int64_t seed : options.seeds) {
      SeedRun run{config, fmt::format("repro-{}-{}-{}", algorithm->algorithm, stem, seed), seed};
      by_config[config].push_back(run);
      all.push_back(run);
    }
  }
  RunAll(all, options);
  const std::vector<std::string> header = {"run",       "steps",     "return", "seed: return",
                                           "wall time", "published", "config"};
  std::vector<std::vector<std::string>> rows;
  Json json = Json::array();
  for (const auto& config : options.configs) {
    Row row = MakeRow(config, options, by_config[config]);
    rows.push_back(row.cells);
    json.push_back(row.json);
  }
  const MachineFacts machine = DescribeMachine();
  fmt::print("{}", FormatTable(header, rows));
  fmt::print("mean +- std over seeds of the deterministic return after training; {}, {} cores\n",
             machine.cpu, machine.cores);
  if (!options.write.empty()) {
    // Several configs may be of one algorithm and environment.
    UpdateTable(options.write, "weft repro", header, rows, {0, header.size() - 1});
  }
  if (options.json) fmt::print("{}\n", json.dump());
  return 0;
}

}  // namespace weft
