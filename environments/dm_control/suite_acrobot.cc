// dm_control/acrobot: two links with a motor between them reach upwards
// (dm_control/suite/acrobot.py, dm_control 1.0.50).
#include <numbers>

#include "environments/dm_control/suite_environment.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

struct Acrobot {
  SuiteTask task;
  double margin;  // of the distance to the target, m
};

constexpr Acrobot kSwingup{.task = {.id = "dm_control/acrobot-swingup", .xml_file = "acrobot.xml"},
                           .margin = 1};
constexpr Acrobot kSwingupSparse{
    .task = {.id = "dm_control/acrobot-swingup_sparse", .xml_file = "acrobot.xml"}, .margin = 0};

class AcrobotEnvironment final : public SuiteEnvironment {
 public:
  using Arguments = SuiteArguments<Acrobot>;

  explicit AcrobotEnvironment(const Arguments& arguments)
      : SuiteEnvironment(arguments.table->task),
        margin_(arguments.table->margin),
        upper_arm_(physics_.Body("upper_arm")),
        lower_arm_(physics_.Body("lower_arm")),
        tip_(physics_.Site("tip")),
        target_(physics_.Site("target")) {
    Declare({{"orientations", {4}}, {"velocity", {2}}});
  }

  void Observe(ObservationRow out) override {
    const auto upper = physics_.body_rotation(upper_arm_),
               lower = physics_.body_rotation(lower_arm_);
    Append(std::array{upper[2], lower[2], upper[8], lower[8]}, out.Leaf<double>(0));
    Append(physics_.velocity(), out.Leaf<double>(1));
  }

 private:
  void Draw(Rng& rng) override {
    for (double& angle : physics_.position())
      angle = rng.Uniform(-std::numbers::pi, std::numbers::pi);
  }

  double Reward() override {
    const double distance = Distance(physics_.site_position(tip_), physics_.site_position(target_));
    return Tolerance(distance, 0, physics_.site_size(target_)[0], {.margin = margin_});
  }

  double margin_;
  int64_t upper_arm_, lower_arm_, tip_, target_;
};

WEFT_REGISTER_ENVIRONMENT(AcrobotEnvironment, kSwingup.task.id,
                          "dm_control: two links swing up to a target", &kSwingup)
WEFT_REGISTER_ENVIRONMENT(AcrobotEnvironment, kSwingupSparse.task.id,
                          "acrobot-swingup, paid only at the target", &kSwingupSparse)

}  // namespace
}  // namespace weft
