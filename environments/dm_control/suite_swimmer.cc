// dm_control/swimmer: a chain of links swims to a target (dm_control/suite/swimmer.py, dm_control
// 1.0.50).
#include "environments/dm_control/suite_environment.h"
#include "environments/dm_control/suite_models.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr SuiteTask MakeSwimmer(const char* id, MujocoEdit edit) {
  return {.id = id, .xml_file = "swimmer.xml", .control_timestep = 0.03, .edit = edit};
}
constexpr SuiteTask kSwimmer6 = MakeSwimmer("dm_control/swimmer-swimmer6", MakeLinks<6>);
constexpr SuiteTask kSwimmer15 = MakeSwimmer("dm_control/swimmer-swimmer15", MakeLinks<15>);

class SwimmerEnvironment final : public SuiteEnvironment {
 public:
  using Arguments = SuiteArguments<SuiteTask>;

  explicit SwimmerEnvironment(const Arguments& arguments)
      : SuiteEnvironment(*arguments.table),
        head_(physics_.Body("head")),
        nose_(physics_.Geom("nose")),
        target_(physics_.Geom("target")),
        target_position_(Vector(physics_.OwnGeomPosition(), target_)) {
    Declare({{"joints", {std::ssize(physics_.position()) - kRootJoints}},
             {"to_target", {2}},
             {"body_velocities", {std::ssize(BodyVelocities()) / 2}}});
  }

  void Observe(ObservationRow out) override {
    Append(physics_.position().subspan(kRootJoints), out.Leaf<double>(0));
    Append(ToTarget(), out.Leaf<double>(1));
    double* velocity = out.Leaf<double>(2);
    for (auto rest = BodyVelocities(); !rest.empty(); rest = rest.subspan(6)) {
      for (const size_t i : {0, 1, 5}) *velocity++ = rest[i];
    }
  }

 private:
  static constexpr int64_t kRootJoints = 3;

  void Draw(Rng& rng) override {
    DrawJoints(rng);
    const double box = rng.Uniform() < 0.2 ? 0.3 : 2;
    target_position_[0] = rng.Uniform(-box, box);
    target_position_[1] = rng.Uniform(-box, box);
  }

  double Reward() override {
    const double size = physics_.geom_size(target_)[0];
    return Tolerance(Norm(ToTarget()), 0, size,
                     {.margin = 5 * size, .sigmoid = Sigmoid::kLongTail});
  }

  // From the nose, in the frame of the head.
  std::array<double, 2> ToTarget() const {
    const auto target = Egocentric(physics_.geom_position(nose_), physics_.geom_position(target_),
                                   physics_.body_rotation(head_));
    return {target[0], target[1]};
  }
  // Velocity and rotation of every link, [links, 6], after the positions and axes of nose and head.
  std::span<const double> BodyVelocities() const { return physics_.sensors().subspan(12); }

  int64_t head_, nose_, target_;
  std::span<double> target_position_;  // in the model
};

WEFT_REGISTER_ENVIRONMENT(SwimmerEnvironment, kSwimmer6.id,
                          "dm_control: six links swim to a target", &kSwimmer6)
WEFT_REGISTER_ENVIRONMENT(SwimmerEnvironment, kSwimmer15.id,
                          "dm_control: fifteen links swim to a target", &kSwimmer15)

}  // namespace
}  // namespace weft
