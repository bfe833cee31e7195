// weft play as a user meets it: files, text and what is said when something is missing.
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/program/weft_process.h"

namespace weft {
namespace {

using Json = nlohmann::json;

constexpr char kShort[] =
    "algorithm: ppo\ntotal_steps: 512\nthreads: 1\nenvironment: {id: CartPole-v1, rows: 4}\n"
    "rollout_steps: 32\nminibatch: 64\nevaluation: {final_episodes: 0}\n";

int LittleEndian(const std::string& bytes, size_t at) {
  return static_cast<uint8_t>(bytes.at(at)) | static_cast<uint8_t>(bytes.at(at + 1)) << 8;
}

TEST(Play, WritesAGifOfRandomActions) {
  const WeftProcess weft;
  const auto played =
      weft.Run("play random CartPole-v1 --seconds 2 --width 300 -o cart.gif --json");
  ASSERT_EQ(played.status, 0) << played.error;
  const Json line = Json::parse(played.LastLine());
  EXPECT_EQ(line.at("environment"), "CartPole-v1");
  EXPECT_EQ(line.at("steps"), 100) << "2 s of 50 steps";
  EXPECT_GE(line.at("frames").get<int>(), 51) << "every second step, and the ends of episodes";
  const std::string gif = weft.Read("cart.gif");
  EXPECT_EQ(gif.substr(0, 6), "GIF89a");
  EXPECT_EQ(LittleEndian(gif, 6), 300);
  EXPECT_EQ(LittleEndian(gif, 8), 200) << "the proportions of 600 x 400";

  const auto again = weft.Run("play random CartPole-v1 --seconds 2 --width 300 -o again.gif");
  ASSERT_EQ(again.status, 0) << again.error;
  EXPECT_EQ(gif, weft.Read("again.gif")) << "the same seed, the same film";
  weft.Run("play random CartPole-v1 --seconds 2 --width 300 --seed 5 -o other.gif");
  EXPECT_NE(gif, weft.Read("other.gif"));
}

TEST(Play, ArgumentsReachTheEnvironment) {
  const WeftProcess weft;
  const auto played =
      weft.Run("play random CartPole-v1 sutton_barto_reward=true -o last.png --json");
  ASSERT_EQ(played.status, 0) << played.error;
  EXPECT_EQ(Json::parse(played.LastLine()).at("returns"), Json({-1.0}));
  EXPECT_EQ(weft.Read("last.png").substr(1, 3), "PNG");
  const auto wrong = weft.Run("play random CartPole-v1 suton_barto_reward=true -o last.png");
  EXPECT_EQ(wrong.status, 78);
  EXPECT_NE(wrong.error.find("did you mean"), std::string::npos) << wrong.error;
}

TEST(Play, ShowsTheSameEpisodesOfARunAndOfItsCheckpoint) {
  const WeftProcess weft;
  weft.Write("short.yaml", kShort);
  ASSERT_EQ(weft.Run("train short.yaml run=one").status, 0);
  const auto run = weft.Run("play one --episodes 2 -o frames --json");
  ASSERT_EQ(run.status, 0) << run.error;
  const Json line = Json::parse(run.LastLine());
  EXPECT_EQ(line.at("returns").size(), 2u);
  size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(weft.folder() + "/frames")) {
    files += file.path().extension() == ".png" ? 1 : 0;
  }
  EXPECT_EQ(files, line.at("frames").get<size_t>());
  EXPECT_TRUE(std::filesystem::exists(weft.folder() + "/frames/000000.png"));
  EXPECT_EQ(weft.Run("play one -o frames").status, 78) << "frames of another film are there";

