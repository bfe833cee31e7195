// simple_v3: one agent goes to a landmark.
#include "environments/mpe/particle_world.h"

namespace weft {
namespace {

class Simple final : public ParticleWorld {
 public:
  using Arguments = ParticleArguments;

  explicit Simple(const Arguments& arguments) : ParticleWorld("simple_v3", arguments, 0) {
    AddAgent("agent_0", {});
    AddLandmark(0.05);
    Ready();
  }

 private:
  void See(int64_t self, View& view) override {
    view.Velocity(agent(self));
    SeeLandmarks(self, 0, view);
  }
  void Reward(std::span<double> rewards) const override {
    rewards[0] = -SquaredDistance(agent(0), landmarks()[0]);
  }
};

WEFT_REGISTER_MULTI_AGENT_ENVIRONMENT(Simple, "simple_v3", "particles: one goes to a landmark")

}  // namespace
}  // namespace weft
