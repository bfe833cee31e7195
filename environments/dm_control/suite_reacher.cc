// dm_control/reacher: a planar arm reaches a target (dm_control/suite/reacher.py, dm_control
// 1.0.50).
#include <cmath>
#include <numbers>

#include "environments/dm_control/suite_environment.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

struct Reacher {
  SuiteTask task;
  double target_size;  // m; 0: that of the model, 0.05
};

constexpr Reacher kEasy{.task = {.id = "dm_control/reacher-easy", .xml_file = "reacher.xml"},
                        .target_size = 0};
constexpr Reacher kHard{.task = {.id = "dm_control/reacher-hard", .xml_file = "reacher.xml"},
                        .target_size = 0.015};

class ReacherEnvironment final : public SuiteEnvironment {
 public:
  using Arguments = SuiteArguments<Reacher>;

  explicit ReacherEnvironment(const Arguments& arguments)
      : SuiteEnvironment(arguments.table->task),
        target_(physics_.Geom("target")),
        finger_(physics_.Geom("finger")),
        target_position_(Vector(physics_.OwnGeomPosition(), target_)) {
    if (arguments.table->target_size > 0)
      Vector(physics_.OwnGeomSize(), target_)[0] = arguments.table->target_size;
    Declare({{"position", {2}}, {"to_target", {2}}, {"velocity", {2}}});
  }

  void Observe(ObservationRow out) override {
    Append(physics_.position(), out.Leaf<double>(0));
    Append(ToTarget(), out.Leaf<double>(1));
    Append(physics_.velocity(), out.Leaf<double>(2));
  }

 private:
  void Draw(Rng& rng) override {
    DrawJoints(rng);
    const double angle = rng.Uniform(0, 2 * std::numbers::pi), radius = rng.Uniform(0.05, 0.2);
    target_position_[0] = radius * std::sin(angle);
    target_position_[1] = radius * std::cos(angle);
  }

  double Reward() override {
    return Tolerance(Norm(ToTarget()), 0,
                     physics_.geom_size(target_)[0] + physics_.geom_size(finger_)[0]);
  }

  std::array<double, 2> ToTarget() const {
    const auto target = physics_.geom_position(target_), finger = physics_.geom_position(finger_);
    return {target[0] - finger[0], target[1] - finger[1]};
  }

  int64_t target_, finger_;
  std::span<double> target_position_;  // in the model
};

WEFT_REGISTER_ENVIRONMENT(ReacherEnvironment, kEasy.task.id,
                          "dm_control: a planar arm reaches a target of 5 cm", &kEasy)
WEFT_REGISTER_ENVIRONMENT(ReacherEnvironment, kHard.task.id,
                          "dm_control: a planar arm reaches a target of 1.5 cm", &kHard)

}  // namespace
}  // namespace weft
