// What holds of the environments on Box2D without recordings.
#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/config.h"
#include "environments/box2d/bipedal_terrain.h"
#include "environments/box2d/bipedal_walker_rules.h"
#include "environments/box2d/lunar_lander_rules.h"
#include "environments/box2d/race_track.h"
#include "environments/box2d/race_view.h"
#include "environments/drawing/canvas.h"
#include "environments/environment_row.h"
#include "nn/safetensors.h"

namespace weft {
namespace {

constexpr int64_t kNothing = 0, kLeft = 1, kMain = 2, kRight = 3;

EnvironmentRow Make(const std::string& id, const std::string& arguments = "{}") {
  const EnvironmentEntry& entry = Environments().At(id);
  const auto config = entry.make_arguments();
  ConfigSource::Text(arguments, "test").Parse(*config);
  return EnvironmentRow(entry.make(*config));
}

void Step(EnvironmentRow& row, int64_t action, Rng& rng) {
  row.Step({&action, DType::kInt64}, rng);
}

// Observations, rewards and ends of `steps` random steps, over episodes.
std::vector<double> Walk(EnvironmentRow& row, int steps, uint64_t seed) {
  Rng rng(seed, Purpose::kTest), action_rng(seed, Purpose::kTest, 1);
  std::vector<double> action(4), all;
  for (int t = 0; t < steps; ++t) {
    if (row.type() == StepType::kLast) {
      row.Reset(rng);
    } else {
      row.spec().action.Sample(action_rng, action.data());
      row.Step({action.data(), row.spec().action.dtype()}, rng);
    }
    const std::vector<double> observation = row.Observation();
    all.insert(all.end(), observation.begin(), observation.end());
    all.push_back(row.reward());
    all.push_back(row.discount());
  }
  return all;
}

TEST(LunarLanderRules, ShapeAndRewardAsWritten) {
  const std::array<double, 8> state{0.3, 0.4, -0.6, 0.8, -0.25, 3, 1, 0};
  EXPECT_DOUBLE_EQ(lunar_lander::Shaping(state), -50 - 100 - 25 + 10);
  EXPECT_DOUBLE_EQ(lunar_lander::Reward(2, {.main = 1, .side = -1}, {.x = 0.3}), 2 - 0.3 - 0.03);
  EXPECT_EQ(lunar_lander::Reward(2, {}, {.x = -1}), -100);
  EXPECT_EQ(lunar_lander::Reward(2, {}, {.crashed = true}), -100);
  EXPECT_EQ(lunar_lander::Reward(2, {}, {.crashed = true, .awake = false}), 100);
  EXPECT_FALSE((lunar_lander::Situation{.x = 0.999}).terminal());
}

TEST(LunarLanderRules, EnginesStartAtHalfPower) {
  const auto main = [](double throttle) {
    return lunar_lander::ContinuousEngines(throttle, 0).main;
  };
  EXPECT_EQ(main(0), 0);
  EXPECT_EQ(main(0.5), 0.75);
  EXPECT_EQ(main(7), 1);
  const auto side = [](double throttle) {
    return lunar_lander::ContinuousEngines(0, throttle).side;
  };
  EXPECT_EQ(side(0.5), 0);
  EXPECT_EQ(side(-0.75), -0.75);
  EXPECT_EQ(side(-3), -1);
  EXPECT_EQ(lunar_lander::DiscreteEngines(kLeft).side, -1);
}

// A step of 1/50 s adds g / 50 to the vertical speed, which is observed times 20 / 3 / 50.
TEST(LunarLander, FallsAsGravitySays) {
  for (const double gravity : {-10.0, -5.0}) {
    EnvironmentRow row = Make("LunarLander-v3", "{gravity: " + std::to_string(gravity) + "}");
    Rng rng(1, Purpose::kTest);
    row.Reset(rng);
    const double before = row.Observation()[3];
    for (int t = 0; t < 10; ++t) Step(row, kNothing, rng);
    // The legs swing, but the forces between them and the hull move the whole by little.
    EXPECT_NEAR(row.Observation()[3] - before, 10 * gravity / 50 * 20 / 3 / 50, 0.02);
  }
}

TEST(LunarLander, EnginesPushAndTurn) {
  std::array<double, 4> climb{}, spin{};
  for (const int64_t action : {kNothing, kLeft, kMain, kRight}) {
    EnvironmentRow row = Make("LunarLander-v3");
    Rng rng(2, Purpose::kTest);
    row.Reset(rng);
    for (int t = 0; t < 15; ++t) Step(row, action, rng);
    climb[static_cast<size_t>(action)] = row.Observation()[3];
    spin[static_cast<size_t>(action)] = row.Observation()[5];
  }
  EXPECT_GT(climb[kMain], climb[kNothing] + 0.2);
  EXPECT_GT(spin[kLeft], spin[kNothing] + 0.1);
  EXPECT_LT(spin[kRight], spin[kNothing] - 0.1);
}

TEST(LunarLander, AFallEndsInACrash) {
  EnvironmentRow row = Make("LunarLander-v3");
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed, Purpose::kTest);
    row.Reset(rng);
    int steps = 0;
    for (; row.type() != StepType::kLast && steps < 300; ++steps) Step(row, kNothing, rng);
    EXPECT_LT(steps, 200);
    EXPECT_EQ(row.reward(), -100);
    EXPECT_EQ(row.discount(), 0);
  }
}

