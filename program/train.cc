// weft train, resume and worker: from a config to a run directory, and from a run directory on.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "actors/film.h"
#include "algorithms/algorithm.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/version.h"
#include "dataflow/runtime.h"
#include "nn/safetensors.h"
#include "program/commands.h"
#include "program/machine.h"
#include "program/methods.h"
#include "program/run_directory.h"
#include "program/run_monitor.h"
#include "rlhf/memory_plan.h"
#include "tensor/cached_memory.h"
#include "tensor/kernels_bf16.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kAsksForRestart = 75;  // EX_TEMPFAIL: checkpointed, start me again

std::atomic<bool> interrupted{false};

// The first signal asks for a checkpoint and a clean end, the second one ends at once.
void OnSignal(int) {
  if (interrupted.exchange(true)) _exit(130);
}

void CatchSignals() {
  struct sigaction action {};
  action.sa_handler = OnSignal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

std::string Hex(uint64_t value) {
  return fmt::format("{:016x}", value);
}

// The policy file that init_from stands for: a run, a checkpoint folder, or a file.
std::string ResolvePolicy(const std::string& init_from) {
  if (init_from.empty() || FileExists(init_from)) return init_from;
  if (FileExists(init_from + "/policy.safetensors")) {
    return std::filesystem::absolute(init_from + "/policy.safetensors");
  }
  std::vector<std::string> warnings;
  const auto newest = RunDirectory::Open(init_from).Newest(warnings);
  if (!newest)
    throw Error(ErrorCode::kConfig, "init_from: " + init_from + " has no checkpoint to start from");
  return std::filesystem::absolute(newest->path + "/policy.safetensors");
}

// Throws kConfig when the environment, or the policy of init_from, does not fit the networks.
void CheckAgent(const Algorithm& algorithm) {
  const auto agent = algorithm.MakeAgent(1);
  if (algorithm.init_from.empty()) return;
  try {
    agent->Load(ReadSafetensors(algorithm.init_from));
  } catch (const Error& error) {
    throw Error(ErrorCode::kConfig, "init_from: " + algorithm.init_from + ": " + error.message());
  }
}

// Throws when the environment cannot be filmed here.
void CheckVideos(const Algorithm& algorithm) {
  if (algorithm.video_every == 0) return;
  try {
    CheckVideo(algorithm.environment);
  } catch (Error& error) {
    error.AddContext("video_every: " + std::to_string(algorithm.video_every));
    throw;
  }
}

Resources ResourcesOf(const Method& algorithm) {
  return {.threads = algorithm.ThreadBudget(), .processes = static_cast<int>(algorithm.processes)};
}

void WriteManifest(const RunDirectory& directory, const Method& algorithm,
                   const std::string& plan) {
  const MachineFacts machine = DescribeMachine();
  directory.UpdateManifest({{"weft", Json(kVersion).dump()},
                            {"git", Json(kGitHash).dump()},
                            {"cpu", Json(machine.cpu).dump()},
                            {"cores", Json(machine.cores).dump()},
                            {"isa", Json(Name(BestIsa())).dump()},
                            {"bf16", Json(kernels::Bf16Instruction()).dump()},
                            {"compiler", Json(machine.compiler).dump()},
                            {"libraries", Json(machine.libraries).dump()},
                            {"seed", Json(algorithm.seed).dump()},
                            {"placement", Json(algorithm.placement).dump()},
                            {"thread_plan", Json(plan).dump()},
                            {"perturbed", "false"}});
}

struct Outcome {
  RunResult result;
  Checkpoint last;
  double steps_per_second = 0;
  // Of language methods: by step; and what the run was to take, 0 when it did not run.
  std::map<std::string, std::vector<double>, std::less<>> metrics;
  int64_t planned_bytes = 0;
};

// What the run is going to take of memory, with a warning where there is less.
int64_t SayMemoryPlan(const LanguageMethod& method, const FragmentGraph& graph) {
  const MemoryPlan plan = PlanMemory(method, graph);
  const int64_t free = FreeMemory();
  const std::string there = HumanBytes(static_cast<double>(free));
  LogInfo("memory: " + plan.ToText() + (free >= 0 ? "; " + there + " are free" : ""));
  if (free >= 0 && plan.peak_bytes() > free) {
    LogWarn("the run needs more memory than the " + there +
            " that are free and may be killed; less is taken by " + plan.Advice());
  }
  return plan.peak_bytes();
}

// Runs the graph to its end, saving checkpoints on the way and one at the end.
Outcome RunGraph(const Method& algorithm, const RunDirectory& directory, const Checkpoint* resume) {
  FragmentGraph graph;
  algorithm.Build(graph);
  graph.Validate();
  const Placement placement =
      DistributionPolicies().At(algorithm.placement)(graph, ResourcesOf(algorithm));
  const std::string plan = placement.ToText(graph);
  WriteManifest(directory, algorithm, plan);
  LogInfo(plan);

  const int64_t first_step = resume ? resume->steps : 0;
  RunMonitor monitor(directory.path(), algorithm.algorithm + " " + algorithm.Subject(),
                     algorithm.total_steps, first_step, resume ? resume->wall_seconds : 0);
  bool perturbed = resume && resume->perturbed;
  const auto checkpoint_of = [&](const Cut& cut) {
    return Checkpoint{.steps = StepsOf(cut),
                      .wall_seconds = monitor.wall_seconds(),
                      .perturbed = perturbed,
                      .cut = cut};
  };
  const auto save = [&](const Checkpoint& checkpoint) {
    try {
      directory.Save(checkpoint, algorithm.checkpoint.keep);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kIo) throw;
      LogWarn(
          fmt::format("no checkpoint at step {}: {}; the run goes on, older checkpoints are kept",
                      checkpoint.steps, error.what()));
    }
  };

  Outcome outcome;
  const auto* const language = dynamic_cast<const LanguageMethod*>(&algorithm);
  if (language != nullptr) outcome.planned_bytes = SayMemoryPlan(*language, graph);
  RuntimeOptions options;
  options.on_metric = [&](const MetricEvent& event) {
    if (language != nullptr) outcome.metrics[std::string(event.name)].push_back(event.value);
    monitor.OnMetric(event);
  };
  options.on_checkpoint = [&](const Cut& cut) { save(checkpoint_of(cut)); };
  options.on_perturbed = [&](int process, const std::string& reason) {
    perturbed = true;
    LogWarn(fmt::format(
        "process {} was lost ({}) and is started again; its open episodes are truncated and the "
        "run is marked perturbed",
        process, reason));
    directory.UpdateManifest({{"perturbed", "true"}});
  };
  options.interrupted = [] { return interrupted.load(std::memory_order_relaxed); };
  options.worker_command = [&](int process) {
    return std::vector<std::string>{"/proc/self/exe", "worker", directory.config_path(),
                                    std::to_string(process)};
  };

  outcome.result = Run(graph, placement, options, resume ? &resume->cut : nullptr);
  outcome.steps_per_second = monitor.steps_per_second();
  monitor.Finish();
  outcome.last = checkpoint_of(outcome.result.cut);
  save(outcome.last);
  return outcome;
}

