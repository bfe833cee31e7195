// dm_control/lqr: masses between springs are brought to rest at the origin, for a cost that is
// quadratic in state and control (dm_control/suite/lqr.py, dm_control 1.0.50). The one domain that
// ends by itself, and whose rewards and controls have no bounds.
#include <cmath>
#include <numbers>

#include "environments/dm_control/suite_environment.h"
#include "environments/dm_control/suite_models.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr double kControlCost = 0.1;
constexpr double kRest = 1e-6;  // norm of the state below which the task ends

constexpr SuiteTask MakeLqr(const char* id, MujocoEdit edit) {
  return {.id = id, .xml_file = "lqr.xml", .edit = edit, .time_limit = 0};
}
constexpr SuiteTask kLqr21 = MakeLqr("dm_control/lqr-lqr_2_1", MakeMasses<2, 1>);
constexpr SuiteTask kLqr62 = MakeLqr("dm_control/lqr-lqr_6_2", MakeMasses<6, 2>);

class LqrEnvironment final : public SuiteEnvironment {
 public:
  using Arguments = SuiteArguments<SuiteTask>;

  explicit LqrEnvironment(const Arguments& arguments)
      : SuiteEnvironment(*arguments.table), stiffness_(physics_.OwnJointStiffness()) {
    const int64_t size = std::ssize(physics_.position());
    Declare({{"position", {size}}, {"velocity", {size}}});
  }

  void Observe(ObservationRow out) override {
    Append(physics_.position(), out.Leaf<double>(0));
    Append(physics_.velocity(), out.Leaf<double>(1));
  }

 private:
  // The springs are drawn once, with the first episode; the model has them at 0.
  void Draw(Rng& rng) override {
    for (double& stiffness : stiffness_) {
      if (stiffness == 0) stiffness = rng.Uniform(15, 25);
    }
    DrawDirection(rng, physics_.position());
    for (double& value : physics_.position()) value *= std::numbers::sqrt2;
  }

  double Reward() override {
    return 1 - (HalfSquares(physics_.position()) + HalfSquares(physics_.control()) * kControlCost);
  }
  bool Terminated() override {
    return std::hypot(Norm(physics_.position()), Norm(physics_.velocity())) < kRest;
  }

  static double HalfSquares(std::span<const double> values) {
    double sum = 0;
    for (const double value : values) sum += value * value;
    return 0.5 * sum;
  }

  std::span<double> stiffness_;  // of the springs, in the model
};

WEFT_REGISTER_ENVIRONMENT(LqrEnvironment, kLqr21.id,
                          "dm_control: two masses between springs, one of them driven", &kLqr21)
WEFT_REGISTER_ENVIRONMENT(LqrEnvironment, kLqr62.id,
                          "dm_control: six masses between springs, two of them driven", &kLqr62)

}  // namespace
}  // namespace weft
