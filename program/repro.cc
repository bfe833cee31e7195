// weft repro: a row of the results table. Each seed is an ordinary run, repro-CONFIG-SEED; finished
// ones are taken as they are, interrupted ones are resumed, so the command can be started again
// until all is there.
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <sstream>

#include "algorithms/algorithm.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "program/commands.h"
#include "program/machine.h"
#include "program/methods.h"
#include "program/results_table.h"
#include "program/subprocess.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// The method of a config, with what the command line says.
std::unique_ptr<Method> Load(const std::string& config, const ReproOptions& options) {
  ConfigSource source = ConfigSource::File(config);
  for (const std::string& assignment : options.overrides) source.Override(assignment);
  return LoadMethod(source);
}

// The environment or the data as a part of a file name.
std::string SubjectName(const Method& method) {
  if (const auto* const algorithm = dynamic_cast<const Algorithm*>(&method)) {
    return algorithm->environment.FileName();
  }
  return std::filesystem::path(method.Subject()).stem().string();
}

struct SeedRun {
  std::string config, name;
  int64_t seed = 0;
  std::string path() const { return "runs/" + name; }
};

// Throws Error(kConfig) where a run is there that was made with other words on the command line.
void CheckConfig(const SeedRun& run, const ReproOptions& options) {
  const std::string path = run.path() + "/config.yaml";
  if (!FileExists(path)) return;
  const std::string have = ToYaml(*LoadMethod(ConfigSource::File(path)));
  const std::string want = ToYaml(*Load(path, options));
  std::istringstream want_lines(want), have_lines(have);
  std::string now, then;
  while (std::getline(want_lines, now) && std::getline(have_lines, then)) {
    if (now == then || now.starts_with("threads:")) continue;
    throw Error(
        ErrorCode::kConfig,
        fmt::format("{} was made with \"{}\", not \"{}\": remove the folder, or ask for what "
                    "it was made with",
                    run.path(), then.substr(then.find_first_not_of(' ')),
                    now.substr(now.find_first_not_of(' '))));
  }
}

// The result that a finished run left in its manifest; null before that.
Json ResultOf(const SeedRun& run) {
  const std::string path = run.path() + "/manifest.json";
  if (!FileExists(path)) return nullptr;
  const Json manifest = Json::parse(ReadFile(path, 1 << 20), nullptr, false);
  const auto result = manifest.is_object() ? manifest.find("result") : manifest.end();
  if (result == manifest.end()) return nullptr;
  const Json& evaluation = result->at("evaluation");
  // Without one the run was interrupted.
  if (evaluation.empty() || evaluation.value("n", 1) == 0) return nullptr;
  return *result;
}

