// One environment from step to step, to be shown: what `weft play` and the videos of a run share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "actors/agent.h"
#include "environments/batch_environment.h"
#include "environments/drawing/picture.h"
#include "environments/environment_config.h"

namespace weft {

struct FilmOptions {
  int64_t episodes = 1;
  int64_t steps = 1000;  // in all, at most
};

struct FilmResult {
  int64_t steps = 0;
  std::vector<double> returns;  // of the episodes, the last of which may be cut off; of all agents
};

// The step that was taken: its action (undefined after a reset) and where it led.
struct FilmStep {
  const Tensor& action;  // [G] or [G, A], of each agent; of most environments G is 1
  const TimeStep& result;
  int64_t number;  // of steps in the episode
  bool last;       // of it
};

// Resets a batch of one environment and steps it with what choose returns, until one of the
// options' limits is reached; show is called after the reset and after each step.
FilmResult RunFilm(BatchEnvironment& batch, const FilmOptions& options,
                   const std::function<Tensor(const TimeStep&)>& choose,
                   const std::function<void(const FilmStep&)>& show);

// Which steps become frames so that the film runs in the environment's own time at no more than so
// many frames per second: every `every`-th and the last of an episode.
struct FrameRate {
  FrameRate(double steps_per_second, double most_frames_per_second);
  bool Takes(const FilmStep& step) const;

  int64_t every;
  double frames_per_second;
};

// The size of a picture of the environment: 0 stands for its usual size or, when the other side is
// given, for what keeps its proportions. Throws Error(kConfig) when it draws no pictures or the
// sides are not in 1 .. 8192.
struct PictureSize {
  int64_t width = 0, height = 0;
};
PictureSize SizeOfPicture(const EnvironmentSpec& spec, const PictureSize& wanted);

// The file of a video in the folder of a run.
std::string VideoPath(const std::string& run_folder, int64_t steps);
// One episode of the policy's mode, or as much as fits into a small GIF, at path, whose folder is
// made. Throws as SizeOfPicture and RenderFilm do; a GIF that cannot be written is warned of.
void RecordVideo(const EnvironmentConfig& environment, Agent& agent, uint64_t seed,
                 const std::string& path);
// Throws what RecordVideo would: a video is tried before hours of training.
void CheckVideo(const EnvironmentConfig& environment);
// For the actions of a film, one of each row.
std::vector<Rng> FilmRngs(const BatchEnvironment& batch, uint64_t seed);
// Renders environment 0.
void RenderFilm(const BatchEnvironment& batch, const std::string& camera, Picture& picture);

}  // namespace weft
