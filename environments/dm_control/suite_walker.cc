// dm_control/walker: a planar walker stands, walks or runs (dm_control/suite/walker.py, dm_control
// 1.0.50).
#include <limits>

#include "environments/dm_control/suite_environment.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kStandHeight = 1.2;  // of the torso, m

struct Walker {
  SuiteTask task;
  double speed;  // to reach, m/s; 0: stand
};

constexpr Walker MakeWalker(const char* id, double speed) {
  return {.task = {.id = id, .xml_file = "walker.xml", .control_timestep = 0.025}, .speed = speed};
}
constexpr Walker kStand = MakeWalker("dm_control/walker-stand", 0);
constexpr Walker kWalk = MakeWalker("dm_control/walker-walk", 1);
constexpr Walker kRun = MakeWalker("dm_control/walker-run", 8);

class WalkerEnvironment final : public SuiteEnvironment {
 public:
  using Arguments = SuiteArguments<Walker>;

  explicit WalkerEnvironment(const Arguments& arguments)
      : SuiteEnvironment(arguments.table->task),
        speed_(arguments.table->speed),
        torso_(physics_.Body("torso")),
        torso_velocity_(physics_.Sensor("torso_subtreelinvel")) {
    Declare({{"orientations", {2 * (physics_.bodies() - 1)}},
             {"height", {}},
             {"velocity", {std::ssize(physics_.velocity())}}});
  }

  void Observe(ObservationRow out) override {
    double* orientation = out.Leaf<double>(0);
    for (int64_t body = 1; body < physics_.bodies(); ++body) {
      const auto rotation = physics_.body_rotation(body);
      *orientation++ = rotation[0];
      *orientation++ = rotation[2];
    }
    *out.Leaf<double>(1) = Height();
    Append(physics_.velocity(), out.Leaf<double>(2));
  }

 private:
  void Draw(Rng& rng) override { DrawJoints(rng); }

  double Reward() override {
    const double standing =
        Tolerance(Height(), kStandHeight, kInfinity, {.margin = kStandHeight / 2});
    const double upright = (1 + physics_.body_rotation(torso_)[8]) / 2;
    const double stand = (3 * standing + upright) / 4;
    if (speed_ == 0) return stand;
    const double move =
        Tolerance(physics_.sensor(torso_velocity_)[0], speed_, kInfinity,
                  {.margin = speed_ / 2, .sigmoid = Sigmoid::kLinear, .value_at_margin = 0.5});
    return stand * (5 * move + 1) / 6;
  }

  double Height() const { return physics_.body_position(torso_)[2]; }

  double speed_;
  int64_t torso_, torso_velocity_;
};

WEFT_REGISTER_ENVIRONMENT(WalkerEnvironment, kStand.task.id,
                          "dm_control: a planar walker stands up", &kStand)
WEFT_REGISTER_ENVIRONMENT(WalkerEnvironment, kWalk.task.id,
                          "dm_control: a planar walker walks at 1 m/s", &kWalk)
WEFT_REGISTER_ENVIRONMENT(WalkerEnvironment, kRun.task.id,
                          "dm_control: a planar walker runs at 8 m/s", &kRun)

}  // namespace
}  // namespace weft