int Finish(const Algorithm& algorithm, const RunDirectory& directory, const Outcome& outcome,
           bool json) {
  const Checkpoint& last = outcome.last;
  const TensorMap policy = PolicyOf(last);
  const std::string hash = Hex(Hash(policy));
  const bool stopped_early = outcome.result.interrupted;

  if (!stopped_early && algorithm.video_every > 0) {  // of the end, whatever the steps
    const auto agent = algorithm.MakeAgent(algorithm.environment.Spec().agent_count());
    agent->Load(policy);
    RecordVideo(algorithm.environment, *agent, algorithm.seed,
                VideoPath(algorithm.run_folder, last.steps));
  }
  Evaluation evaluation;
  if (!stopped_early && algorithm.evaluation.final_episodes > 0) {
    ThreadPool pool(algorithm.ThreadBudget());
    const Context context{.pool = &pool};
    const ContextScope scope(context);
    const EvaluationOptions options{.episodes = algorithm.evaluation.final_episodes,
                                    .rows = algorithm.evaluation.rows,
                                    .seed = algorithm.seed};
    const auto agent = algorithm.MakeAgent(std::min(options.rows, options.episodes));
    agent->Load(policy);
    evaluation = Evaluate(algorithm.environment, *agent, options, &pool);
  }
  const Json summary{
      {"run", directory.path()},
      {"steps", last.steps},
      {"evaluation", {{"mean", evaluation.mean}, {"std", evaluation.std}, {"n", evaluation.n}}},
      {"parameter_hash", hash},
      {"steps_per_second", outcome.steps_per_second},
      {"wall_seconds", last.wall_seconds},
      {"perturbed", last.perturbed}};
  directory.UpdateManifest({{"result", summary.dump()}});
  if (json) {
    fmt::print("{}\n", summary.dump());
  } else {
    fmt::print("\n{} steps in {} ({} steps/s), {}\n", last.steps, HumanSeconds(last.wall_seconds),
               HumanCount(outcome.steps_per_second), outcome.result.stop_reason);
    if (evaluation.n > 0) {
      fmt::print("return          {:.2f} +- {:.2f} over {} episodes, deterministic actions\n",
                 evaluation.mean, evaluation.std, evaluation.n);
    }
    fmt::print("run             {}\nparameter hash  {}\n", directory.path(), hash);
    if (stopped_early) fmt::print("saved; go on with   weft resume {}\n", directory.path());
  }
  std::fflush(stdout);
  return stopped_early ? kAsksForRestart : 0;
}

double Mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

// What a run of a language method was like: the reward over the first and the last five steps, how
// far the policy went, the median seconds of each phase.
Json StepFigures(const Outcome& outcome) {
  Json figures = Json::object();
  const auto find = [&](std::string_view name) -> const std::vector<double>* {
    const auto found = outcome.metrics.find(name);
    return found == outcome.metrics.end() || found->second.empty() ? nullptr : &found->second;
  };
  if (const auto* reward = find("reward")) {
    const size_t some = std::min<size_t>(5, reward->size());
    const std::span<const double> all(*reward);
    figures["reward"] = {{"first", Mean(all.first(some))}, {"last", Mean(all.last(some))}};
  }
  if (const auto* kl = find("kl")) figures["kl"] = kl->back();
  for (const char* phase : {"generate", "reference", "reward", "learn"}) {
    const auto* seconds = find(std::string(phase) + "_seconds");
    if (seconds != nullptr) figures["seconds"][phase] = Median(*seconds);
  }
  return figures;
}

// Reward over the divergence from the start model, of a run that measured both.
void DrawFrontier(const RunDirectory& directory, const Outcome& outcome) {
  const auto kl = outcome.metrics.find("kl");
  if (kl == outcome.metrics.end() || kl->second.size() < 2) return;
  try {
    DrawPlot({.runs = {directory.path()},
              .metric = "reward",
              .over = "kl",
              .output = directory.path() + "/kl_reward.svg"});
  } catch (const Error& error) {
    LogWarn("no kl_reward.svg: " + error.message());
  }
}

int FinishLanguage(const LanguageMethod& method, const RunDirectory& directory, Outcome outcome,
                   bool json) {
  const Checkpoint& last = outcome.last;
  const TensorMap policy = PolicyOf(last), result = method.Result(last.cut.at("learner.0"));
  // The optimiser's state is on disk; judging needs less memory than training did.
  outcome.last.cut.clear();
  outcome.result.cut.clear();
  FreeCachedMemory();
  const bool stopped_early = outcome.result.interrupted;
  Json figures = Json::object();
  if (!stopped_early) {
    for (const auto& [name, value] : method.Finish(result, directory.path())) figures[name] = value;
  }
  DrawFrontier(directory, outcome);
  Json summary{
      {"run", directory.path()},
      {"steps", last.steps},
      {"evaluation", figures},
      {"parameter_hash", Hex(Hash(policy))},
      {"seconds_per_step", outcome.steps_per_second > 0 ? 1 / outcome.steps_per_second : 0},
      {"wall_seconds", last.wall_seconds}};
  summary.update(StepFigures(outcome));
  summary["peak_bytes"] = PeakMemory();
  summary["planned_bytes"] = outcome.planned_bytes;
  directory.UpdateManifest({{"result", summary.dump()}});
  if (json) {
    fmt::print("{}\n", summary.dump());
  } else {
    fmt::print("\n{} steps in {}, {}\n", last.steps, HumanSeconds(last.wall_seconds),
               outcome.result.stop_reason);
    for (const auto& [name, value] : figures.items()) {
      fmt::print("{:<22}  {:.4f}\n", name, value.get<double>());
    }
    if (outcome.planned_bytes > 0) {
      fmt::print("peak memory             {}, planned {}\n",
                 HumanBytes(summary.at("peak_bytes").get<double>()),
                 HumanBytes(static_cast<double>(outcome.planned_bytes)));
    }
    fmt::print("run                     {}\nparameter hash          {}\n", directory.path(),
               summary.at("parameter_hash").get<std::string>());
    if (stopped_early) {
      fmt::print("saved; go on with   weft resume {}\n", directory.path());
    } else {
      fmt::print("model                   {}/model\n", directory.path());
    }
  }
  std::fflush(stdout);
  return stopped_early ? kAsksForRestart : 0;
}

