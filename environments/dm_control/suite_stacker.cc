// dm_control/stacker: a planar arm stacks boxes (dm_control/suite/stacker.py, dm_control 1.0.50).
#include <algorithm>
#include <limits>
#include <numbers>
#include <string>

#include "environments/dm_control/suite_arm.h"
#include "environments/dm_control/suite_models.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Stacker {
  SuiteTask task;
  int64_t boxes;
};

constexpr Stacker MakeStacker(const char* id, int64_t boxes, MujocoEdit edit) {
  return {.task = {.id = id, .xml_file = "stacker.xml", .control_timestep = 0.01, .edit = edit},
          .boxes = boxes};
}
constexpr Stacker kStack2 = MakeStacker("dm_control/stacker-stack_2", 2, KeepBoxes<2>);
constexpr Stacker kStack4 = MakeStacker("dm_control/stacker-stack_4", 4, KeepBoxes<4>);

class StackerEnvironment final : public SuiteArmEnvironment {
 public:
  using Arguments = SuiteArguments<Stacker>;

  explicit StackerEnvironment(const Arguments& arguments)
      : SuiteArmEnvironment(arguments.table->task),
        target_(physics_.Body("target")),
        target_site_(physics_.Site("target")),
        grasp_(physics_.Site("grasp")),
        size_(physics_.geom_size(physics_.Geom("target"))[0]),
        target_position_(Vector(physics_.OwnBodyPosition(), target_)) {
    for (int64_t i = 0; i < arguments.table->boxes; ++i) {
      const std::string name = "box" + std::to_string(i);
      const auto joint = [&](const char* axis) {
        return physics_.joint(physics_.Joint(name + axis));
      };
      boxes_.push_back({.body = physics_.Body(name),
                        .site = physics_.Site(name),
                        .x = joint("_x"),
                        .y = joint("_y"),
                        .z = joint("_z")});
    }
    std::vector<Entry> entries = ArmEntries();
    entries.insert(entries.end(), {{"box_pos", {std::ssize(boxes_), 4}},
                                   {"box_vel", {3 * std::ssize(boxes_)}},
                                   {"target_pos", {2}}});
    Declare(entries);
  }

  void Observe(ObservationRow out) override {
    ObserveArm(out);
    double* position = out.Leaf<double>(4);
    double* velocity = out.Leaf<double>(5);
    for (const Box& box : boxes_) {
      position = Append(Pose(box.body), position);
      for (const MujocoJoint* joint : {&box.x, &box.y, &box.z})
        *velocity++ = physics_.velocity()[static_cast<size_t>(joint->velocity)];
    }
    const auto target = physics_.body_position(target_);
    out.Leaf<double>(6)[0] = target[0];
    out.Leaf<double>(6)[1] = target[2];
  }

 private:
  struct Box {
    int64_t body, site;
    MujocoJoint x, y, z;  // y: its angle
  };

  void Draw(Rng& rng) override {
    DrawUntilFree([&] {
      DrawArm(rng);
      const auto level = static_cast<double>(rng.Below(static_cast<uint64_t>(boxes_.size())));
      target_position_[2] = size_ * (2 * level + 1);
      target_position_[0] = rng.Uniform(-0.37, 0.37);
      const auto position = physics_.position();
      for (const Box& box : boxes_) {
        position[static_cast<size_t>(box.x.position)] = rng.Uniform(0.1, 0.3);
        position[static_cast<size_t>(box.z.position)] = rng.Uniform(0, 0.7);
        position[static_cast<size_t>(box.y.position)] = rng.Uniform(0, 2 * std::numbers::pi);
      }
    });
  }

  double Reward() override {
    double nearest = kInfinity;
    for (const Box& box : boxes_) nearest = std::min(nearest, SiteDistance(box.site, target_site_));
    return Tolerance(nearest, 0, 0, {.margin = 2 * size_}) *
           Tolerance(SiteDistance(grasp_, target_site_), 0.1, kInfinity, {.margin = kClose});
  }

  int64_t target_, target_site_, grasp_;
  double size_;  // half an edge of a box, m
  std::vector<Box> boxes_;
  std::span<double> target_position_;  // in the model
};

WEFT_REGISTER_ENVIRONMENT(StackerEnvironment, kStack2.task.id,
                          "dm_control: a planar arm stacks two boxes", &kStack2)
WEFT_REGISTER_ENVIRONMENT(StackerEnvironment, kStack4.task.id,
                          "dm_control: a planar arm stacks four boxes", &kStack4)

}  // namespace
}  // namespace weft
