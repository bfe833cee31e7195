// dm_control/point_mass: a planar point mass moves to the centre; in the hard task each control
// pulls it in a direction drawn anew in every episode (dm_control/suite/point_mass.py, dm_control
// 1.0.50).
#include <cmath>

#include "environments/dm_control/suite_environment.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

struct PointMass {
  SuiteTask task;
  bool draws_gains;
};

constexpr PointMass kEasy{
    .task = {.id = "dm_control/point_mass-easy", .xml_file = "point_mass.xml"},
    .draws_gains = false};
constexpr PointMass kHard{
    .task = {.id = "dm_control/point_mass-hard", .xml_file = "point_mass.xml"},
    .draws_gains = true};

class PointMassEnvironment final : public SuiteEnvironment {
 public:
  using Arguments = SuiteArguments<PointMass>;

  explicit PointMassEnvironment(const Arguments& arguments)
      : SuiteEnvironment(arguments.table->task),
        target_(physics_.Geom("target")),
        mass_(physics_.Geom("pointmass")) {
    if (arguments.table->draws_gains) gains_ = physics_.OwnWrapParameter();
    Declare({{"position", {2}}, {"velocity", {2}}});
  }

  void Observe(ObservationRow out) override {
    Append(physics_.position(), out.Leaf<double>(0));
    Append(physics_.velocity(), out.Leaf<double>(1));
  }

 private:
  void Draw(Rng& rng) override {
    DrawJoints(rng);
    if (gains_.empty()) return;
    // One direction for each control; two that are nearly parallel leave no way to the side.
    const auto first = gains_.first(2), second = gains_.subspan(2, 2);
    DrawDirection(rng, first);
    do {
      DrawDirection(rng, second);
    } while (std::abs(first[0] * second[0] + first[1] * second[1]) > 0.9);
  }

  double Reward() override {
    const double size = physics_.geom_size(target_)[0];
    const double distance =
        Distance(physics_.geom_position(target_), physics_.geom_position(mass_));
    return Tolerance(distance, 0, size, {.margin = size}) * (SmallControl() + 4) / 5;
  }

  int64_t target_, mass_;
  std::span<double> gains_;  // in the model; empty when they are fixed
};

WEFT_REGISTER_ENVIRONMENT(PointMassEnvironment, kEasy.task.id,
                          "dm_control: a point mass moves to the centre", &kEasy)
WEFT_REGISTER_ENVIRONMENT(PointMassEnvironment, kHard.task.id,
                          "point_mass-easy with unknown controls", &kHard)

}  // namespace
}  // namespace weft
