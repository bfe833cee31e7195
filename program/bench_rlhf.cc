#include "program/bench_rlhf.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "program/bench_peers.h"
#include "program/results_table.h"
#include "program/train_once.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// What is measured of several runs of a row.
double Median(const std::vector<Json>& runs, const std::function<double(const Json&)>& of) {
  std::vector<double> values;
  for (const Json& run : runs) values.push_back(of(run));
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct Table {
  std::string mark;  // of the section in a Markdown file
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<Json> lines;
};

void Print(const Table& table, const BenchOptions& options) {
  if (table.rows.empty()) return;
  if (options.json) {
    for (const Json& line : table.lines) fmt::print("{}\n", line.dump());
  } else {
    fmt::print("{}", FormatTable(table.header, table.rows));
  }
  if (!options.write.empty()) UpdateTable(options.write, table.mark, table.header, table.rows);
}

// Steps of RLHF on SmolLM2-135M-Instruct in a process of their own, beside TRL 1.16's of the same
// shape; bars and peers hold for two cores.
struct RlhfPeer {
  const char *name, *config, *precision;
  int micro_batch_tokens;
  double bar, peer;
  const char* peer_name;
};
constexpr RlhfPeer kRlhfPeers[] = {
    {"grpo_8x4x32_bf16", "configs/bench/grpo_8x4x32.yaml", "bf16", 512, 5, 13.2,
     "TRL GRPO, 6.2 GB"},
    {"grpo_8x4x32_f32", "configs/bench/grpo_8x4x32.yaml", "f32", 256, 9, 26.3, "TRL GRPO, 9.3 GB"},
    {"ppo_8x4x32_bf16", "configs/bench/ppo_8x4x32.yaml", "bf16", 512, 8, 13.2,
     "TRL GRPO (it has no PPO any more)"},
};

// TRL's figures are those of RlhfPeer or, where there is a model for it, measured here.
void AddStep(const RlhfPeer& peer, const PeerModel* model, const BenchOptions& options, int threads,
             Table& table) {
  LogInfo(std::string("measuring ") + peer.name);
  std::vector<Json> runs;
  std::vector<TrlFigure> theirs;
  for (int i = 0; i < options.repeats; ++i) {
    if (model != nullptr) theirs.push_back(MeasureTrl(*model, peer.precision, threads));
    runs.push_back(
        Json::parse(TrainOnce({peer.config, std::string("precision=") + peer.precision,
                               fmt::format("micro_batch_tokens={}", peer.micro_batch_tokens),
                               fmt::format("threads={}", threads)})));
  }
  const auto phase = [&](const char* name) {
    return Median(runs, [&](const Json& run) { return run.at("seconds").value(name, 0.0); });
  };
  const double generate = phase("generate"), score = phase("reference") + phase("reward"),
               learn = phase("learn"), step = generate + score + learn;
  const double peak =
      Median(runs, [](const Json& run) { return run.at("peak_bytes").get<double>(); });
  double their_step = peer.peer;
  std::string their_name = peer.peer_name;
  if (!theirs.empty()) {
    std::ranges::sort(theirs, {}, &TrlFigure::seconds);
    const TrlFigure& figure = theirs[theirs.size() / 2];
    their_step = figure.seconds;
    their_name = fmt::format("TRL GRPO, in turns, generate {:.2f}, {:.1f} GB", figure.generate,
                             figure.peak_bytes * 1e-9);
  }
  table.lines.push_back({{"name", peer.name},
                         {"seconds_per_step", step},
                         {"generate", generate},
                         {"score", score},
                         {"learn", learn},
                         {"peak_bytes", static_cast<int64_t>(peak)},
                         {"bar", peer.bar},
                         {"peer", their_step},
                         {"peer_name", their_name},
                         {"ratio", their_step / step}});
  table.rows.push_back({peer.name, fmt::format("{:.2f} s", step), fmt::format("{:.2f}", generate),
                        fmt::format("{:.2f}", score), fmt::format("{:.2f}", learn),
                        fmt::format("{:.2f} GB", peak * 1e-9), fmt::format("{:.0f} s", peer.bar),
                        fmt::format("{:.1f} s", their_step),
                        fmt::format("{:.2f}", their_step / step), their_name});
}

// A small model from scratch on the characters of tinyshakespeare, beside torch in the same
// setting. Each repeat is another seed.
constexpr const char* kPretrain = "pretrain_tinyshakespeare";

// The text where this machine has it; "" where not.
std::string TinyShakespeare() {
  const char* reference = std::getenv("WEFT_REFERENCE");
  for (const std::string& path :
       {std::string("tinyshakespeare.txt"),
        std::string(reference == nullptr ? "." : reference) + "/datasets/tinyshakespeare.txt"}) {
    if (FileExists(path)) return path;
  }
  return {};
}

void AddPretraining(const BenchOptions& options, int threads, Table& table) {
  constexpr double kBar = 80, kPeer = 30.7, kLossBar = 1.91, kPeerLoss = 1.906;
  const std::string text = TinyShakespeare();
  if (text.empty()) {
    LogWarn(std::string(kPretrain) +
            " is left out: neither this folder nor $WEFT_REFERENCE/datasets has a "
            "tinyshakespeare.txt");
    return;
  }
  LogInfo(std::string("measuring ") + kPretrain);
  std::vector<Json> runs;
  double loss = 0;
  for (int i = 0; i < options.repeats; ++i) {
    runs.push_back(Json::parse(
        TrainOnce({"configs/rlhf/shakespeare_pretrain.yaml", "data.files=" + text,
                   fmt::format("seed={}", i + 1), fmt::format("threads={}", threads)})));
    loss += runs.back().at("evaluation").at("held_out_loss").get<double>() / options.repeats;
  }
  const double rate =
      Median(runs, [](const Json& run) { return 1 / run.at("seconds_per_step").get<double>(); });
  table.lines.push_back({{"name", kPretrain},
                         {"steps_per_second", rate},
                         {"validation_loss", loss},
                         {"seeds", options.repeats},
                         {"bar", kBar},
                         {"loss_bar", kLossBar},
                         {"peer", kPeer},
                         {"peer_loss", kPeerLoss},
                         {"peer_name", "torch"},
                         {"ratio", rate / kPeer}});
  table.rows.push_back({kPretrain, fmt::format("{:.1f}", rate), fmt::format("{:.0f}", kBar),
                        fmt::format("{:.1f}", kPeer), fmt::format("{:.2f}", rate / kPeer),
                        fmt::format("{:.3f}", loss), fmt::format("{:.2f}", kLossBar),
                        fmt::format("{:.3f}", kPeerLoss), "torch"});
}

}  // namespace

