// dm_control/ball_in_cup: a cup catches the ball that hangs on it (dm_control/suite/ball_in_cup.py,
// dm_control 1.0.50).
#include <cmath>

#include "environments/dm_control/suite_environment.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr SuiteTask kCatch{
    .id = "dm_control/ball_in_cup-catch", .xml_file = "ball_in_cup.xml", .control_timestep = 0.02};

class BallInCupEnvironment final : public SuiteEnvironment {
 public:
  using Arguments = SuiteArguments<SuiteTask>;

  explicit BallInCupEnvironment(const Arguments& arguments)
      : SuiteEnvironment(*arguments.table),
        ball_(physics_.Body("ball")),
        ball_geom_(physics_.Geom("ball")),
        target_(physics_.Site("target")),
        ball_x_(physics_.joint(physics_.Joint("ball_x")).position),
        ball_z_(physics_.joint(physics_.Joint("ball_z")).position) {
    Declare({{"position", {4}}, {"velocity", {4}}});
  }

  void Observe(ObservationRow out) override {
    Append(physics_.position(), out.Leaf<double>(0));
    Append(physics_.velocity(), out.Leaf<double>(1));
  }

 private:
  void Draw(Rng& rng) override {
    DrawUntilFree([&] {
      physics_.position()[static_cast<size_t>(ball_x_)] = rng.Uniform(-0.2, 0.2);
      physics_.position()[static_cast<size_t>(ball_z_)] = rng.Uniform(0.2, 0.5);
    });
  }

  double Reward() override {
    const auto target = physics_.site_position(target_), ball = physics_.body_position(ball_);
    const auto size = physics_.site_size(target_);
    const double radius = physics_.geom_size(ball_geom_)[0];
    for (const size_t axis : {0, 2}) {
      if (!(std::abs(target[axis] - ball[axis]) < size[axis] - radius)) return 0;
    }
    return 1;
  }

  int64_t ball_, ball_geom_, target_, ball_x_, ball_z_;
};

WEFT_REGISTER_ENVIRONMENT(BallInCupEnvironment, kCatch.id,
                          "dm_control: a cup catches the ball that hangs on it", &kCatch)

}  // namespace
}  // namespace weft
