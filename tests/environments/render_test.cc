// Environments show their state, in colours at places that follow from it.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <gtest/gtest.h>
#include <numbers>
#include <vector>

#include "environments/availability.h"
#include "environments/batch_environment.h"
#include "environments/drawing/canvas.h"
#include "environments/environment_row.h"
#include "environments/multi_agent_row.h"
#include "mujoco_ids.h"

namespace weft {
namespace {

EnvironmentRow Make(const std::string& id) {
  const EnvironmentEntry& entry = Environments().At(id);
  return EnvironmentRow(entry.make(*entry.make_arguments()));
}

Picture Rendered(const Environment& environment, int64_t width, int64_t height) {
  Picture picture(width, height);
  Canvas canvas(picture);
  environment.Render(canvas);
  return picture;
}

Picture Rendered(const std::string& id, const std::vector<double>& state) {
  EnvironmentRow row = Make(id);
  row.SetState(state);
  return Rendered(row.environment(), row.spec().appearance.width, row.spec().appearance.height);
}

Colour ColourAt(const Picture& picture, double x, double y) {
  const uint8_t* pixel = picture.At(static_cast<int64_t>(x), static_cast<int64_t>(y));
  return {pixel[0], pixel[1], pixel[2]};
}

// ---- Every environment that draws

class Drawn : public testing::TestWithParam<std::string> {};

TEST_P(Drawn, ShowsItsStateInAnySizeWithoutChangingIt) {
  const EnvironmentEntry& entry = Environments().At(GetParam());
  if (const std::string why = WhyUnavailable(entry); !why.empty()) GTEST_SKIP() << why;
  const auto batch = entry.make_batch(*entry.make_arguments(), {.seed = 1});
  const Appearance appearance = batch->spec().appearance;
  TimeStep step = batch->MakeTimeStep();
  batch->Reset(step);
  const auto rendered = [&](int64_t width, int64_t height) {
    Picture picture(width, height);
    Canvas canvas(picture);
    batch->Render(0, canvas);
    return picture;
  };
  if (appearance.width == 0) {
    EXPECT_THROW(rendered(8, 8), Error);
    return;
  }
  EXPECT_GT(appearance.frames_per_second, 0);
  const uint64_t before = Hash(batch->Save());
  const Picture usual = rendered(appearance.width, appearance.height);
  EXPECT_EQ(usual.pixels, rendered(appearance.width, appearance.height).pixels);
  const Picture small = rendered(84, 60);
  for (const Picture* picture : {&usual, &small}) {
    const auto [least, most] = std::ranges::minmax(picture->pixels);
    EXPECT_LT(least + 40, most) << "something is to be seen";
  }
  EXPECT_EQ(before, Hash(batch->Save()));
}
// Those of MuJoCo are in mujoco_render_test.cc.
std::vector<std::string> DrawnHere() {
  std::vector<std::string> ids;
  for (const std::string& id : Environments().Names()) {
    if (!IsMujoco(id)) ids.push_back(id);
  }
  return ids;
}
INSTANTIATE_TEST_SUITE_P(Registry, Drawn, testing::ValuesIn(DrawnHere()),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::ranges::replace_if(
                               name, [](char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

// ---- Classic control, in the sizes and colours of Gymnasium's pictures

TEST(ClassicControl, CartPoleShowsCartAndPole) {
  // 125 pixels per metre, x = 0 at column 300, the track at row 300.
  const Picture upright = Rendered("CartPole-v1", {1, 0, 0, 0});
  EXPECT_EQ(ColourAt(upright, 300 + 125 - 20, 300), kBlack);
  EXPECT_EQ(ColourAt(upright, 300 + 125 + 30, 290), kWhite);
  EXPECT_EQ(ColourAt(upright, 300 + 125, 200), (Colour{202, 152, 101}));
  EXPECT_EQ(ColourAt(upright, 300 + 125, 300 - 7), (Colour{129, 132, 203}));
  EXPECT_EQ(ColourAt(upright, 300 + 125, 150), kWhite) << "above the tip";
  const double angle = 0.2;
  const Picture leaning = Rendered("CartPole-v1", {0, 0, angle, 0});
  EXPECT_EQ(ColourAt(leaning, 300 + 100 * std::sin(angle), 292.5 - 100 * std::cos(angle)),
            (Colour{202, 152, 101}));
  EXPECT_EQ(ColourAt(leaning, 300 - 100 * std::sin(angle), 292.5 - 100 * std::cos(angle)), kWhite);
}

TEST(ClassicControl, PendulumPointsUpAtAngle0AndTurnsCounterclockwise) {
  constexpr double kScale = 500 / 4.4;  // pixels per metre
  const Colour rod{204, 77, 77};
  const Picture up = Rendered("Pendulum-v1", {0, 0});
  EXPECT_EQ(ColourAt(up, 250, 250 - 0.9 * kScale), rod);
  EXPECT_EQ(ColourAt(up, 250, 250), kBlack);
  EXPECT_EQ(ColourAt(up, 250, 250 + 0.9 * kScale), kWhite);
  const Picture left = Rendered("Pendulum-v1", {std::numbers::pi / 2, 0});
  EXPECT_EQ(ColourAt(left, 250 - 0.9 * kScale, 250), rod);
  EXPECT_EQ(ColourAt(left, 250 + 0.9 * kScale, 250), kWhite);
}

TEST(ClassicControl, AcrobotHangsAtAngle0) {
  constexpr double kScale = 500 / 4.4;
  const Colour link{0, 204, 204}, joint{204, 204, 0};
  const Picture hanging = Rendered("Acrobot-v1", {0, 0, 0, 0});
  EXPECT_EQ(ColourAt(hanging, 250, 250 + 0.5 * kScale), link);
  EXPECT_EQ(ColourAt(hanging, 250, 250 + 1 * kScale), joint);
  EXPECT_EQ(ColourAt(hanging, 250, 250 + 1.9 * kScale), link);
  // The first link to the right, the second one up.
  const Picture bent = Rendered("Acrobot-v1", {std::numbers::pi / 2, std::numbers::pi / 2, 0, 0});
  EXPECT_EQ(ColourAt(bent, 250 + 0.5 * kScale, 250), link);
  EXPECT_EQ(ColourAt(bent, 250 + kScale, 250 - 0.8 * kScale), link);
  EXPECT_EQ(ColourAt(bent, 250, 250 + 1.5 * kScale), kWhite);
}

TEST(ClassicControl, MountainCarsStandOnTheTrack) {
  constexpr double kScale = 600 / 1.8;
  for (const char* id : {"MountainCar-v0", "MountainCarContinuous-v0"}) {
    for (const double position : {-0.9, -std::numbers::pi / 6, 0.3}) {
      const double height = std::sin(3 * position) * 0.45 + 0.55;
      const double slope = std::atan(3 * 0.45 * std::cos(3 * position));
      const Picture picture = Rendered(id, {position, 0});
      // The body's middle, 0.07 m from the track.
      const double x = position - 0.07 * std::sin(slope), y = height + 0.07 * std::cos(slope);
      EXPECT_EQ(ColourAt(picture, (x + 1.2) * kScale, 400 - y * kScale), kBlack) << id << position;
      EXPECT_EQ(ColourAt(picture, (x + 1.2) * kScale, 400 - (y + 0.1) * kScale), kWhite);
    }
  }
}

// ---- Grids and toy text

std::string TextOf(const std::string& id, const std::vector<double>& state) {
  EnvironmentRow row = Make(id);
  row.SetState(state);
  return row.environment().Text();
}

TEST(MiniGrid, ShowsWallsGoalAgentAndWhatItSees) {
  EnvironmentRow row = Make("MiniGrid-Empty-5x5-v0");
  Rng rng(1, Purpose::kTest);
  row.Reset(rng);  // the agent at (1, 1) looks to the right, the goal is at (3, 3)
  EXPECT_EQ(row.environment().Text(),
            "WGWGWGWGWG\n"
            "WG>>    WG\n"
            "WG      WG\n"
            "WG    GGWG\n"
            "WGWGWGWGWG\n");
  const Picture picture = Rendered(row.environment(), 5 * 32, 5 * 32);
  const auto middle = [&](int x, int y) { return ColourAt(picture, 32 * x + 16, 32 * y + 16); };
  const auto lit = [](Colour colour) {
    const auto light = [](uint8_t value) {
      return static_cast<uint8_t>(value + (255 - value) * 0.3 + 0.5);
    };
    return Colour{light(colour.red), light(colour.green), light(colour.blue)};
  };
  EXPECT_EQ(middle(0, 1), (Colour{100, 100, 100})) << "behind the agent";
  EXPECT_EQ(middle(1, 1), lit({255, 0, 0}));
  EXPECT_EQ(middle(2, 1), lit(kBlack));
  EXPECT_EQ(middle(3, 3), lit({0, 255, 0}));
  EXPECT_EQ(middle(4, 1), lit({100, 100, 100}));
}

TEST(MiniGrid, TheAgentTurnsAndCarries) {
  EnvironmentRow row = Make("MiniGrid-Empty-5x5-v0");
  Rng rng(1, Purpose::kTest);
  row.Reset(rng);
  std::vector<double> state = row.State();
  state[2] = 1;                              // down
  state[3] = 5, state[4] = 4, state[5] = 0;  // carries a yellow key
  const std::string text = TextOf("MiniGrid-Empty-5x5-v0", state);
  EXPECT_NE(text.find("WGVV    WG\n"), std::string::npos) << text;
  EXPECT_NE(text.find("carries AY"), std::string::npos) << text;
  row.SetState(state);
  const Picture picture = Rendered(row.environment(), 5 * 32, 5 * 32);
  // The tip of the triangle, below the middle, and the upper corners of its cell.
  EXPECT_GT(ColourAt(picture, 48, 32 + 24).red, 200);
  EXPECT_GT(ColourAt(picture, 32 + 8, 32 + 7).red, 200);
  EXPECT_LT(ColourAt(picture, 32 + 8, 32 + 24).red, 100);
}

TEST(ToyText, IsText) {
  EXPECT_EQ(TextOf("FrozenLake-v1", {5}),
            " S  F  F  F \n F [H] F  H \n F  F  F  H \n H  F  F  G \n");
  EXPECT_EQ(TextOf("CliffWalking-v1", {36}),
            "x x x x x x x x x x x x\n"
            "x x x x x x x x x x x x\n"
            "x x x x x x x x x x x x\n"
            "o C C C C C C C C C C T\n");
  // Row 3, column 1; the passenger waits at G for a ride to B.
  EXPECT_EQ(TextOf("Taxi-v4", {((3 * 5 + 1) * 5 + 1) * 4 + 3, 0}),
            "+---------+\n"
            "|R: | : :G|\n"
            "| : | : : |\n"
            "| : : : : |\n"
            "| |T: | : |\n"
            "|Y| : |B: |\n"
            "+---------+\n"
            "passenger at G, wants to B");
  EXPECT_EQ(TextOf("Blackjack-v1", {8, 2, 1, 15, 2, 0, 10}),
            "player 18 with a usable ace, dealer shows 10");
}

TEST(ToyText, ShowsTheAgentInItsCell) {
  const Picture lake = Rendered("FrozenLake-v1", {6});
  EXPECT_EQ(ColourAt(lake, 64 * 2 + 32, 64 + 32), (Colour{220, 40, 40}));
  EXPECT_EQ(ColourAt(lake, 64 * 3 + 32, 64 * 3 + 32), (Colour{0, 200, 0}));
  EXPECT_EQ(ColourAt(lake, 64 + 32, 64 + 32), (Colour{30, 60, 120})) << "a hole";
  const Picture cliff = Rendered("CliffWalking-v1", {25});
  EXPECT_EQ(ColourAt(cliff, 75, 125), (Colour{220, 40, 40}));
  const Picture taxi = Rendered("Taxi-v4", {((2 * 5 + 2) * 5 + 4) * 4 + 1, 0});
  EXPECT_EQ(ColourAt(taxi, 200, 200), (Colour{120, 40, 140})) << "the passenger is in the taxi";
  EXPECT_EQ(ColourAt(taxi, 200 + 20, 200 + 20), (Colour{255, 160, 0}));
}

TEST(Particles, ShowAgentsAdversariesAndLandmarks) {
  const EnvironmentEntry& entry = Environments().At("simple_push_v3");
  MultiAgentRow row(entry.make_multi_agent(*entry.make_arguments()));
  Rng rng(1, Purpose::kTest);
  row.Reset(rng);
  // An adversary, an agent and two landmarks: positions, velocities and messages of the agents,
  // then the landmarks.
  std::vector<double> state = row.State();
  const std::vector<double> agents = {-0.5, 0.5, 0.5, 0.5}, landmarks = {-0.5, -0.5, 0.5, -0.5};
  std::ranges::copy(agents, state.begin());
  const size_t at = state.size() - 3 - landmarks.size();  // two goals and the key follow
  std::ranges::copy(landmarks, state.begin() + static_cast<std::ptrdiff_t>(at));
  row.SetState(state);
  Picture picture(440, 440);  // 200 pixels a unit
  Canvas canvas(picture);
  row.environment().Render(canvas);
  EXPECT_EQ(ColourAt(picture, 120, 120), (Colour{220, 70, 70}));
  EXPECT_EQ(ColourAt(picture, 320, 120), (Colour{70, 110, 220}));
  EXPECT_EQ(ColourAt(picture, 120, 320), (Colour{160, 160, 160}));
  EXPECT_EQ(ColourAt(picture, 320, 320), (Colour{160, 160, 160}));
  EXPECT_EQ(ColourAt(picture, 220, 220), kWhite);
}

}  // namespace
}  // namespace weft
