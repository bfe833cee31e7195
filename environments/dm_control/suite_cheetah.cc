// dm_control/cheetah: a planar cheetah runs (dm_control/suite/cheetah.py, dm_control 1.0.50).
#include <limits>

#include "environments/dm_control/suite_environment.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr double kSpeed = 10;          // to reach, m/s
constexpr int64_t kSettleSteps = 200;  // of the physics, in which a drawn posture comes to rest
constexpr SuiteTask kRun{.id = "dm_control/cheetah-run", .xml_file = "cheetah.xml"};

class CheetahEnvironment final : public SuiteEnvironment {
 public:
  using Arguments = SuiteArguments<SuiteTask>;

  explicit CheetahEnvironment(const Arguments& arguments)
      : SuiteEnvironment(*arguments.table),
        torso_velocity_(physics_.Sensor("torso_subtreelinvel")),
        still_(physics_.control().size()) {
    Declare({{"position", {std::ssize(physics_.position()) - 1}},
             {"velocity", {std::ssize(physics_.velocity())}}});
  }

  void Observe(ObservationRow out) override {
    Append(physics_.position().subspan(1), out.Leaf<double>(0));
    Append(physics_.velocity(), out.Leaf<double>(1));
  }

 private:
  void Draw(Rng& rng) override {
    for (int64_t i = 0; i < physics_.joints(); ++i) {
      const MujocoJoint joint = physics_.joint(i);
      if (joint.limited) {
        physics_.position()[static_cast<size_t>(joint.position)] =
            rng.Uniform(joint.low, joint.high);
      }
    }
    physics_.Step(still_, kSettleSteps);
    physics_.ClearTime();
  }

  double Reward() override {
    return Tolerance(physics_.sensor(torso_velocity_)[0], kSpeed,
                     std::numeric_limits<double>::infinity(),
                     {.margin = kSpeed, .sigmoid = Sigmoid::kLinear, .value_at_margin = 0});
  }

  int64_t torso_velocity_;
  std::vector<double> still_;  // the control of nothing
};

WEFT_REGISTER_ENVIRONMENT(CheetahEnvironment, kRun.id,
                          "dm_control: a planar cheetah runs at 10 m/s", &kRun)

}  // namespace
}  // namespace weft
