#include "actors/film.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "base/check.h"
#include "base/file.h"
#include "base/log.h"
#include "environments/drawing/canvas.h"
#include "environments/drawing/gif_file.h"

namespace weft {
namespace {

// Of the videos of a run.
constexpr int64_t kVideoSide = 320;  // pixels of the longer side
constexpr int64_t kVideoFrames = 150;
constexpr double kVideoFramesPerSecond = 15;

}  // namespace

FilmResult RunFilm(BatchEnvironment& batch, const FilmOptions& options,
                   const std::function<Tensor(const TimeStep&)>& choose,
                   const std::function<void(const FilmStep&)>& show) {
  WEFT_CHECK_EQ(batch.rows(), batch.spec().agent_count()) << "rows of a film";
  FilmResult result;
  TimeStep step = batch.MakeTimeStep();
  Tensor action;
  batch.Reset(step);
  int64_t number = 0, episode = -1;
  while (true) {
    const auto types = step.type.data<uint8_t>();
    const bool last = std::ranges::all_of(
        types, [](uint8_t type) { return type == static_cast<uint8_t>(StepType::kLast); });
    if (const int64_t id = step.episode_id.data<int64_t>()[0]; id != episode) {
      episode = id;
      number = 0;
      action = {};
      result.returns.push_back(0);
    } else {
      ++number;
      ++result.steps;
    }
    for (const float reward : step.reward.data<float>()) result.returns.back() += reward;
    show({.action = action, .result = step, .number = number, .last = last});
    if (result.steps >= options.steps) break;
    if (last && std::ssize(result.returns) >= options.episodes) break;
    action = choose(step);
    batch.Step(action, step);
  }
  return result;
}

FrameRate::FrameRate(double steps_per_second, double most_frames_per_second)
    : every(static_cast<int64_t>(
          std::clamp(std::ceil(steps_per_second / most_frames_per_second - 1e-6), 1.0, 1e9))),
      frames_per_second(steps_per_second / static_cast<double>(every)) {}

bool FrameRate::Takes(const FilmStep& step) const {
  return step.number % every == 0 || step.last;
}

PictureSize SizeOfPicture(const EnvironmentSpec& spec, const PictureSize& wanted) {
  constexpr int64_t kMost = 8192;
  const Appearance& usual = spec.appearance;
  if (usual.width == 0) {
    throw Error(ErrorCode::kConfig, spec.id + " draws no pictures");
  }
  const auto scaled = [](int64_t side, int64_t other, int64_t usual_other) {
    return std::max<int64_t>(1,
                             std::llround(static_cast<double>(side) * static_cast<double>(other) /
                                          static_cast<double>(usual_other)));
  };
  PictureSize size = wanted;
  if (size.width < 0 || size.height < 0 || size.width > kMost || size.height > kMost) {
    throw Error(ErrorCode::kConfig, "a picture of " + std::to_string(size.width) + " x " +
                                        std::to_string(size.height) +
                                        " pixels: both sides must be 1 to 8192");
  }
  if (size.width == 0 && size.height == 0) size = {usual.width, usual.height};
  if (size.width == 0) size.width = std::min(kMost, scaled(usual.width, size.height, usual.height));
  if (size.height == 0)
    size.height = std::min(kMost, scaled(usual.height, size.width, usual.width));
  return size;
}

std::vector<Rng> FilmRngs(const BatchEnvironment& batch, uint64_t seed) {
  std::vector<Rng> rngs;
  for (int64_t row = 0; row < batch.rows(); ++row)
    rngs.emplace_back(seed, Purpose::kEvaluationAction, static_cast<uint64_t>(row));
  return rngs;
}

void RenderFilm(const BatchEnvironment& batch, const std::string& camera, Picture& picture) {
  Canvas canvas(picture, camera);
  batch.Render(0, canvas);
}

namespace {

PictureSize SizeOfVideo(const EnvironmentSpec& spec) {
  const PictureSize usual = SizeOfPicture(spec, {});
  return usual.width >= usual.height
             ? SizeOfPicture(spec, {.width = std::min(usual.width, kVideoSide)})
             : SizeOfPicture(spec, {.height = std::min(usual.height, kVideoSide)});
}

std::unique_ptr<BatchEnvironment> VideoBatch(const EnvironmentConfig& environment, uint64_t seed) {
  return MakeBatchEnvironment(environment, {.seed = seed, .purpose = Purpose::kEvaluation});
}

}  // namespace

std::string VideoPath(const std::string& run_folder, int64_t steps) {
  return run_folder + "/videos/" + std::to_string(steps) + ".gif";
}

void RecordVideo(const EnvironmentConfig& environment, Agent& agent, uint64_t seed,
                 const std::string& path) {
  const auto batch = VideoBatch(environment, seed);
  const FrameRate rate(batch->spec().appearance.frames_per_second, kVideoFramesPerSecond);
  const PictureSize size = SizeOfVideo(batch->spec());
  Picture picture(size.width, size.height);
  GifEncoder encoder(rate.frames_per_second);
  std::vector<Rng> rngs = FilmRngs(*batch, seed);
  const auto choose = [&](const TimeStep& step) {
    TensorMap chosen;
    const TensorMap leaves = step.Leaves();
    agent.Act({.step = leaves, .explore = false, .rngs = rngs}, chosen);
    return chosen.At("action");
  };
  const auto show = [&](const FilmStep& step) {
    if (!rate.Takes(step)) return;
    RenderFilm(*batch, "", picture);
    encoder.Add(picture);
  };
  RunFilm(*batch, {.steps = kVideoFrames * rate.every}, choose, show);
  try {
    MakeDirectories(std::filesystem::path(path).parent_path());
    WriteFileAtomic(path, encoder.Finish());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kIo) throw;
    LogWarn(std::string("no video: ") + error.what() + "; the run goes on");
  }
}

void CheckVideo(const EnvironmentConfig& environment) {
  const auto batch = VideoBatch(environment, 0);
  const PictureSize size = SizeOfVideo(batch->spec());
  Picture picture(size.width, size.height);
  TimeStep step = batch->MakeTimeStep();
  batch->Reset(step);
  RenderFilm(*batch, "", picture);
}

}  // namespace weft
