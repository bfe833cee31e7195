// dm_control/pendulum: a weak motor swings a pole up (dm_control/suite/pendulum.py, dm_control
// 1.0.50).
#include <cmath>
#include <numbers>

#include "environments/dm_control/suite_environment.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr double kUprightAngle = 8 * std::numbers::pi / 180;  // from the vertical, rad
constexpr SuiteTask kSwingup{.id = "dm_control/pendulum-swingup", .xml_file = "pendulum.xml"};

class PendulumEnvironment final : public SuiteEnvironment {
 public:
  using Arguments = SuiteArguments<SuiteTask>;

  explicit PendulumEnvironment(const Arguments& arguments)
      : SuiteEnvironment(*arguments.table), pole_(physics_.Body("pole")) {
    Declare({{"orientation", {2}}, {"velocity", {1}}});
  }

  void Observe(ObservationRow out) override {
    const auto rotation = physics_.body_rotation(pole_);
    out.Leaf<double>(0)[0] = rotation[8];
    out.Leaf<double>(0)[1] = rotation[2];
    *out.Leaf<double>(1) = physics_.velocity()[0];
  }

 private:
  void Draw(Rng& rng) override {
    physics_.position()[0] = rng.Uniform(-std::numbers::pi, std::numbers::pi);
  }
  double Reward() override {
    return Tolerance(physics_.body_rotation(pole_)[8], std::cos(kUprightAngle), 1);
  }

  int64_t pole_;
};

WEFT_REGISTER_ENVIRONMENT(PendulumEnvironment, kSwingup.id,
                          "dm_control: a weak motor swings a pole up", &kSwingup)

}  // namespace
}  // namespace weft
