// dm_control/hopper: a planar leg stands or hops (dm_control/suite/hopper.py, dm_control 1.0.50).
#include <cmath>
#include <limits>

#include "environments/dm_control/suite_environment.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr double kStandHeight = 0.6;  // of the torso above the foot, m
constexpr double kHopSpeed = 2;       // m/s

struct Hopper {
  SuiteTask task;
  bool hops;
};

constexpr Hopper MakeHopper(const char* id, bool hops) {
  return {.task = {.id = id, .xml_file = "hopper.xml", .control_timestep = 0.02}, .hops = hops};
}
constexpr Hopper kStand = MakeHopper("dm_control/hopper-stand", false);
constexpr Hopper kHop = MakeHopper("dm_control/hopper-hop", true);

class HopperEnvironment final : public SuiteEnvironment {
 public:
  using Arguments = SuiteArguments<Hopper>;

  explicit HopperEnvironment(const Arguments& arguments)
      : SuiteEnvironment(arguments.table->task),
        hops_(arguments.table->hops),
        torso_(physics_.Body("torso")),
        foot_(physics_.Body("foot")),
        torso_velocity_(physics_.Sensor("torso_subtreelinvel")),
        toe_(physics_.Sensor("touch_toe")),
        heel_(physics_.Sensor("touch_heel")) {
    Declare({{"position", {std::ssize(physics_.position()) - 1}},
             {"velocity", {std::ssize(physics_.velocity())}},
             {"touch", {2}}});
  }

  void Observe(ObservationRow out) override {
    Append(physics_.position().subspan(1), out.Leaf<double>(0));
    Append(physics_.velocity(), out.Leaf<double>(1));
    out.Leaf<double>(2)[0] = std::log1p(physics_.sensor(toe_)[0]);
    out.Leaf<double>(2)[1] = std::log1p(physics_.sensor(heel_)[0]);
  }

 private:
  void Draw(Rng& rng) override { DrawJoints(rng); }

  double Reward() override {
    const double height =
        physics_.body_centre_of_mass(torso_)[2] - physics_.body_centre_of_mass(foot_)[2];
    const double standing = Tolerance(height, kStandHeight, 2);
    if (!hops_) return standing * (SmallControl() + 4) / 5;
    return standing *
           Tolerance(
               physics_.sensor(torso_velocity_)[0], kHopSpeed,
               std::numeric_limits<double>::infinity(),
               {.margin = kHopSpeed / 2, .sigmoid = Sigmoid::kLinear, .value_at_margin = 0.5});
  }

  bool hops_;
  int64_t torso_, foot_, torso_velocity_, toe_, heel_;
};

WEFT_REGISTER_ENVIRONMENT(HopperEnvironment, kStand.task.id, "dm_control: a planar leg stands",
                          &kStand)
WEFT_REGISTER_ENVIRONMENT(HopperEnvironment, kHop.task.id, "dm_control: a planar leg hops at 2 m/s",
                          &kHop)

}  // namespace
}  // namespace weft