// The status of the last run that failed; 0 when none did.
int RunAll(const std::vector<SeedRun>& runs, const ReproOptions& options) {
  std::map<pid_t, SeedRun> children;
  int failed = 0;
  const auto wait_for_one = [&] {
    const auto [pid, status] = WaitAny();
    const auto child = children.find(pid);
    if (child == children.end()) return;
    if (status != 0) {
      failed = status;
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
  return failed;
}

struct Row {
  std::vector<std::string> cells;
  Json json;
};

struct Spread {
  double mean = 0, std = 0;
};
Spread SpreadOf(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  Spread spread{.mean = std::accumulate(values.begin(), values.end(), 0.0) / std::max(1.0, n)};
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  if (values.size() > 1) spread.std = std::sqrt(squares / (n - 1));
  return spread;
}

// What language methods are judged by, the first of these that a run has; each has a twin
// NAME_before.
constexpr const char* kJudgedBy[] = {"held_out", "held_out_accuracy", "held_out_loss"};

// Of runs that have a result.
Row MakeLanguageRow(const std::string& config, const LanguageMethod& method,
                    const std::vector<SeedRun>& runs) {
  std::vector<double> before, after, kl;
  std::vector<std::string> per_seed;
  std::string figure;
  double wall = 0;
  int64_t steps = 0;
  for (const SeedRun& run : runs) {
    const Json result = ResultOf(run);
    const Json& evaluation = result.at("evaluation");
    for (const char* name : kJudgedBy) {
      if (!evaluation.contains(name)) continue;
      figure = name;
      after.push_back(evaluation.at(name));
      if (const auto at = evaluation.find(figure + "_before"); at != evaluation.end()) {
        before.push_back(*at);
      }
      per_seed.push_back(fmt::format("{}: {:.3f}", run.seed, after.back()));
      break;
    }
    if (evaluation.contains("kl")) kl.push_back(evaluation.at("kl"));
    wall += result.at("wall_seconds").get<double>();
    steps = std::max(steps, result.at("steps").get<int64_t>());
  }
  const double seconds = wall / static_cast<double>(runs.size());
  const Spread start = SpreadOf(before), end = SpreadOf(after), distance = SpreadOf(kl);
  const std::string stem = std::filesystem::path(config).stem().string();
  return {{method.algorithm + " " + stem, std::to_string(steps), figure,
           before.empty() ? "" : fmt::format("{:.3f}", start.mean),
           fmt::format("{:.3f} +- {:.3f}", end.mean, end.std), Join(per_seed, ", "),
           kl.empty() ? "" : fmt::format("{:.2f}", distance.mean), HumanSeconds(seconds), config},
          {{"config", config},
           {"figure", figure},
           {"before", start.mean},
           {"mean", end.mean},
           {"std", end.std},
           {"seeds", after.size()},
           {"values", after},
           {"kl", distance.mean},
           {"steps", steps},
           {"wall_seconds", seconds}}};
}

Row MakeRow(const std::string& config, const Algorithm* algorithm,
            const std::vector<SeedRun>& runs) {
  std::vector<double> means;
  std::vector<std::string> per_seed;
  double wall = 0;
  int64_t steps = 0, episodes = 0;
  for (const SeedRun& run : runs) {
    const Json result = ResultOf(run);
    means.push_back(result.at("evaluation").at("mean"));
    per_seed.push_back(fmt::format("{}: {:.1f}", run.seed, means.back()));
    wall += result.at("wall_seconds").get<double>();
    steps = std::max(steps, result.at("steps").get<int64_t>());
    episodes = result.at("evaluation").at("n");
  }
  const auto [mean, std] = SpreadOf(means);
  const double seconds = wall / static_cast<double>(runs.size());
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
  bool language = false, acting = false;
  for (const auto& config : options.configs) {
    const auto method = Load(config, options);
    (dynamic_cast<const LanguageMethod*>(method.get()) != nullptr ? language : acting) = true;
    std::string stem = std::filesystem::path(config).stem().string();
    // Another environment or data than the file's makes other runs.
    if (LoadMethod(ConfigSource::File(config))->Subject() != method->Subject()) {
      stem += "-" + SubjectName(*method);
    }
    for (const int64_t seed : options.seeds) {
      SeedRun run{config, fmt::format("repro-{}-{}-{}", method->algorithm, stem, seed), seed};
      by_config[config].push_back(run);
      all.push_back(run);
    }
  }
  if (language && acting) {
    throw Error(ErrorCode::kConfig,
                "configs of language models and of environments make tables of their own: name one "
                "kind");
  }
  for (const SeedRun& run : all) CheckConfig(run, options);
  const int failed = RunAll(all, options);
  const std::vector<std::string> header =
      language ? std::vector<std::string>{"run",         "steps", "figure",    "before", "after",
                                          "seed: after", "KL",    "wall time", "config"}
               : std::vector<std::string>{"run",       "steps",     "return", "seed: return",
                                          "wall time", "published", "config"};
  std::vector<std::vector<std::string>> rows;
  Json json = Json::array();
  for (const auto& config : options.configs) {
    std::vector<SeedRun>& runs = by_config[config];
    std::erase_if(runs, [](const SeedRun& run) { return ResultOf(run).is_null(); });
    if (runs.empty()) {
      LogWarn(config + ": no run of it ended with an evaluation, so it gets no row");
      continue;
    }
    const auto method = Load(config, options);
    const auto* const of_language = dynamic_cast<const LanguageMethod*>(method.get());
    Row row = of_language != nullptr
                  ? MakeLanguageRow(config, *of_language, runs)
                  : MakeRow(config, dynamic_cast<const Algorithm*>(method.get()), runs);
    rows.push_back(row.cells);
    json.push_back(row.json);
  }
  if (rows.empty()) return failed;
  const MachineFacts machine = DescribeMachine();
  fmt::print("{}", FormatTable(header, rows));
  fmt::print("mean +- std over seeds {}; {}, {} cores\n",
             language ? "after training" : "of the deterministic return after training",
             machine.cpu, machine.cores);
  if (!options.write.empty()) {
    // Several configs may be of one algorithm and environment.
    UpdateTable(options.write, language ? "weft repro language" : "weft repro", header, rows,
                {0, header.size() - 1});
  }
  if (options.json) fmt::print("{}\n", json.dump());
  return failed;
}

}  // namespace weft
