// dm_control/finger: a finger spins a free body, or turns it to an angle
// (dm_control/suite/finger.py, dm_control 1.0.50).
#include <cmath>
#include <numbers>

#include "environments/dm_control/suite_environment.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr double kSpinVelocity = 15;       // to exceed, rad/s
constexpr double kSpinDamping = 0.03;      // of the body's hinge
constexpr double kModelTargetSize = 0.03;  // of the target in the model, m

struct Finger {
  SuiteTask task;
  double target_size;  // m; 0: spin
};

constexpr Finger MakeFinger(const char* id, double target_size) {
  return {.task = {.id = id, .xml_file = "finger.xml", .control_timestep = 0.02},
          .target_size = target_size};
}
constexpr Finger kSpin = MakeFinger("dm_control/finger-spin", 0);
constexpr Finger kTurnEasy = MakeFinger("dm_control/finger-turn_easy", 0.07);
constexpr Finger kTurnHard = MakeFinger("dm_control/finger-turn_hard", kModelTargetSize);

class FingerEnvironment final : public SuiteEnvironment {
 public:
  using Arguments = SuiteArguments<Finger>;

  explicit FingerEnvironment(const Arguments& arguments)
      : SuiteEnvironment(arguments.table->task), spins_(arguments.table->target_size == 0) {
    std::vector<Entry> entries = {{"position", {4}}, {"velocity", {3}}, {"touch", {2}}};
    if (spins_) {
      physics_.OwnDofDamping()[static_cast<size_t>(physics_.joint(hinge_).velocity)] = kSpinDamping;
    } else {
      target_position_ = Vector(physics_.OwnSitePosition(), target_site_);
      if (arguments.table->target_size != kModelTargetSize)
        Vector(physics_.OwnSiteSize(), target_site_)[0] = arguments.table->target_size;
      entries.insert(entries.end(), {{"target_position", {2}}, {"dist_to_target", {}}});
    }
    Declare(entries);
  }

  void Observe(ObservationRow out) override {
    double* position = out.Leaf<double>(0);
    *position++ = physics_.sensor(proximal_)[0];
    *position++ = physics_.sensor(distal_)[0];
    Append(FromSpinner(tip_), position);
    double* velocity = out.Leaf<double>(1);
    for (const int64_t sensor : {proximal_velocity_, distal_velocity_, hinge_velocity_})
      *velocity++ = physics_.sensor(sensor)[0];
    out.Leaf<double>(2)[0] = std::log1p(physics_.sensor(touch_top_)[0]);
    out.Leaf<double>(2)[1] = std::log1p(physics_.sensor(touch_bottom_)[0]);
    if (spins_) return;
    Append(FromSpinner(target_), out.Leaf<double>(3));
    *out.Leaf<double>(4) = DistanceToTarget();
  }

 private:
  void Draw(Rng& rng) override {
    if (!spins_) {
      const double angle = rng.Uniform(-std::numbers::pi, std::numbers::pi);
      const auto hinge = physics_.joint_anchor(hinge_), cap = physics_.geom_size(cap_);
      const double radius = cap[0] + cap[1] + cap[2];
      target_position_[0] = hinge[0] + radius * std::sin(angle);
      target_position_[2] = hinge[2] + radius * std::cos(angle);
    }
    DrawUntilFree([&] { DrawJoints(rng); });
  }

  double Reward() override {
    if (spins_) return physics_.sensor(hinge_velocity_)[0] <= -kSpinVelocity ? 1 : 0;
    return DistanceToTarget() <= 0 ? 1 : 0;
  }

  // x and z of a position sensor less those of the body's hinge.
  std::array<double, 2> FromSpinner(int64_t sensor) const {
    const auto point = physics_.sensor(sensor), spinner = physics_.sensor(spinner_);
    return {point[0] - spinner[0], point[2] - spinner[2]};
  }
  // From the tip to the surface of the target, negative inside.
  double DistanceToTarget() const {
    return Distance(FromSpinner(target_), FromSpinner(tip_)) - physics_.site_size(target_site_)[0];
  }

  bool spins_;
  int64_t hinge_ = physics_.Joint("hinge"), cap_ = physics_.Geom("cap1"),
          target_site_ = physics_.Site("target");
  int64_t proximal_ = physics_.Sensor("proximal"), distal_ = physics_.Sensor("distal"),
          proximal_velocity_ = physics_.Sensor("proximal_velocity"),
          distal_velocity_ = physics_.Sensor("distal_velocity"),
          hinge_velocity_ = physics_.Sensor("hinge_velocity"), tip_ = physics_.Sensor("tip"),
          target_ = physics_.Sensor("target"), spinner_ = physics_.Sensor("spinner"),
          touch_top_ = physics_.Sensor("touchtop"), touch_bottom_ = physics_.Sensor("touchbottom");
  std::span<double> target_position_;  // in the model
};

WEFT_REGISTER_ENVIRONMENT(FingerEnvironment, kSpin.task.id, "dm_control: a finger spins a body",
                          &kSpin)
WEFT_REGISTER_ENVIRONMENT(FingerEnvironment, kTurnEasy.task.id,
                          "dm_control: a finger turns a body's tip into a target of 7 cm",
                          &kTurnEasy)
WEFT_REGISTER_ENVIRONMENT(FingerEnvironment, kTurnHard.task.id,
                          "dm_control: a finger turns a body's tip into a target of 3 cm",
                          &kTurnHard)

}  // namespace
}  // namespace weft