int TrainLanguage(LanguageMethod& method, bool json) {
  {
    FragmentGraph graph;
    method.Build(graph);
    graph.Validate();
  }
  const auto directory = RunDirectory::Create(
      method.run,
      fmt::format("{}-{}-{}", method.algorithm,
                  std::filesystem::path(method.Subject()).filename().string(), method.seed),
      ToYaml(method));
  method.run_folder = directory.path();
  CatchSignals();
  return FinishLanguage(method, directory, RunGraph(method, directory, nullptr), json);
}

int ResumeLanguage(LanguageMethod& method, const RunDirectory& directory, bool json) {
  method.run_folder = directory.path();
  std::vector<std::string> warnings;
  const auto checkpoint = directory.Newest(warnings);
  for (const auto& warning : warnings) LogWarn(warning);
  CatchSignals();
  if (checkpoint && checkpoint->steps >= method.total_steps) {
    return FinishLanguage(method, directory,
                          {.result = {.stop_reason = "already finished"}, .last = *checkpoint},
                          json);
  }
  return FinishLanguage(method, directory,
                        RunGraph(method, directory, checkpoint ? &*checkpoint : nullptr), json);
}

}  // namespace

int Train(const TrainOptions& options) {
  ConfigSource source = ConfigSource::File(options.config);
  for (const auto& assignment : options.overrides) source.Override(assignment);
  if (source.Scalar("algorithm") == "pipeline") return TrainPipeline(source, options.json);
  if (const auto method = LoadLanguageMethod(source)) return TrainLanguage(*method, options.json);
  const auto algorithm = LoadAlgorithm(source);
  algorithm->init_from = ResolvePolicy(algorithm->init_from);
  algorithm->actors =
      algorithm->ActorReplicas();  // a run keeps its number of actors when it is resumed elsewhere
  {
    FragmentGraph graph;  // impossible combinations stop here, before anything is written
    algorithm->Build(graph);
    graph.Validate();
    CheckAgent(*algorithm);
    CheckVideos(*algorithm);
  }
  const auto directory =
      RunDirectory::Create(algorithm->run,
                           fmt::format("{}-{}-{}", algorithm->algorithm,
                                       algorithm->environment.FileName(), algorithm->seed),
                           ToYaml(*algorithm));
  algorithm->run_folder = directory.path();
  CatchSignals();
  return Finish(*algorithm, directory, RunGraph(*algorithm, directory, nullptr), options.json);
}

int Resume(const ResumeOptions& options) {
  const auto directory = RunDirectory::Open(options.run);
  ConfigSource source = ConfigSource::File(directory.config_path());
  for (const auto& assignment : options.overrides) {
    source.Override(assignment);
    LogInfo("resumed with " + assignment);
  }
  if (const auto method = LoadLanguageMethod(source)) {
    if (!options.overrides.empty()) WriteFileAtomic(directory.config_path(), ToYaml(*method));
    return ResumeLanguage(*method, directory, options.json);
  }
  const auto algorithm = LoadAlgorithm(source);
  algorithm->run_folder = directory.path();
  CheckVideos(*algorithm);
  if (!options.overrides.empty()) WriteFileAtomic(directory.config_path(), ToYaml(*algorithm));
  std::vector<std::string> warnings;
  const auto checkpoint = directory.Newest(warnings);
  for (const auto& warning : warnings)
    LogWarn(warning + "; falling back to the checkpoint before it");
  if (!checkpoint) LogInfo("no checkpoint yet: the run starts from its beginning");
  CatchSignals();
  if (checkpoint && checkpoint->steps >= algorithm->total_steps) {
    return Finish(*algorithm, directory,
                  {.result = {.stop_reason = "already finished"}, .last = *checkpoint},
                  options.json);
  }
  return Finish(*algorithm, directory,
                RunGraph(*algorithm, directory, checkpoint ? &*checkpoint : nullptr), options.json);
}

int Worker(const std::string& config, int process, const std::string& address) {
  signal(SIGINT, SIG_IGN);  // a terminal's Ctrl-C reaches the whole group; the main process decides
  const ConfigSource source = ConfigSource::File(config);
  const std::unique_ptr<Method> algorithm = LoadMethod(source);
  algorithm->run_folder = std::filesystem::path(config).parent_path();
  FragmentGraph graph;
  algorithm->Build(graph);
  graph.Validate();
  const Placement placement =
      DistributionPolicies().At(algorithm->placement)(graph, ResourcesOf(*algorithm));
  RunWorker(graph, placement, process, address);
  return 0;
}

}  // namespace weft
