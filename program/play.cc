// weft play: shows an environment, played by the policy of a run or at random, as pictures in a
// file or as text on the terminal.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "actors/film.h"
#include "base/text.h"
#include "program/commands.h"
#include "program/frame_writer.h"
#include "program/policy.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// Who acts where.
struct Player {
  EnvironmentConfig environment;
  uint64_t seed = 1;
  std::function<Tensor(const TimeStep&, std::span<Rng>)> choose;  // with an Rng for each row
};

Player RandomPlayer(const PlayOptions& options) {
  if (options.arguments.empty() || options.arguments[0].find('=') != std::string::npos) {
    throw Error(ErrorCode::kConfig,
                "weft play random ENVIRONMENT [key=value ...]: the environment is missing; "
                "`weft list environments` shows what there is");
  }
  ConfigSource source = ConfigSource::Text("{}", "weft play random " + options.arguments[0]);
  source.Override("id=" + options.arguments[0]);
  for (size_t i = 1; i < options.arguments.size(); ++i) {
    source.Override("arguments." + options.arguments[i]);
  }
  Player player;
  source.Parse(player.environment);
  if (options.seed >= 0) player.seed = static_cast<uint64_t>(options.seed);
  const Space space = player.environment.Spec().action;
  player.choose = [space](const TimeStep& step, std::span<Rng> rngs) {
    Tensor action = Tensor::Zeros(space.shape().Prepend(std::ssize(rngs)), space.dtype());
    SampleActions(space, step, rngs, action);
    return action;
  };
  return player;
}

Player PolicyPlayer(const PlayOptions& options) {
  if (!options.arguments.empty()) {
    throw Error(ErrorCode::kConfig, "\"" + options.arguments[0] +
                                        "\": a run is played as it was trained, without further "
                                        "arguments; `weft play random ENVIRONMENT` takes them");
  }
  const auto policy = std::make_shared<Policy>(Policy::Load(options.what));
  Player player;
  player.environment = policy->algorithm().environment;
  player.seed = options.seed >= 0 ? static_cast<uint64_t>(options.seed) : policy->algorithm().seed;
  player.choose = [policy, explore = options.explore](const TimeStep& step, std::span<Rng> rngs) {
    TensorMap chosen;
    const TensorMap leaves = step.Leaves();
    policy->agent().Act({.step = leaves, .explore = explore, .rngs = rngs}, chosen);
    return chosen.At("action");
  };
  return player;
}

std::string ActionText(const Tensor& action) {
  std::vector<std::string> values;
  for (int64_t i = 0; i < action.elements(); ++i) {
    const auto at = static_cast<size_t>(i);
    values.push_back(action.dtype() == DType::kInt64
                         ? fmt::format("{}", action.data<int64_t>()[at])
                         : fmt::format("{:.3g}", action.data<float>()[at]));
  }
  return Join(values, " ");
}

void PrintText(const BatchEnvironment& batch, const FilmStep& step) {
  if (step.action.defined()) {
    std::vector<std::string> rewards;
    for (const float reward : step.result.reward.data<float>())
      rewards.push_back(fmt::format("{:g}", reward));
    fmt::print("step {}, action {}, reward {}\n", step.number, ActionText(step.action),
               Join(rewards, " "));
  } else {
    fmt::print("a new episode\n");
  }
  std::string text = batch.Text(0);
  if (!text.ends_with('\n')) text += '\n';
  fmt::print("{}\n", text);
}

// "" when the batch can be shown as text, else what else there is.
std::string WhyNoText(BatchEnvironment& batch) {
  TimeStep step = batch.MakeTimeStep();
  batch.Reset(step);
  if (!batch.Text(0).empty()) return "";
  const std::string& id = batch.spec().id;
  if (batch.spec().appearance.width == 0) return id + " has neither a text form nor pictures";
  return id +
         " has no text form; add --output FILE.gif, FILE.mp4, FILE.png (the last frame) or "
         "FOLDER (a PNG each frame)";
}

void Report(const PlayOptions& options, const Player& player, const FilmResult& film,
            int64_t frames) {
  if (options.json) {
    fmt::print("{}\n", Json{{"played", options.what},
                            {"environment", player.environment.id},
                            {"seed", player.seed},
                            {"steps", film.steps},
                            {"returns", film.returns},
                            {"frames", frames},
                            {"output", options.output}}
                           .dump());
    return;
  }
  std::vector<std::string> returns;
  for (const double value : film.returns) returns.push_back(fmt::format("{:.6g}", value));
  fmt::print("{}: {} steps, return {}\n", player.environment.id, film.steps, Join(returns, ", "));
  if (!options.output.empty()) fmt::print("{}: {} frames\n", options.output, frames);
}

FilmOptions Limits(const PlayOptions& options, double steps_per_second) {
  constexpr int64_t kStepsOfAnEpisode = 1000;
  constexpr double kMostSteps = 1e9;
  FilmOptions limits{.episodes = std::max<int64_t>(1, options.episodes)};
  if (options.steps == 0 && options.seconds == 0) {
    limits.steps = kStepsOfAnEpisode * std::min<int64_t>(limits.episodes, 1'000'000);
    return limits;
  }
  limits.steps =
      options.steps > 0
          ? options.steps
          : std::llround(std::clamp(options.seconds * steps_per_second, 1.0, kMostSteps));
  if (options.episodes == 0) limits.episodes = limits.steps;  // as many as fit
  return limits;
}

}  // namespace

int Play(const PlayOptions& options) {
  const Player player = options.what == "random" ? RandomPlayer(options) : PolicyPlayer(options);
  const auto batch = MakeBatchEnvironment(player.environment,
                                          {.seed = player.seed, .purpose = Purpose::kEvaluation});
  std::vector<Rng> rngs = FilmRngs(*batch, player.seed);
  const auto choose = [&](const TimeStep& step) { return player.choose(step, rngs); };
  const double steps_per_second = batch->spec().appearance.frames_per_second;
  const FilmOptions limits = Limits(options, steps_per_second);
  if (options.output.empty()) {
    if (const std::string why = WhyNoText(*batch); !why.empty())
      throw Error(ErrorCode::kConfig, why);
    const auto show = [&](const FilmStep& step) {
      if (!options.json) PrintText(*batch, step);
    };
    Report(options, player, RunFilm(*batch, limits, choose, show), 0);
    return 0;
  }

  const PictureSize size =
      SizeOfPicture(batch->spec(), {.width = options.width, .height = options.height});
  const FrameRate rate(steps_per_second, options.frames_per_second);
  const auto writer = MakeFrameWriter(options.output, rate.frames_per_second);
  Picture picture(size.width, size.height);
  int64_t frames = 0;
  const auto show = [&](const FilmStep& step) {
    if (!rate.Takes(step)) return;
    RenderFilm(*batch, options.camera, picture);
    writer->Add(picture);
    ++frames;
  };
  const FilmResult film = RunFilm(*batch, limits, choose, show);
  writer->Finish();
  Report(options, player, film, frames);
  return 0;
}

}  // namespace weft
