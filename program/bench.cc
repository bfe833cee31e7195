// weft bench: our speed beside figures recorded of peers on a machine of the same kind (2 cores
// with AVX-512, 237 and 457 GFLOP/s of f32 on one and two threads, 53 GB/s; `weft bench machine`
// prints this machine's).
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/check.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "bench/environments.h"
#include "bench/games.h"
#include "bench/language.h"
#include "bench/machine.h"
#include "bench/network.h"
#include "program/bench_bridge.h"
#include "program/bench_peers.h"
#include "program/bench_rlhf.h"
#include "program/commands.h"
#include "program/machine.h"
#include "program/results_table.h"
#include "program/train_once.h"
#include "tensor/context.h"
#include "tensor/kernels_bf16.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// A figure: higher is better for rates, lower for seconds. bar and peer are in the same unit; 0:
// none.
struct Result {
  std::string name, unit;  // steps_per_second, updates_per_second, seconds
  double median = 0, low = 0, high = 0;
  double bar = 0, peer = 0;
  std::string peer_name;

  double Ratio() const { return peer == 0 ? 0 : unit == "seconds" ? peer / median : median / peer; }
  Json ToJson() const {
    return {{"name", name},           {unit, median},    {"low", low},
            {"high", high},           {"bar", bar},      {"peer", peer},
            {"peer_name", peer_name}, {"ratio", Ratio()}};
  }
};

// What is measured: one call gives one figure.
struct Row {
  std::string name, unit;
  double bar, peer;
  std::string peer_name;
  std::function<double()> measure;
};

double SecondsOf(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double StepsPerSecond(const std::vector<std::string>& arguments) {
  return Json::parse(TrainOnce(arguments)).at("steps_per_second").get<double>();
}

const std::vector<std::string>& Quiet() {
  static const auto& quiet = *new std::vector<std::string>{
      "evaluation.every=1000000000", "evaluation.final_episodes=0", "checkpoint.every=1000000000"};
  return quiet;
}

std::vector<std::string> WithQuiet(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), Quiet().begin(), Quiet().end());
  return arguments;
}

// Peers' figures: knowledge of the field, measured with their own programs in the same settings.
std::vector<Row> LearnRows() {
  const auto config = [](const char* name) {
    return std::string("configs/bench/") + name + ".yaml";
  };
  return {
      {"ppo_cartpole_zoo", "steps_per_second", 100'000, 8'500, "CleanRL (SB3 6,900)",
       [] { return StepsPerSecond(WithQuiet({"configs/ppo/cartpole.yaml"})); }},
      {"ppo_cartpole_475", "seconds", 0.5, 1.5, "SB3, best of 1.5-3.3",
       [] {
         return SecondsOf([] {
           TrainOnce({"configs/ppo/cartpole.yaml", "stop_at_return=475", "evaluation.every=4000",
                      "evaluation.final_episodes=0", "checkpoint.every=1000000000"});
         });
       }},
      {"ppo_half_cheetah_sb3", "steps_per_second", 40'000, 4'100, "SB3 (CleanRL 2,000)",
       [=] { return StepsPerSecond({config("ppo_half_cheetah_sb3")}); }},
      {"ppo_pendulum_rl_tools", "seconds", 1.2, 3.1, "rl_tools",
       [=] { return SecondsOf([=] { TrainOnce({config("ppo_pendulum_rl_tools")}); }); }},
      {"sac_pendulum_rl_tools", "seconds", 1.0, 1.07, "rl_tools",
       [=] { return SecondsOf([=] { TrainOnce({config("sac_pendulum_rl_tools")}); }); }},
      {"sac_half_cheetah", "updates_per_second", 550, 296, "SBX, best of 284-296 (SB3 124)",
       [=] { return StepsPerSecond({config("sac_half_cheetah")}); }},
      {"dqn_cartpole_zoo", "steps_per_second", 13'000, 1'553, "SB3",
       [=] { return StepsPerSecond({config("dqn_cartpole_zoo")}); }},
      {"ppo_1024_rows", "steps_per_second", 1.2e6, 567'000, "PufferLib 3.0",
       [=] { return StepsPerSecond({config("ppo_1024_rows")}); }},
      {"update_17_64_64_6", "seconds", 15e-6, 228e-6, "torch, best of 228-390 us", MeasureUpdate},
      {"forward_17_64_64_6", "seconds", 0.25e-6, 15e-6, "torch, best of 15-22 us", MeasureForward},
      {"start", "seconds", 0.1, 2.6, "SB3",
       [] {
         return SecondsOf([] {
           TrainOnce(WithQuiet({"configs/ppo/cartpole.yaml", "total_steps=100"}));
         });
       }},
  };
}

