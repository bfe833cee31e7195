// simple_adversary_v3: N agents know which of N landmarks is the goal; one of them should be close
// to it and the adversary, who does not know, far from it.
#include <algorithm>

#include "environments/mpe/particle_world.h"

namespace weft {
namespace {

class SimpleAdversary final : public ParticleWorld {
 public:
  struct Arguments : NeighbourArguments {
    int64_t N = 2;
    void Fields(FieldVisitor& v) override {
      v.Field("N", N, "good agents, and landmarks", Range::Between(1, 1000));
      NeighbourArguments::Fields(v);
    }
  };

  explicit SimpleAdversary(const Arguments& arguments)
      : ParticleWorld("simple_adversary_v3", arguments, 2), arguments_(arguments) {
    AddAgent("adversary_0", {.size = 0.15, .adversary = true});
    for (int64_t i = 0; i < arguments.N; ++i) AddAgent(AgentName("agent", i), {.size = 0.15});
    for (int64_t i = 0; i < arguments.N; ++i) AddLandmark(0.08);
    Ready();
  }

 private:
  void Draw(Rng& rng) override { std::ranges::fill(goals_, DrawLandmark(rng)); }

  void See(int64_t self, View& view) override {
    if (!agent(self).adversary) view.Position(goal(self), agent(self));
    SeeLandmarks(self, arguments_.num_landmark_neighbors, view);
    SeeOthers(self, arguments_.num_agent_neighbors, view);
  }

  void Reward(std::span<double> rewards) const override {
    const double adversary = Distance(agent(0), goal(0));
    double nearest = std::numeric_limits<double>::infinity();
    for (const Particle& good : agents().subspan(1))
      nearest = std::min(nearest, Distance(good, goal(0)));
    rewards[0] = -adversary;
    std::ranges::fill(rewards.subspan(1), -nearest + adversary);
  }

  Arguments arguments_;
};

WEFT_REGISTER_MULTI_AGENT_ENVIRONMENT(SimpleAdversary, "simple_adversary_v3",
                                      "particles: hide from one which landmark is the goal")

}  // namespace
}  // namespace weft
