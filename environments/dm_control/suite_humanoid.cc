// dm_control/humanoid and dm_control/humanoid_CMU: two humanoids stand, walk or run
// (dm_control/suite/{humanoid,humanoid_CMU}.py, dm_control 1.0.50). They differ in their models,
// and in which body and axis are upright.
#include <limits>
#include <string>

#include "environments/dm_control/suite_environment.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kStandHeight = 1.4;  // of the head, m

struct Humanoid {
  SuiteTask task;
  double speed;  // to reach, m/s; 0: stand still
  const char* trunk;
  size_t up;  // the trunk's axis that points upwards
  const char* limbs[4];
  bool pure_state = false;  // observe positions and velocities alone
};

constexpr Humanoid MakeHumanoid(const char* id, double speed, bool pure_state = false) {
  return {.task = {.id = id, .xml_file = "humanoid.xml", .control_timestep = 0.025},
          .speed = speed,
          .trunk = "torso",
          .up = 2,
          .limbs = {"left_hand", "left_foot", "right_hand", "right_foot"},
          .pure_state = pure_state};
}
constexpr Humanoid MakeCmu(const char* id, double speed) {
  return {.task = {.id = id, .xml_file = "humanoid_CMU.xml", .control_timestep = 0.02},
          .speed = speed,
          .trunk = "thorax",
          .up = 1,
          .limbs = {"lhand", "lfoot", "rhand", "rfoot"}};
}
constexpr Humanoid kStand = MakeHumanoid("dm_control/humanoid-stand", 0);
constexpr Humanoid kWalk = MakeHumanoid("dm_control/humanoid-walk", 1);
constexpr Humanoid kRun = MakeHumanoid("dm_control/humanoid-run", 10);
constexpr Humanoid kRunPure = MakeHumanoid("dm_control/humanoid-run_pure_state", 10, true);
constexpr Humanoid kCmuStand = MakeCmu("dm_control/humanoid_CMU-stand", 0);
constexpr Humanoid kCmuWalk = MakeCmu("dm_control/humanoid_CMU-walk", 1);
constexpr Humanoid kCmuRun = MakeCmu("dm_control/humanoid_CMU-run", 10);

class HumanoidSuiteEnvironment final : public SuiteEnvironment {
 public:
  using Arguments = SuiteArguments<Humanoid>;

  explicit HumanoidSuiteEnvironment(const Arguments& arguments)
      : SuiteEnvironment(arguments.table->task),
        table_(arguments.table),
        trunk_(physics_.Body(table_->trunk)),
        head_(physics_.Body("head")),
        velocity_(physics_.Sensor(std::string(table_->trunk) + "_subtreelinvel")) {
    for (size_t i = 0; i < limbs_.size(); ++i) limbs_[i] = physics_.Body(table_->limbs[i]);
    const int64_t positions = std::ssize(physics_.position());
    const Entry velocity{"velocity", {std::ssize(physics_.velocity())}};
    if (table_->pure_state) {
      Declare({{"position", {positions}}, velocity});
    } else {
      Declare({{"joint_angles", {positions - kRootCoordinates}},
               {"head_height", {}},
               {"extremities", {3 * std::ssize(limbs_)}},
               {"torso_vertical", {3}},
               {"com_velocity", {3}},
               velocity});
    }
  }

  void Observe(ObservationRow out) override {
    if (table_->pure_state) {
      Append(physics_.position(), out.Leaf<double>(0));
      Append(physics_.velocity(), out.Leaf<double>(1));
      return;
    }
    const auto frame = physics_.body_rotation(trunk_);
    Append(physics_.position().subspan(kRootCoordinates), out.Leaf<double>(0));
    *out.Leaf<double>(1) = HeadHeight();
    double* extremity = out.Leaf<double>(2);
    for (const int64_t limb : limbs_) {
      extremity =
          Append(Egocentric(physics_.body_position(trunk_), physics_.body_position(limb), frame),
                 extremity);
    }
    Append(frame.subspan(6), out.Leaf<double>(3));
    Append(physics_.sensor(velocity_), out.Leaf<double>(4));
    Append(physics_.velocity(), out.Leaf<double>(5));
  }

 private:
  static constexpr int64_t kRootCoordinates = 7;

  void Draw(Rng& rng) override {
    DrawUntilFree([&] { DrawJoints(rng); });
  }

  double Reward() override {
    const double standing =
        Tolerance(HeadHeight(), kStandHeight, kInfinity, {.margin = kStandHeight / 4});
    const double upright =
        Tolerance(physics_.body_rotation(trunk_)[6 + table_->up], 0.9, kInfinity,
                  {.margin = 1.9, .sigmoid = Sigmoid::kLinear, .value_at_margin = 0});
    const double stand = (4 + SmallControl()) / 5 * (standing * upright);
    const auto velocity = physics_.sensor(velocity_).first(2);
    if (table_->speed == 0) {
      const Margin margin{.margin = 2};
      return stand * (Tolerance(velocity[0], 0, 0, margin) + Tolerance(velocity[1], 0, 0, margin)) /
             2;
    }
    const double move =
        Tolerance(Norm(velocity), table_->speed, kInfinity,
                  {.margin = table_->speed, .sigmoid = Sigmoid::kLinear, .value_at_margin = 0});
    return stand * (5 * move + 1) / 6;
  }

  double HeadHeight() const { return physics_.body_position(head_)[2]; }

  const Humanoid* table_;
  int64_t trunk_, head_, velocity_;
  std::array<int64_t, 4> limbs_;
};

WEFT_REGISTER_ENVIRONMENT(HumanoidSuiteEnvironment, kStand.task.id,
                          "dm_control: a humanoid stands up", &kStand)
WEFT_REGISTER_ENVIRONMENT(HumanoidSuiteEnvironment, kWalk.task.id,
                          "dm_control: a humanoid walks at 1 m/s", &kWalk)
WEFT_REGISTER_ENVIRONMENT(HumanoidSuiteEnvironment, kRun.task.id,
                          "dm_control: a humanoid runs at 10 m/s", &kRun)
WEFT_REGISTER_ENVIRONMENT(HumanoidSuiteEnvironment, kRunPure.task.id,
                          "humanoid-run that observes positions and velocities alone", &kRunPure)
WEFT_REGISTER_ENVIRONMENT(HumanoidSuiteEnvironment, kCmuStand.task.id,
                          "dm_control: the CMU humanoid stands up", &kCmuStand)
WEFT_REGISTER_ENVIRONMENT(HumanoidSuiteEnvironment, kCmuWalk.task.id,
                          "dm_control: the CMU humanoid walks at 1 m/s", &kCmuWalk)
WEFT_REGISTER_ENVIRONMENT(HumanoidSuiteEnvironment, kCmuRun.task.id,
                          "dm_control: the CMU humanoid runs at 10 m/s", &kCmuRun)

}  // namespace
}  // namespace weft