int BenchRlhf(const BenchOptions& options, int threads) {
  Table steps{.mark = "weft bench rlhf",
              .header = {"row", "step", "generate", "score", "learn", "peak", "bar", "peer",
                         "ratio", "peer's name"},
              .rows = {},
              .lines = {}};
  Table pretraining{.mark = "weft bench pretraining",
                    .header = {"row", "steps/s", "bar", "peer", "ratio", "validation loss",
                               "bar of loss", "peer's loss", "peer's name"},
                    .rows = {},
                    .lines = {}};
  std::vector<std::string> names = {kPretrain};
  for (const RlhfPeer& peer : kRlhfPeers) names.emplace_back(peer.name);
  if (!options.only.empty() && std::ranges::find(names, options.only) == names.end()) {
    throw Error(ErrorCode::kConfig,
                "there is no row " + options.only + DidYouMean(options.only, names));
  }
  std::optional<PeerModel> model;
  if (options.peers && options.only != kPretrain) model.emplace(std::vector<std::string>{});
  for (const RlhfPeer& peer : kRlhfPeers) {
    if (options.only.empty() || options.only == peer.name) {
      AddStep(peer, model ? &*model : nullptr, options, threads, steps);
    }
  }
  if (options.only.empty() || options.only == kPretrain) {
    AddPretraining(options, threads, pretraining);
  }
  Print(steps, options);
  Print(pretraining, options);
  return 0;
}

}  // namespace weft
