// Videos on the way of a run: there in every placement, and the run does not know.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/program/weft_process.h"

namespace weft {
namespace {

using Json = nlohmann::json;

constexpr char kConfig[] =
    "algorithm: ppo\ntotal_steps: 1200\nthreads: 2\nenvironment: {id: CartPole-v1, rows: 4}\n"
    "rollout_steps: 32\nminibatch: 64\nprocesses: 2\n"
    "evaluation: {every: 500, episodes: 2, final_episodes: 0}\n"
    "checkpoint: {every: 300, min_seconds: 0}\n";

// The videos of a run by name.
std::map<std::string, std::string> Videos(const WeftProcess& weft, const std::string& run) {
  std::map<std::string, std::string> videos;
  const std::string folder = weft.folder() + "/runs/" + run + "/videos";
  if (!std::filesystem::exists(folder)) return videos;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string name = file.path().filename();
    videos[name] = weft.Read("runs/" + run + "/videos/" + name);
  }
  return videos;
}

Json Trained(const WeftProcess& weft, const std::string& arguments) {
  const auto result = weft.Run("train config.yaml --json " + arguments);
  EXPECT_EQ(result.status, 0) << result.error;
  return Json::parse(result.LastLine());
}

TEST(Video, LeavesTheRunAsItIsInEveryPlacement) {
  const WeftProcess weft;
  weft.Write("config.yaml", kConfig);
  const Json without = Trained(weft, "run=without");
  EXPECT_TRUE(Videos(weft, "without").empty());
  std::map<std::string, std::string> first;
  for (const std::string placement : {"serial", "threads", "split_actors"}) {
    const Json with = Trained(weft, "video_every=400 run=" + placement + " placement=" + placement);
    EXPECT_EQ(with.at("parameter_hash"), without.at("parameter_hash")) << placement;
    const auto videos = Videos(weft, placement);
    EXPECT_EQ(videos.size(), 3u) << "after 400 and 800 steps, and of the end";
    EXPECT_TRUE(videos.contains(std::to_string(with.at("steps").get<int64_t>()) + ".gif"));
    for (const auto& [name, gif] : videos) EXPECT_EQ(gif.substr(0, 6), "GIF89a") << name;
    if (first.empty()) first = videos;
    EXPECT_TRUE(first == videos) << placement << ": other videos than serially";
  }
}

TEST(Video, ResumedRunsFilmTheRest) {
  const WeftProcess weft;
  weft.Write("config.yaml", kConfig);
  const Json whole = Trained(weft, "video_every=400 run=whole");
  Trained(weft, "run=parts total_steps=600");
  const auto resumed = weft.Run("resume parts video_every=400 total_steps=1200 --json");
  ASSERT_EQ(resumed.status, 0) << resumed.error;
  EXPECT_EQ(Json::parse(resumed.LastLine()).at("parameter_hash"), whole.at("parameter_hash"));
  const auto all = Videos(weft, "whole"), rest = Videos(weft, "parts");
  EXPECT_EQ(rest.size(), 2u);
  for (const auto& [name, gif] : rest) {
    ASSERT_TRUE(all.contains(name)) << name;
    EXPECT_TRUE(all.at(name) == gif) << name;
  }
}

TEST(Video, IsTriedBeforeTheRunBegins) {
  const WeftProcess weft;
  weft.Write("config.yaml", kConfig);
  const auto result = weft.Run("train config.yaml video_every=400 environment.id=Blackjack-v1");
  EXPECT_EQ(result.status, 78);
  EXPECT_NE(result.error.find("video_every"), std::string::npos) << result.error;
  EXPECT_NE(result.error.find("Blackjack-v1"), std::string::npos) << result.error;
  EXPECT_FALSE(std::filesystem::exists(weft.folder() + "/runs"));
}

}  // namespace
}  // namespace weft
