// dm_control/fish: a fish turns upright, or swims to a target (dm_control/suite/fish.py, dm_control
// 1.0.50).
#include "environments/dm_control/suite_environment.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

struct Fish {
  SuiteTask task;
  bool swims;
};

constexpr Fish MakeFish(const char* id, bool swims) {
  return {.task = {.id = id, .xml_file = "fish.xml", .control_timestep = 0.04}, .swims = swims};
}
constexpr Fish kUpright = MakeFish("dm_control/fish-upright", false);
constexpr Fish kSwim = MakeFish("dm_control/fish-swim", true);

class FishEnvironment final : public SuiteEnvironment {
 public:
  using Arguments = SuiteArguments<Fish>;

  explicit FishEnvironment(const Arguments& arguments)
      : SuiteEnvironment(arguments.table->task),
        swims_(arguments.table->swims),
        torso_(physics_.Body("torso")),
        mouth_(physics_.Geom("mouth")),
        target_(physics_.Geom("target")) {
    for (const char* name : {"tail1", "tail_twist", "tail2", "finright_roll", "finright_pitch",
                             "finleft_roll", "finleft_pitch"}) {
      joints_.push_back(static_cast<size_t>(physics_.joint(physics_.Joint(name)).position));
    }
    std::vector<Entry> entries = {{"joint_angles", {std::ssize(joints_)}}, {"upright", {}}};
    if (swims_) {
      target_position_ = Vector(physics_.OwnGeomPosition(), target_);
      entries.push_back({"target", {3}});
    }
    entries.push_back({"velocity", {std::ssize(physics_.velocity())}});
    Declare(entries);
  }

  void Observe(ObservationRow out) override {
    for (size_t i = 0; i < joints_.size(); ++i)
      out.Leaf<double>(0)[i] = physics_.position()[joints_[i]];
    *out.Leaf<double>(1) = Upright();
    if (swims_) Append(ToTarget(), out.Leaf<double>(2));
    Append(physics_.velocity(), out.Leaf<double>(swims_ ? 3 : 2));
  }

 private:
  void Draw(Rng& rng) override {
    DrawDirection(rng, physics_.position().subspan(3, 4));
    for (const size_t joint : joints_) physics_.position()[joint] = rng.Uniform(-0.2, 0.2);
    if (!swims_) return;
    target_position_[0] = rng.Uniform(-0.4, 0.4);
    target_position_[1] = rng.Uniform(-0.4, 0.4);
    target_position_[2] = rng.Uniform(0.1, 0.3);
  }

  double Reward() override {
    if (!swims_) return Tolerance(Upright(), 1, 1, {.margin = 1});
    const double radii = physics_.geom_size(mouth_)[0] + physics_.geom_size(target_)[0];
    const double in_target = Tolerance(Norm(ToTarget()), 0, radii, {.margin = 2 * radii});
    return (7 * in_target + 0.5 * (Upright() + 1)) / 8;
  }

  double Upright() const { return physics_.body_rotation(torso_)[8]; }
  // From the mouth, in its frame.
  std::array<double, 3> ToTarget() const {
    return Egocentric(physics_.geom_position(mouth_), physics_.geom_position(target_),
                      physics_.geom_rotation(mouth_));
  }

  bool swims_;
  int64_t torso_, mouth_, target_;
  std::vector<size_t> joints_;         // their coordinates
  std::span<double> target_position_;  // in the model
};

WEFT_REGISTER_ENVIRONMENT(FishEnvironment, kUpright.task.id, "dm_control: a fish turns upright",
                          &kUpright)
WEFT_REGISTER_ENVIRONMENT(FishEnvironment, kSwim.task.id, "dm_control: a fish swims to a target",
                          &kSwim)

}  // namespace
}  // namespace weft