  std::string checkpoint;
  for (const auto& folder :
       std::filesystem::directory_iterator(weft.folder() + "/runs/one/checkpoints")) {
    checkpoint = std::max(checkpoint, folder.path().string());
  }
  const auto same = weft.Run("play " + checkpoint + " --episodes 2 -o again.png --json");
  ASSERT_EQ(same.status, 0) << same.error;
  EXPECT_EQ(Json::parse(same.LastLine()).at("returns"), line.at("returns"));
}

TEST(Play, PrintsTheFramesOfTextEnvironments) {
  const WeftProcess weft;
  const auto played = weft.Run("play random FrozenLake-v1 is_slippery=false --steps 2 --seed 4");
  ASSERT_EQ(played.status, 0) << played.error;
  EXPECT_EQ(played.out.find("a new episode\n[S] F  F  F \n"), 0u) << played.out;
  EXPECT_NE(played.out.find("step 1, action "), std::string::npos) << played.out;
  EXPECT_NE(played.out.find("FrozenLake-v1: 2 steps"), std::string::npos) << played.out;
  const auto quiet = weft.Run("play random FrozenLake-v1 --steps 2 --json");
  EXPECT_EQ(Json::parse(quiet.out).at("steps"), 2) << "one line alone";
}

TEST(Play, ShowsAllTheEpisodesThatAreAskedFor) {
  const WeftProcess weft;
  const auto played = weft.Run("play random Pendulum-v1 --episodes 6 --fps 1 -o last.png --json");
  ASSERT_EQ(played.status, 0) << played.error;
  const Json line = Json::parse(played.LastLine());
  EXPECT_EQ(line.at("steps"), 6 * 200);
  EXPECT_EQ(line.at("returns").size(), 6u);
  EXPECT_EQ(line.at("frames"), 6 * 11) << "each 20th of 200 steps, and the first";
}

TEST(Play, SaysWhatThereIsInstead) {
  const WeftProcess weft;
  const auto expect = [&](const std::string& arguments, int status, const std::string& says) {
    const auto result = weft.Run("play " + arguments);
    EXPECT_EQ(result.status, status) << arguments << result.error;
    EXPECT_NE(result.error.find(says), std::string::npos) << result.error;
  };
  expect("random CartPole-v1", 78, "--output FILE.gif");
  expect("random CartPole-v1 -o film.avi", 78, ".mp4");
  expect("random CartPole-v1 -o film.gif --camera top", 78, "no cameras");
  expect("random CartPole-v1 -o film.gif --width 100000", 78, "8192");
  expect("random CartPole-v2 -o film.gif", 78, "CartPole-v1");
  expect("random", 78, "weft list environments");
  expect("missing -o film.gif", 78, "missing");
  EXPECT_FALSE(std::filesystem::exists(weft.folder() + "/film.gif"));
}

// A stand-in for ffmpeg that keeps its arguments and what it read.
TEST(Play, FeedsFfmpegWithRawFrames) {
  const WeftProcess weft;
  weft.Write("ffmpeg",
             "#!/bin/sh\necho \"$@\" >arguments.txt\ncat >frames.raw\n"
             "for last; do :; done\necho film >\"$last\"\n");
  std::filesystem::permissions(weft.folder() + "/ffmpeg", std::filesystem::perms::owner_all);
  const auto played = weft.Run("play random Pendulum-v1 --steps 5 --width 64 --height 32 -o p.mp4",
                               "env PATH=.:/bin:/usr/bin");
  ASSERT_EQ(played.status, 0) << played.error;
  EXPECT_EQ(weft.Read("frames.raw").size(), 6u * 64 * 32 * 3);
  const std::string arguments = weft.Read("arguments.txt");
  for (const char* part : {"-video_size 64x32", "-framerate 20", "-pixel_format rgb24"}) {
    EXPECT_NE(arguments.find(part), std::string::npos) << arguments;
  }
  EXPECT_EQ(weft.Read("p.mp4"), "film\n");
  EXPECT_FALSE(std::filesystem::exists(weft.folder() + "/p.mp4.part"));
}

TEST(Play, SurvivesAnFfmpegThatFailsOrIsMissing) {
  const WeftProcess weft;
  const auto missing = weft.Run("play random Pendulum-v1 -o p.mp4", "env PATH=/nowhere");
  EXPECT_EQ(missing.status, 70);
  EXPECT_NE(missing.error.find("install the Debian package ffmpeg, or write a .gif"),
            std::string::npos)
      << missing.error;
  weft.Write("ffmpeg", "#!/bin/sh\nexit 3\n");
  std::filesystem::permissions(weft.folder() + "/ffmpeg", std::filesystem::perms::owner_all);
  const auto failed = weft.Run("play random Pendulum-v1 -o p.mp4", "env PATH=.:/bin:/usr/bin");
  EXPECT_NE(failed.status, 0);
  EXPECT_NE(failed.error.find("ffmpeg"), std::string::npos) << failed.error;
  EXPECT_FALSE(std::filesystem::exists(weft.folder() + "/p.mp4"));
  EXPECT_FALSE(std::filesystem::exists(weft.folder() + "/p.mp4.part"));
}

TEST(Play, RendersMujocoByEitherLibrary) {
  const WeftProcess weft;
  const std::string play = "play random HalfCheetah-v5 --steps 2 --width 200 -o ";
  const auto egl = weft.Run(play + "egl.png", "env MUJOCO_GL=egl");
  const auto mesa = weft.Run(play + "osmesa.png", "env MUJOCO_GL=osmesa");
  if (egl.status != 0 || mesa.status != 0) GTEST_SKIP() << egl.error << mesa.error;
  EXPECT_EQ(weft.Read("egl.png"), weft.Read("osmesa.png"));
  const auto either = weft.Run(play + "either.png");
  EXPECT_EQ(either.status, 0) << either.error;
  EXPECT_EQ(weft.Read("egl.png"), weft.Read("either.png"));
}

// Files that are no libraries stand before those of the system.
TEST(Play, NamesThePackagesWhenNeitherLibraryLoads) {
  const WeftProcess weft;
  weft.Write("libEGL.so.1", "");
  weft.Write("libOSMesa.so.8", "");
  const auto played = weft.Run("play random HalfCheetah-v5 --steps 2 -o film.gif",
                               "env LD_LIBRARY_PATH=" + weft.folder());
  EXPECT_EQ(played.status, 70) << played.error;
  for (const char* part : {"libEGL.so.1", "libOSMesa.so.8", "libegl1", "libosmesa6"}) {
    EXPECT_NE(played.error.find(part), std::string::npos) << played.error;
  }
  EXPECT_FALSE(std::filesystem::exists(weft.folder() + "/film.gif"));
  const auto unknown =
      weft.Run("play random HalfCheetah-v5 --steps 2 -o film.gif", "env MUJOCO_GL=glfw");
  EXPECT_EQ(unknown.status, 78);
  EXPECT_NE(unknown.error.find("osmesa"), std::string::npos) << unknown.error;
}

}  // namespace
}  // namespace weft