Result Measure(const Row& row, int repeats) {
  std::vector<double> values;
  for (int i = 0; i < repeats; ++i) values.push_back(row.measure());
  std::ranges::sort(values);
  return {.name = row.name,
          .unit = row.unit,
          .median = values[values.size() / 2],
          .low = values.front(),
          .high = values.back(),
          .bar = row.bar,
          .peer = row.peer,
          .peer_name = row.peer_name};
}

std::string Format(double value, const std::string& unit) {
  if (value == 0) return "";
  if (unit != "seconds") return HumanCount(value);
  return value < 1e-3 ? fmt::format("{:.2f} us", value * 1e6) : fmt::format("{:.3f} s", value);
}

void Print(const std::vector<Result>& results, const BenchOptions& options) {
  const std::vector<std::string> header = {"row", "unit", "median", "low",        "high",
                                           "bar", "peer", "ratio",  "peer's name"};
  std::vector<std::vector<std::string>> rows;
  for (const Result& r : results) {
    rows.push_back({r.name, r.unit, Format(r.median, r.unit), Format(r.low, r.unit),
                    Format(r.high, r.unit), Format(r.bar, r.unit), Format(r.peer, r.unit),
                    r.peer == 0 ? "" : fmt::format("{:.2f}", r.Ratio()), r.peer_name});
  }
  if (!options.json) {
    fmt::print("{}", FormatTable(header, rows));
    const MachineFacts machine = DescribeMachine();
    fmt::print("median of {} runs; {}, {} cores\n", options.repeats, machine.cpu, machine.cores);
  }
  if (!options.write.empty())
    UpdateTable(options.write, "weft bench " + options.what, header, rows);
  for (const Result& r : results) {
    if (options.json) fmt::print("{}\n", r.ToJson().dump());
  }
}

int BenchMachine(const BenchOptions& options, int threads) {
  const MachineFigures figures = MeasureMachine(threads);
  const MachineFacts machine = DescribeMachine();
  if (options.json) {
    fmt::print("{}\n", Json{{"name", "machine"},
                            {"cpu", machine.cpu},
                            {"cores", machine.cores},
                            {"isa", Name(BestIsa())},
                            {"gflops_1", figures.gflops_1},
                            {"gflops_n", figures.gflops_n},
                            {"bf16_instruction", kernels::Bf16Instruction()},
                            {"bf16_gflops_1", figures.bf16_gflops_1},
                            {"bf16_gflops_n", figures.bf16_gflops_n},
                            {"gbytes_1", figures.gbytes_1},
                            {"gbytes_n", figures.gbytes_n},
                            {"threads", figures.threads}}
                           .dump());
  } else {
    fmt::print(
        "{}, {} cores, {}\nf32 fused multiply-add   {:.0f} GFLOP/s on 1 thread, {:.0f} on {}\n"
        "bf16 products            {:.0f} GFLOP/s on 1 thread, {:.0f} on {} ({})\n"
        "memory read              {:.1f} GB/s on 1 thread, {:.1f} on {}\n",
        machine.cpu, machine.cores, Name(BestIsa()), figures.gflops_1, figures.gflops_n,
        figures.threads, figures.bf16_gflops_1, figures.bf16_gflops_n, figures.threads,
        kernels::Bf16Instruction(), figures.gbytes_1, figures.gbytes_n, figures.threads);
  }
  return 0;
}

int BenchLearn(const BenchOptions& options) {
  std::vector<Result> results;
  std::vector<std::string> names;
  for (const Row& row : LearnRows()) {
    names.push_back(row.name);
    if (!options.only.empty() && options.only != row.name) continue;
    LogInfo("measuring " + row.name);
    results.push_back(Measure(row, options.repeats));
    if (row.name == "dqn_cartpole_zoo") {  // half an update a step
      Result updates = results.back();
      updates.name = "dqn_cartpole_zoo_updates";
      updates.unit = "updates_per_second";
      for (double* value : {&updates.median, &updates.low, &updates.high}) *value /= 2;
      updates.bar = 6'500;
      updates.peer = 896;
      updates.peer_name = "SB3, best of 773-896";
      if (options.only.empty()) results.push_back(updates);
    }
  }
  if (results.empty()) {
    throw Error(ErrorCode::kConfig,
                "there is no row " + options.only + DidYouMean(options.only, names));
  }
  Print(results, options);
  return 0;
}

// EnvPool's best on one and two threads where it was measured, and the bars; MuJoCo tasks are held
// to the bare loop of the same run instead.
struct EnvironmentPeer {
  const char* id;
  double bar, peer_1, peer_2;
  double bar_2 = 0;  // on two threads
};
constexpr EnvironmentPeer kEnvironmentPeers[] = {
    {"CartPole-v1", 40e6, 1.2e6, 0},
    {"Pendulum-v1", 10e6, 1.5e6, 0},
    {"Acrobot-v1", 2e6, 0.6e6, 0},
    {"HalfCheetah-v5", 0, 44e3, 80e3},
    {"Hopper-v5", 0, 21e3, 41e3},
    {"Walker2d-v5", 0, 15e3, 28e3},
    {"Ant-v5", 0, 6.5e3, 12.7e3},
    {"Humanoid-v5", 0, 6.1e3, 11.5e3},
    {"LunarLander-v3", 1.3 * 85e3, 85e3, 150e3, 1.3 * 150e3},
};

