// dm_control/cartpole: a cart swings up or balances one pole or a chain of poles
// (dm_control/suite/cartpole.py, dm_control 1.0.50).
#include <algorithm>
#include <numbers>

#include "environments/dm_control/suite_environment.h"
#include "environments/dm_control/suite_models.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

struct Cartpole {
  SuiteTask task;
  bool swing_up;
  bool sparse = false;
};

constexpr Cartpole MakeCartpole(const char* id, bool swing_up, bool sparse,
                                MujocoEdit edit = nullptr) {
  return {.task = {.id = id, .xml_file = "cartpole.xml", .edit = edit},
          .swing_up = swing_up,
          .sparse = sparse};
}
constexpr Cartpole kBalance = MakeCartpole("dm_control/cartpole-balance", false, false);
constexpr Cartpole kBalanceSparse = MakeCartpole("dm_control/cartpole-balance_sparse", false, true);
constexpr Cartpole kSwingup = MakeCartpole("dm_control/cartpole-swingup", true, false);
constexpr Cartpole kSwingupSparse = MakeCartpole("dm_control/cartpole-swingup_sparse", true, true);
constexpr Cartpole kTwoPoles =
    MakeCartpole("dm_control/cartpole-two_poles", true, false, MakePoles<2>);
constexpr Cartpole kThreePoles =
    MakeCartpole("dm_control/cartpole-three_poles", true, false, MakePoles<3>);

class CartpoleEnvironment final : public SuiteEnvironment {
 public:
  using Arguments = SuiteArguments<Cartpole>;

  explicit CartpoleEnvironment(const Arguments& arguments)
      : SuiteEnvironment(arguments.table->task), table_(arguments.table) {
    Declare({{"position", {1 + 2 * (physics_.bodies() - kFirstPole)}},
             {"velocity", {std::ssize(physics_.velocity())}}});
  }

  void Observe(ObservationRow out) override {
    double* position = out.Leaf<double>(0);
    *position++ = physics_.position()[0];
    for (int64_t pole = kFirstPole; pole < physics_.bodies(); ++pole) {
      const auto rotation = physics_.body_rotation(pole);
      *position++ = rotation[8];
      *position++ = rotation[2];
    }
    Append(physics_.velocity(), out.Leaf<double>(1));
  }

 private:
  static constexpr int64_t kFirstPole = 2;  // after the world and the cart

  void Draw(Rng& rng) override {
    const auto position = physics_.position();
    if (table_->swing_up) {
      position[0] = 0.01 * rng.Normal();
      position[1] = std::numbers::pi + 0.01 * rng.Normal();
      for (double& angle : position.subspan(2)) angle = 0.1 * rng.Normal();
    } else {
      position[0] = rng.Uniform(-0.1, 0.1);
      for (double& angle : position.subspan(1)) angle = rng.Uniform(-0.034, 0.034);
    }
    for (double& velocity : physics_.velocity()) velocity = 0.01 * rng.Normal();
  }

  double Reward() override {
    const double cart = physics_.position()[0];
    if (table_->sparse) {
      double reward = Tolerance(cart, -0.25, 0.25);
      for (int64_t pole = kFirstPole; pole < physics_.bodies(); ++pole)
        reward *= Tolerance(physics_.body_rotation(pole)[8], 0.995, 1);
      return reward;
    }
    double upright = 0;
    for (int64_t pole = kFirstPole; pole < physics_.bodies(); ++pole)
      upright += (physics_.body_rotation(pole)[8] + 1) / 2;
    upright /= static_cast<double>(physics_.bodies() - kFirstPole);
    const double centred = (1 + Tolerance(cart, 0, 0, {.margin = 2})) / 2;
    double slow = 1;
    for (const double velocity : physics_.velocity().subspan(1))
      slow = std::min(slow, Tolerance(velocity, 0, 0, {.margin = 5}));
    return upright * (4 + SmallControl()) / 5 * (1 + slow) / 2 * centred;
  }

  const Cartpole* table_;
};

WEFT_REGISTER_ENVIRONMENT(CartpoleEnvironment, kBalance.task.id,
                          "dm_control: a cart balances a pole", &kBalance)
WEFT_REGISTER_ENVIRONMENT(CartpoleEnvironment, kBalanceSparse.task.id,
                          "cartpole-balance, paid only near the goal", &kBalanceSparse)
WEFT_REGISTER_ENVIRONMENT(CartpoleEnvironment, kSwingup.task.id,
                          "dm_control: a cart swings a pole up", &kSwingup)
WEFT_REGISTER_ENVIRONMENT(CartpoleEnvironment, kSwingupSparse.task.id,
                          "cartpole-swingup, paid only near the goal", &kSwingupSparse)
WEFT_REGISTER_ENVIRONMENT(CartpoleEnvironment, kTwoPoles.task.id,
                          "dm_control: a cart swings a chain of two poles up", &kTwoPoles)
WEFT_REGISTER_ENVIRONMENT(CartpoleEnvironment, kThreePoles.task.id,
                          "dm_control: a cart swings a chain of three poles up", &kThreePoles)

}  // namespace
}  // namespace weft
