#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "language/chat_model.h"
#include "language/language_head.h"
#include "program/commands.h"
#include "program/language_machine.h"

namespace weft {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

// log p of every token but the first, given those of its window; windows begin `stride` apart.
std::vector<double> LogProbabilities(const Context& context, Transformer& model,
                                     std::span<const int32_t> ids, int64_t window, int64_t stride) {
  std::vector<double> log_p;
  int64_t scored_to = 0;  // ids up to here are scored
  for (int64_t begin = 0; scored_to + 1 < std::ssize(ids); begin += stride) {
    const int64_t count = std::min(window, std::ssize(ids) - begin);
    const std::span part = ids.subspan(begin, count);
    std::vector<int32_t> positions(count), targets(count, -1);
    for (int64_t i = 0; i < count; ++i) {
      positions[i] = static_cast<int32_t>(i);
      if (i + 1 < count && begin + i + 1 > scored_to) targets[i] = part[i + 1];
    }
    const kernels::AttentionSpan span{0, count, 0, nullptr};
    const Tensor rows =
        model.Forward(context, {.ids = part, .positions = positions, .spans = {&span, 1}}, nullptr);
    const TokenScores scores = ScoreTokens(context, model, rows, targets, {});
    for (int64_t i = 0; i < count; ++i) {
      if (targets[i] >= 0) log_p.push_back(scores.log_probability.data<float>()[i]);
    }
    scored_to = begin + count - 1;
  }
  return log_p;
}

double MeanLoss(std::span<const double> log_p) {
  return -std::accumulate(log_p.begin(), log_p.end(), 0.0) / static_cast<double>(log_p.size());
}

// What rounding rows to 8 bits does to a text's tokens.
struct RoundingError {
  double perplexity = 0;         // without it
  double mean = 0, largest = 0;  // |difference of log p|
};
RoundingError Compare(std::span<const double> exact, std::span<const double> rounded) {
  RoundingError error{.perplexity = std::exp(MeanLoss(exact))};
  for (size_t i = 0; i < exact.size(); ++i) {
    const double difference = std::abs(exact[i] - rounded[i]);
    error.mean += difference / static_cast<double>(exact.size());
    error.largest = std::max(error.largest, difference);
  }
  return error;
}

}  // namespace

int Perplexity(const PerplexityOptions& options) {
  const LanguageMachine machine(options.threads);
  LoadOptions load = LoadOptionsOf(options.precision, options.adapter);
  const ChatModel chat = LoadChatModel(machine.context, options.model, load);
  const std::vector<int32_t> ids = chat.tokenizer.Encode(ReadFile(options.file));
  const int64_t window = std::min(options.context, chat.model->config().context);
  const int64_t stride = options.stride > 0 ? std::min(options.stride, window) : window;
  if (std::ssize(ids) < 2) {
    throw Error(ErrorCode::kInvalidArgument, options.file + " has less than two tokens");
  }
  const auto start = Clock::now();
  const std::vector<double> log_p =
      LogProbabilities(machine.context, *chat.model, ids, window, stride);
  const std::chrono::duration<double> seconds = Clock::now() - start;
  const double loss = MeanLoss(log_p), perplexity = std::exp(loss);
  Json json = {{"perplexity", perplexity}, {"loss", loss}, {"tokens", log_p.size()}};
  std::string text = fmt::format(
      "perplexity {:.4f} ({:.5f} nats a token) over {} tokens, {:.0f} tokens/s\n", perplexity, loss,
      log_p.size(), static_cast<double>(log_p.size()) / seconds.count());
  if (load.round_rows) {
    load.round_rows = false;
    const ChatModel exact = LoadChatModel(machine.context, options.model, load);
    const RoundingError error =
        Compare(LogProbabilities(machine.context, *exact.model, ids, window, stride), log_p);
    json["unrounded_perplexity"] = error.perplexity;
    json["log_p_error"] = {{"mean", error.mean}, {"largest", error.largest}};
    text += fmt::format(
        "without rounding activations to 8 bits {:.4f}; it moves log p by {:.4f} in the mean, at "
        "most by {:.3f}\n",
        error.perplexity, error.mean, error.largest);
  }
  if (options.json) {
    fmt::print("{}\n", json.dump());
  } else {
    fmt::print("{}", text);
  }
  return 0;
}

}  // namespace weft