// The bridge to Python with so many environments and workers; nothing, with a line that says why,
// where there is no Python that has what it takes.
void AddBridge(const std::string& id, int workers, std::vector<Result>& results) {
  const std::string name = fmt::format("python_{}_{}_workers", id, workers);
  LogInfo("measuring " + name);
  BridgeFigure figure;
  try {
    figure = BenchBridge(id, workers);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable) throw;
    LogWarn(name + " is left out: " + error.message() +
            " (WEFT_PYTHON names a Python with gymnasium, numpy and pyzmq)");
    return;
  }
  std::ranges::sort(figure.ours);
  std::ranges::sort(figure.theirs);
  const double peer = figure.theirs[figure.theirs.size() / 2];
  results.push_back({.name = name,
                     .unit = "steps_per_second",
                     .median = figure.ours[figure.ours.size() / 2],
                     .low = figure.ours.front(),
                     .high = figure.ours.back(),
                     .bar = peer,
                     .peer = peer,
                     .peer_name = "Gymnasium's AsyncVectorEnv, in turns"});
}

// Rows python_ID_N_workers: one by its name, or python_ID, or those of Acrobot-v1.
void AddBridges(std::string only, std::vector<Result>& results) {
  constexpr std::string_view kBegin = "python_", kEnd = "_workers";
  std::vector<int> counts = {2, 8};
  if (only.ends_with(kEnd)) {
    only.resize(only.size() - kEnd.size());
    const size_t number = only.rfind('_') + 1;
    int count = 0;
    std::from_chars(only.data() + number, only.data() + only.size(), count);
    if (count < 1 || number <= kBegin.size()) {
      throw Error(ErrorCode::kConfig, "there is no row " + only + std::string(kEnd));
    }
    counts = {count};
    only.resize(number - 1);
  }
  const std::string id = only.empty() ? "Acrobot-v1" : only.substr(kBegin.size());
  for (const int workers : counts) AddBridge(id, workers, results);
}

int BenchAllEnvironments(const BenchOptions& options, int threads) {
  // The rows environment_ID, game_ID and python_ID, or those of one id.
  const std::string& only = options.only;
  const bool no_games = only.starts_with("environment_"), games_alone = only.starts_with("game_"),
             bridges_alone = only.starts_with("python_");
  const std::string id = no_games || games_alone ? only.substr(only.find('_') + 1) : only;
  std::vector<std::string> ids;
  if (!id.empty()) ids = {id};
  std::vector<Result> results;
  const auto add = [&](const EnvironmentFigure& figure) {
    Result result{.name = "environment_" + figure.id +
                          (figure.threads > 1 ? fmt::format("_{}_threads", figure.threads) : ""),
                  .unit = "steps_per_second",
                  .median = figure.steps_per_second,
                  .low = figure.steps_per_second * (1 - figure.spread / 2),
                  .high = figure.steps_per_second * (1 + figure.spread / 2)};
    for (const EnvironmentPeer& peer : kEnvironmentPeers) {
      if (figure.id != peer.id) continue;
      result.bar = figure.threads == 1 ? peer.bar : figure.threads == 2 ? peer.bar_2 : 0;
      result.peer = figure.threads == 1 ? peer.peer_1 : figure.threads == 2 ? peer.peer_2 : 0;
      result.peer_name = "EnvPool";
    }
    if (figure.bare_steps_per_second > 0) {
      if (result.bar == 0) result.bar = 0.95 * figure.bare_steps_per_second;
      result.peer_name +=
          fmt::format("{}{:.0f} % of a bare loop, {}", result.peer_name.empty() ? "" : "; ",
                      100 * figure.ratio, HumanCount(figure.bare_steps_per_second));
    }
    results.push_back(result);
  };
  if (!games_alone && !bridges_alone) {
    for (const auto& figure : BenchEnvironments(ids, 1)) add(figure);
    if (threads > 1) {
      for (const auto& figure : BenchEnvironments(ids, threads)) add(figure);
    }
    for (const std::string& each : id.empty() ? std::vector<std::string>{"CartPole-v1"} : ids) {
      add(BenchVectorEnvironment(each, threads));
      results.back().name += "_async";
    }
  }
  if (!no_games && !bridges_alone) {
    for (const GameFigure& figure : BenchGames(id)) {
      results.push_back({.name = "game_" + figure.id,
                         .unit = "moves_per_second",
                         .median = figure.moves_per_second,
                         .low = figure.low,
                         .high = figure.high});
    }
  }
  if (only.empty() || bridges_alone) AddBridges(only, results);
  Print(results, options);
  return 0;
}