TEST(LunarLander, StartsAtRandomSpeedUnderTheTopOfTheView) {
  EnvironmentRow row = Make("LunarLander-v3");
  std::array<double, 8> low{}, high{};
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed, Purpose::kTest);
    row.Reset(rng);
    const std::vector<double> observation = row.Observation();
    for (size_t i = 0; i < low.size(); ++i) {
      low[i] = std::min(low[i], observation[i]);
      high[i] = std::max(high[i], observation[i]);
    }
    EXPECT_NEAR(observation[1], 1.41, 0.02);
  }
  // 1000 N on 4.8 kg for 1/50 s.
  EXPECT_NEAR(high[2], 0.8, 0.05);
  EXPECT_NEAR(low[2], -0.8, 0.05);
  EXPECT_EQ(high[6], 0);
}

TEST(LunarLander, WindBlowsAsStrongAsItIsTold) {
  const auto drift = [](const std::string& arguments) {
    EnvironmentRow row = Make("LunarLander-v3", arguments);
    double sum = 0;
    for (uint64_t seed = 0; seed < 30; ++seed) {
      Rng rng(seed, Purpose::kTest);
      row.Reset(rng);
      const double before = row.Observation()[2];
      for (int t = 0; t < 20; ++t) Step(row, kNothing, rng);
      sum += std::abs(row.Observation()[2] - before);
    }
    return sum / 30;
  };
  const double calm = drift("{}"), windy = drift("{enable_wind: true}"),
               weak = drift("{enable_wind: true, wind_power: 3}");
  EXPECT_LT(calm, 0.01);
  EXPECT_GT(windy, 0.05);
  EXPECT_NEAR(weak / windy, 0.2, 0.1);
}

TEST(LunarLander, TheContinuousOneIsTheOtherWithAnArgument) {
  EnvironmentRow by_id = Make("LunarLanderContinuous-v3");
  EnvironmentRow by_argument = Make("LunarLander-v3", "{continuous: true}");
  EXPECT_EQ(by_argument.spec().action.ToString(), "Box(-1, 1, [2])");
  for (EnvironmentRow* row : {&by_id, &by_argument}) {
    Rng rng(5, Purpose::kTest);
    row->Reset(rng);
  }
  EXPECT_EQ(Walk(by_id, 300, 3), Walk(by_argument, 300, 3));
}

TEST(BipedalWalkerRules, ShapeAndRewardAsWritten) {
  using bipedal_walker::Reward;
  EXPECT_DOUBLE_EQ(bipedal_walker::Shaping(6, -0.5), 26 - 2.5);
  const std::array<double, 4> action{0.5, -1, 0, 3};  // the last is clipped
  EXPECT_DOUBLE_EQ(Reward(1, action, {.x = 6}), 1 - 0.028 * 2.5);
  EXPECT_EQ(Reward(1, action, {.x = -0.1}), -100);
  EXPECT_EQ(Reward(1, action, {.x = 6, .crashed = true}), -100);
  EXPECT_FALSE((bipedal_walker::Situation{.x = 88.6}).terminal());
  EXPECT_TRUE((bipedal_walker::Situation{.x = 88.7}).terminal());
}

