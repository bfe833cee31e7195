// dm_control/manipulator: a planar arm brings a ball or a peg to a target, or inserts it there
// (dm_control/suite/manipulator.py, dm_control 1.0.50).
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "environments/dm_control/suite_arm.h"
#include "environments/dm_control/suite_models.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr double kPi = std::numbers::pi;

struct Manipulator {
  SuiteTask task;
  const char* object;
  const char* target;
  const char* receptacle;  // null: the target is free
};

constexpr Manipulator MakeManipulator(const char* id, bool peg, bool insert, MujocoEdit edit) {
  return {.task = {.id = id, .xml_file = "manipulator.xml", .control_timestep = 0.01, .edit = edit},
          .object = peg ? "peg" : "ball",
          .target = peg ? "target_peg" : "target_ball",
          .receptacle = !insert ? nullptr
                        : peg   ? "slot"
                                : "cup"};
}
constexpr Manipulator kBringBall =
    MakeManipulator("dm_control/manipulator-bring_ball", false, false, KeepProps<false, false>);
constexpr Manipulator kBringPeg =
    MakeManipulator("dm_control/manipulator-bring_peg", true, false, KeepProps<true, false>);
constexpr Manipulator kInsertBall =
    MakeManipulator("dm_control/manipulator-insert_ball", false, true, KeepProps<false, true>);
constexpr Manipulator kInsertPeg =
    MakeManipulator("dm_control/manipulator-insert_peg", true, true, KeepProps<true, true>);

class ManipulatorEnvironment final : public SuiteArmEnvironment {
 public:
  using Arguments = SuiteArguments<Manipulator>;

  explicit ManipulatorEnvironment(const Arguments& arguments)
      : SuiteArmEnvironment(arguments.table->task),
        object_(physics_.Body(arguments.table->object)),
        target_(physics_.Body(arguments.table->target)),
        grasp_(physics_.Site("grasp")),
        is_peg_(arguments.table->object == std::string("peg")) {
    const std::string object = arguments.table->object;
    for (size_t i = 0; i < 3; ++i)
      joints_[i] = physics_.joint(physics_.Joint(object + "_" + "xzy"[i]));
    placed_ = {target_};
    if (arguments.table->receptacle != nullptr) {
      inserts_ = true;
      placed_.push_back(physics_.Body(arguments.table->receptacle));
    }
    body_position_ = physics_.OwnBodyPosition();
    body_quaternion_ = physics_.OwnBodyQuaternion();
    if (is_peg_) {
      pairs_ = {{physics_.Site("peg_grasp"), grasp_},
                {physics_.Site("peg_pinch"), physics_.Site("pinch")},
                {physics_.Site("peg"), physics_.Site("target_peg")},
                {physics_.Site("target_peg_tip"), physics_.Site("peg_tip")}};
    } else {
      pairs_ = {{physics_.Site("ball"), physics_.Site("target_ball")}};
    }
    std::vector<Entry> entries = ArmEntries();
    entries.insert(entries.end(), {{"object_pos", {4}}, {"object_vel", {3}}, {"target_pos", {4}}});
    Declare(entries);
  }

  void Observe(ObservationRow out) override {
    ObserveArm(out);
    Append(Pose(object_), out.Leaf<double>(4));
    for (size_t i = 0; i < joints_.size(); ++i)
      out.Leaf<double>(5)[i] = physics_.velocity()[static_cast<size_t>(joints_[i].velocity)];
    Append(Pose(target_), out.Leaf<double>(6));
  }

 private:
  void Draw(Rng& rng) override {
    DrawUntilFree([&] { DrawOnce(rng); });
  }

  // The object begins in the hand or in the target, each with a probability of 0.1, or anywhere.
  void DrawOnce(Rng& rng) {
    DrawArm(rng);
    double x = rng.Uniform(-0.4, 0.4), z = rng.Uniform(0.1, 0.4);
    double angle = inserts_ ? rng.Uniform(-kPi / 3, kPi / 3) : rng.Uniform(-kPi, kPi);
    for (const int64_t body : placed_) {
      const auto position = Vector(body_position_, body);
      const auto quaternion = body_quaternion_.subspan(4 * static_cast<size_t>(body), 4);
      position[0] = x;
      position[2] = z;
      quaternion[0] = std::cos(angle / 2);
      quaternion[2] = std::sin(angle / 2);
    }
    const double chance = rng.Uniform();
    if (chance < 0.1) {
      physics_.Forward();
      const auto site = physics_.site_position(grasp_), frame = physics_.site_rotation(grasp_);
      x = site[0];
      z = site[2];
      angle = kPi - std::atan2(frame[6], frame[0]);
    } else if (chance >= 0.2) {
      x = rng.Uniform(-0.5, 0.5);
      z = rng.Uniform(0, 0.7);
      angle = rng.Uniform(0, 2 * kPi);
      physics_.velocity()[static_cast<size_t>(joints_[0].velocity)] = rng.Uniform(-5, 5);
    }
    const double place[] = {x, z, angle};
    for (size_t i = 0; i < joints_.size(); ++i)
      physics_.position()[static_cast<size_t>(joints_[i].position)] = place[i];
  }

  double Reward() override {
    if (!is_peg_) return IsClose(0);
    return std::max((IsClose(2) + IsClose(3)) / 2, (IsClose(0) + IsClose(1)) / 2 / 3);
  }
  double IsClose(size_t pair) const {
    return Tolerance(SiteDistance(pairs_[pair].first, pairs_[pair].second), 0, kClose,
                     {.margin = 2 * kClose});
  }

  int64_t object_, target_, grasp_;
  bool is_peg_, inserts_ = false;
  std::array<MujocoJoint, 3> joints_;                  // of the object: x, z and its angle
  std::vector<int64_t> placed_;                        // bodies where the target is
  std::vector<std::pair<int64_t, int64_t>> pairs_;     // sites that are to meet
  std::span<double> body_position_, body_quaternion_;  // in the model
};

WEFT_REGISTER_ENVIRONMENT(ManipulatorEnvironment, kBringBall.task.id,
                          "dm_control: a planar arm brings a ball to a target", &kBringBall)
WEFT_REGISTER_ENVIRONMENT(ManipulatorEnvironment, kBringPeg.task.id,
                          "dm_control: a planar arm brings a peg to a target", &kBringPeg)
WEFT_REGISTER_ENVIRONMENT(ManipulatorEnvironment, kInsertBall.task.id,
                          "dm_control: a planar arm puts a ball into a cup", &kInsertBall)
WEFT_REGISTER_ENVIRONMENT(ManipulatorEnvironment, kInsertPeg.task.id,
                          "dm_control: a planar arm puts a peg into a slot", &kInsertPeg)

}  // namespace
}  // namespace weft