// Peers' tokens per second on two threads, and the bars, which hold for 457 GFLOP/s of f32 and
// 55 GB/s.
struct LanguagePeer {
  const char* name;
  double bar, peer;
  const char* peer_name;
};
constexpr LanguagePeer kLanguagePeers[] = {
    {"decode_bf16_1", 170, 126, "llama.cpp (transformers 41)"},
    {"decode_bf16_8", 1000, 208, "transformers"},
    {"decode_bf16_32", 2200, 373, "transformers"},
    {"prefill_bf16_512", 3000, 2630, "transformers, batch 32 x 64 (llama.cpp 1,428)"},
    {"decode_f32_1", 88, 87, "llama.cpp (transformers 24)"},
    {"prefill_f32_512", 1500, 956, "llama.cpp (transformers 865)"},
    {"decode_q4_1_1", 330, 183, "llama.cpp"},
    {"prefill_q4_1_512", 1700, 492, "llama.cpp"},
    {"decode_q4_1_int8_1", 330, 183, "llama.cpp, which rounds activations too"},
    {"decode_q4_1_int8_32", 2200, 373, "transformers in bf16"},
    {"prefill_q4_1_int8_512", 1700, 492, "llama.cpp"},
    {"finetune_bf16_4x256", 700, 545, "torch, best of 517-545 (TRL 285)"},
    {"finetune_f32_4x256", 420, 197, "torch, best of 181-197 (TRL 132)"},
    {"lora_bf16_4x256", 1000, 548, "torch, r = 16 on all linear layers"},
    {"lora_f32_4x256", 600, 271, "torch, r = 16 on all linear layers"},
    {"gpt2_bf16_4x64", 620, 395, "torch"},
    {"gpt2_f32_4x64", 400, 171, "torch (llm.c 87)"},
    {"first_token", 0.3, 0.15, "llama.cpp loads in 0.07-0.15 s (transformers 3.4 s)"},
};

// The fastest peer of those sampled here and, by name, the others.
void SetPeer(const std::map<std::string, std::vector<double>>& samples, Result& result) {
  if (samples.empty()) return;
  std::vector<std::pair<double, std::string>> peers;
  for (auto [name, values] : samples) {
    std::ranges::sort(values);
    peers.emplace_back(values[values.size() / 2], name);
  }
  std::ranges::sort(peers);
  if (result.unit != "seconds") std::ranges::reverse(peers);
  result.peer = peers[0].first;
  result.peer_name = peers[0].second + ", in turns";
  for (size_t i = 1; i < peers.size(); ++i) {
    result.peer_name +=
        fmt::format(", {} {}", peers[i].second, Format(peers[i].first, result.unit));
  }
}

int BenchLanguage(const BenchOptions& options, int threads) {
  LanguageBench bench(threads);
  std::optional<LanguagePeers> peers;
  if (options.peers) peers.emplace(threads);
  std::vector<Result> results;
  for (const LanguagePeer& peer : kLanguagePeers) {
    const std::string name = peer.name;
    if (!options.only.empty() && options.only != name) continue;
    LogInfo("measuring " + name);
    const std::string unit = name == "first_token" ? "seconds" : "tokens_per_second";
    bench.Measure(name);  // loads the model
    std::map<std::string, std::vector<double>> theirs;
    if (peers) peers->Measure(name);
    const auto measure = [&] {
      if (peers) {
        for (const auto& [program, figure] : peers->Measure(name))
          theirs[program].push_back(figure);
      }
      return bench.Measure(name);
    };
    results.push_back(
        Measure({name, unit, peer.bar, peer.peer, peer.peer_name, measure}, options.repeats));
    SetPeer(theirs, results.back());
  }
  if (results.empty()) {
    std::vector<std::string> names;
    for (const LanguagePeer& peer : kLanguagePeers) names.emplace_back(peer.name);
    throw Error(ErrorCode::kConfig,
                "there is no row " + options.only + DidYouMean(options.only, names));
  }
  Print(results, options);
  return 0;
}

}  // namespace

int Bench(const BenchOptions& options) {
  const int threads = options.threads > 0
                          ? options.threads
                          : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (options.peers && options.what != "language" && options.what != "rlhf") {
    throw Error(ErrorCode::kConfig, "--peers is of weft bench language and weft bench rlhf");
  }
  if (options.what == "machine") return BenchMachine(options, threads);
  if (options.what == "rlhf") return BenchRlhf(options, threads);
  if (options.what == "environments") return BenchAllEnvironments(options, threads);
  if (options.what == "language") return BenchLanguage(options, threads);
  return BenchLearn(options);
}

}  // namespace weft