// Level at first, then rough; the hardcore one has each kind of obstacle, none of them in the grass
// at the start.
TEST(BipedalTerrain, IsRoughAndHasObstaclesWhenHardcore) {
  using bipedal_walker::kTerrainStart, bipedal_walker::kTerrainStep;
  bipedal_walker::Terrain terrain;
  int narrow = 0, wide = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (const bool hardcore : {false, true}) {
      Rng rng(seed, Purpose::kTest);
      DrawTerrain(hardcore, rng, terrain);
      for (size_t i = 0; i <= kTerrainStart; ++i)
        EXPECT_EQ(terrain.ground[i].y, bipedal_walker::kTerrainHeight);
      EXPECT_NE(terrain.ground[40].y, bipedal_walker::kTerrainHeight);
      EXPECT_DOUBLE_EQ(terrain.ground.back().x, 199 * kTerrainStep);
      EXPECT_EQ(terrain.obstacles.empty(), !hardcore);
      for (const auto& corners : terrain.obstacles) {
        EXPECT_GE(corners[0].x, kTerrainStart * kTerrainStep - 1e-9);
        const double width = (corners[1].x - corners[0].x) / kTerrainStep;
        narrow += width < 1.5 ? 1 : 0;
        wide += width > 3.5 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(narrow, 20);  // pits and small stumps
  EXPECT_GT(wide, 20);    // stairs
}

// 30 pixels per metre, the hull at the top of the view and flags at columns 240 and 360.
TEST(LunarLander, ShowsHullAndFlags) {
  EnvironmentRow row = Make("LunarLander-v3");
  Rng rng(1, Purpose::kTest);
  row.Reset(rng);
  Picture picture(600, 400);
  Canvas canvas(picture);
  row.environment().Render(canvas);
  const auto colour = [&](int64_t x, int64_t y) {
    const uint8_t* pixel = picture.At(x, y);
    return Colour{pixel[0], pixel[1], pixel[2]};
  };
  EXPECT_EQ(colour(300, 3), (Colour{128, 102, 230}));
  for (const int64_t x : {244, 364}) EXPECT_EQ(colour(x, 255), (Colour{204, 204, 0}));
  EXPECT_EQ(colour(300, 280), kBlack);
  EXPECT_EQ(colour(300, 320), kWhite);
}

// The lidar's first ray points straight down.
TEST(BipedalWalker, SeesTheGroundBelow) {
  EnvironmentRow row = Make("BipedalWalker-v3");
  Rng rng(1, Purpose::kTest);
  row.Reset(rng);
  const std::vector<double> observation = row.Observation();
  // The hull stands a little below 2 legs of 34 / 30 m, of 160 / 30 m that the lidar sees.
  EXPECT_NEAR(observation[14], 68.0 / 160, 0.03);
  EXPECT_LT(observation[14], observation[19]);
  EXPECT_EQ(observation[23], 1);  // nothing in reach nearly straight ahead
  EXPECT_EQ(observation[8], 1);
  EXPECT_EQ(observation[13], 1);
}

TEST(BipedalWalker, KneesAndHipsFollowTheirMotors) {
  std::array<double, 2> angle{};
  for (const size_t sign : {0u, 1u}) {
    EnvironmentRow row = Make("BipedalWalker-v3");
    Rng rng(1, Purpose::kTest);
    row.Reset(rng);
    const float hip = sign == 0 ? -1.0f : 1.0f;
    const std::array<float, 4> action{hip, 0, 0, 0};
    for (int t = 0; t < 5; ++t) row.Step({action.data(), DType::kFloat32}, rng);
    angle[sign] = row.Observation()[4];
  }
  EXPECT_LT(angle[0] + 0.1, angle[1]);
  EXPECT_GT(angle[1], 0.2);
}

TEST(BipedalWalker, FallsWithoutItsMotors) {
  EnvironmentRow row = Make("BipedalWalkerHardcore-v3");
  Rng rng(3, Purpose::kTest);
  row.Reset(rng);
  const std::array<float, 4> action{0, 0, 0, 0};
  int steps = 0;
  for (; row.type() != StepType::kLast && steps < 1000; ++steps)
    row.Step({action.data(), DType::kFloat32}, rng);
  EXPECT_LT(steps, 1000);
  EXPECT_EQ(row.reward(), -100);
  EXPECT_EQ(row.discount(), 0);
}

const std::string kFixtures = std::string(WEFT_TEST_DATA) + "/environments/";

class Flight : public testing::TestWithParam<const char*> {};

// Recorded by make_recordings.py from Gymnasium 1.4.0 on Box2D 2.3 with weft's random numbers. The
// joints' limits, which a leg reaches now and then, are solved differently there.
TEST_P(Flight, FollowsTheOriginal) {
  SafetensorsMetadata metadata;
  TensorMap tensors =
      ReadSafetensors(kFixtures + "lander_" + GetParam() + ".safetensors", &metadata);
  EnvironmentRow row = Make("LunarLander-v3", metadata.at("kwargs"));
  const Tensor &states = tensors.At("state"), &expected = tensors.At("obs");
  constexpr size_t kStream = 6, kRecord = 4;
  for (int64_t episode = 0; episode < states.dim(0); ++episode) {
    const Tensor last = states.Row(episode), rows = expected.Row(episode);
    const std::span<const double> state = last.data<double>();
    for (int64_t t = 0; t < rows.dim(0); ++t) {
      row.SetState(state.first(kStream + kRecord * static_cast<size_t>(t)));
      const std::vector<double> observation = row.Observation();
      const Tensor original = rows.Row(t);
      for (size_t i = 0; i < observation.size(); ++i) {
        const double error = std::abs(observation[i] - original.data<float>()[i]);
        EXPECT_LT(error, t <= 15 ? 3e-4 : 0.01) << episode << " " << t << " " << i;
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, Flight,
                         testing::Values("flights", "flights_continuous", "flights_windy"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST(BipedalTerrain, IsThatOfTheOriginal) {
  const TensorMap tensors = ReadSafetensors(kFixtures + "bipedal_terrains.safetensors");
  const Tensor &ground = tensors.At("ground"), &obstacles = tensors.At("obstacles");
  const auto offset = tensors.At("offset").data<int64_t>();
  for (int64_t episode = 0; episode < ground.dim(0); ++episode) {
    Rng rng({.seed = 100 + static_cast<uint64_t>(episode)});
    bipedal_walker::Terrain terrain;
    bipedal_walker::DrawTerrain(true, rng, terrain);
    const Tensor points = ground.Row(episode);
    for (size_t i = 0; i < terrain.ground.size(); ++i) {
      EXPECT_NEAR(terrain.ground[i].x, points.data<double>()[2 * i], 1e-12);
      EXPECT_NEAR(terrain.ground[i].y, points.data<double>()[2 * i + 1], 1e-12);
    }
    const auto at = static_cast<size_t>(episode);
    ASSERT_EQ(std::ssize(terrain.obstacles), offset[at + 1] - offset[at]);
    for (size_t k = 0; k < terrain.obstacles.size(); ++k) {
      auto corners = terrain.obstacles[k];
      std::ranges::sort(corners, {},
                        [](const Point& point) { return std::pair(point.x, point.y); });
      const Tensor original = obstacles.Row(offset[at] + static_cast<int64_t>(k));
      for (size_t i = 0; i < corners.size(); ++i) {
        // Box2D keeps them in float32.
        EXPECT_NEAR(corners[i].x, original.data<double>()[2 * i], 1e-5);
        EXPECT_NEAR(corners[i].y, original.data<double>()[2 * i + 1], 1e-5);
      }
    }
  }
}

// Rewards follow from which tiles the wheels touch when. Pictures differ where edges are smoothed
// and digits written, and pygame's scaling makes them darker by up to 2 of 255.
TEST(CarRacing, DrivesAsTheOriginal) {
  TensorMap tensors = ReadSafetensors(kFixtures + "car_race.safetensors");
  const auto state = tensors.At("state").data<double>();
  const auto rewards = tensors.At("reward").data<double>();
  EnvironmentRow row = Make("CarRacing-v3");
  row.SetState(state.first(6));
  const auto difference = [&](int64_t picture) {
    const std::vector<double> pixels = row.Observation();
    const Tensor original = tensors.At("obs").Row(picture);
    double sum = 0;
    for (size_t i = 0; i < pixels.size(); ++i)
      sum += std::abs(pixels[i] - original.data<uint8_t>()[i]);
    return sum / static_cast<double>(pixels.size());
  };
  EXPECT_LT(difference(0), 2.5);
  Rng rng(1, Purpose::kTest);
  double earned = 0;
  for (size_t t = 0; t < rewards.size(); ++t) {
    const double* record = state.data() + 6 + 3 * t;
    const std::array<double, 3> action{-record[0], record[1], record[2]};
    row.Step({action.data(), DType::kFloat64}, rng);
    EXPECT_NEAR(row.reward(), rewards[t], 1e-9) << t;
    earned += row.reward();
  }
  EXPECT_GT(earned, 10);
  EXPECT_LT(difference(1), 2.5);
}

TEST(CarRacing, TracksAreThoseOfTheOriginal) {
  TensorMap tensors = ReadSafetensors(kFixtures + "car_race.safetensors");
  const Tensor& expected = tensors.At("track");
  Rng rng({.seed = 101});
  std::vector<car_racing::Stretch> track;
  car_racing::DrawTrack(rng, track);
  ASSERT_EQ(std::ssize(track), expected.dim(0));
  for (size_t i = 0; i < track.size(); ++i) {
    const Tensor place = expected.Row(static_cast<int64_t>(i));
    const auto numbers = place.data<double>();
    EXPECT_NEAR(track[i].heading, numbers[1], 1e-9);
    EXPECT_NEAR(track[i].x, numbers[2], 1e-9);
    EXPECT_NEAR(track[i].y, numbers[3], 1e-9);
  }
}

TEST(CarRacing, GasAndBrakeWork) {
  EnvironmentRow row = Make("CarRacing-v3", "{continuous: false}");
  Rng rng(1, Purpose::kTest);
  row.Reset(rng);
  // The bar of the true speed, in columns 12 to 14 of the instruments.
  const auto speed = [&] {
    double sum = 0;
    const std::vector<double> pixels = row.Observation();
    for (size_t y = 84; y < 94; ++y) sum += pixels[3 * (96 * y + 13)];
    return sum;
  };
  for (int t = 0; t < 100; ++t) Step(row, 3, rng);
  const double fast = speed();
  for (int t = 0; t < 100; ++t) Step(row, 4, rng);
  EXPECT_GT(fast, speed() + 100);
  EXPECT_THROW(Make("CarRacing-v3", "{lap_complete_percent: 2}"), Error);
}

TEST(CarRacing, LeavingThePlayfieldEndsTheEpisode) {
  EnvironmentRow row = Make("CarRacing-v3");
  Rng rng(4, Purpose::kTest);
  row.Reset(rng);
  const std::array<float, 3> action{0, 1, 0};
  int steps = 0;
  for (; row.type() != StepType::kLast && steps < 1500; ++steps)
    row.Step({action.data(), DType::kFloat32}, rng);
  EXPECT_LT(steps, 1500);
  EXPECT_EQ(row.reward(), -100);
  EXPECT_EQ(row.discount(), 0);
}

// Corners in shares of the sides; points at the middle of 16 parts of each pixel.
TEST(RaceView, CoversPointsAndLeavesNoSeam) {
  car_racing::View view;
  const std::array<Point, 3> below{{{0, 0}, {0, 1}, {1, 1}}}, above{{{0, 0}, {1, 0}, {1, 1}}};
  view.Add(below, {200, 100, 50});
  view.Add(above, {200, 100, 50});
  std::vector<uint8_t> pixels(7 * 5 * 3);
  view.Paint(7, 5, pixels.data());
  for (size_t i = 0; i < pixels.size(); i += 3) {
    EXPECT_EQ(pixels[i], 200);
    EXPECT_EQ(pixels[i + 1], 100);
    EXPECT_EQ(pixels[i + 2], 50);
  }
  view.Clear();
  view.Add(std::array<Point, 4>{{{0, 0}, {0.25, 0}, {0.25, 1}, {0, 1}}}, {255, 0, 0});
  view.Paint(2, 1, pixels.data());
  EXPECT_EQ(pixels[0], 127);  // half of the left pixel
  EXPECT_EQ(pixels[3], 0);
}

class Box2d : public testing::TestWithParam<const char*> {};

// In the air and on the ground, where Box2D keeps impulses from one step to the next.
TEST_P(Box2d, AStateContinuesBitForBitFromAnyStep) {
  for (const int steps : {1, 60, 73, 90, 250}) {
    EnvironmentRow row = Make(GetParam()), copy = Make(GetParam());
    Rng rng(7, Purpose::kTest);
    row.Reset(rng);
    Walk(row, steps, 11);
    copy.SetState(row.State());
    EXPECT_EQ(copy.Observation(), row.Observation());
    EXPECT_EQ(copy.State(), row.State());
    if (row.type() == StepType::kLast) continue;
    EXPECT_EQ(Walk(row, 100, 12), Walk(copy, 100, 12)) << steps;
  }
}

TEST_P(Box2d, RefusesStatesThatNoEpisodeHas) {
  EnvironmentRow row = Make(GetParam());
  Rng rng(1, Purpose::kTest);
  row.Reset(rng);
  Walk(row, 3, 1);
  const std::vector<double> good = row.State();
  const auto refused = [&](size_t index, double value) {
    std::vector<double> bad = good;
    bad[index] = value;
    EXPECT_THROW(row.SetState(bad), Error) << index << " " << value;
  };
  for (const double value : {-1.0, 0.5, 0x1p32, std::numeric_limits<double>::quiet_NaN()})
    refused(0, value);
  for (const double value : {1.5, std::numeric_limits<double>::quiet_NaN()})
    refused(good.size() - 1, value);
  EXPECT_THROW(row.SetState(std::span(good).first(4)), Error);
  EXPECT_THROW(row.SetState(std::span(good).first(good.size() - 1)), Error);
  row.SetState(good);
}
INSTANTIATE_TEST_SUITE_P(All, Box2d,
                         testing::Values("BipedalWalker-v3", "BipedalWalkerHardcore-v3",
                                         "LunarLander-v3", "LunarLanderContinuous-v3"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace weft
