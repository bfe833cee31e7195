// simple_push_v3: an agent goes to its goal, one of two landmarks, and the adversary, who sees its
// colour at most, pushes it away.
#include "environments/mpe/particle_world.h"

namespace weft {
namespace {

class SimplePush final : public ParticleWorld {
 public:
  using Arguments = ParticleArguments;

  explicit SimplePush(const Arguments& arguments) : ParticleWorld("simple_push_v3", arguments, 2) {
    AddAgent("adversary_0", {.collides = true, .adversary = true});
    AddAgent("agent_0", {.collides = true});
    for (int i = 0; i < 2; ++i) AddLandmark(0.05);
    Ready();
  }

 private:
  void Draw(Rng& rng) override { std::ranges::fill(goals_, DrawLandmark(rng)); }

  void See(int64_t self, View& view) override {
    const bool good = !agent(self).adversary;
    view.Velocity(agent(self));
    if (good) {
      view.Position(goal(self), agent(self));
      PutColour(0.25, 0.5, goals_[1], view);
    }
    SeeLandmarks(self, 0, view);
    for (int64_t landmark = 0; good && landmark < 2; ++landmark)
      PutColour(0.1, 0.8, landmark, view);
    SeeOthers(self, 0, view);
  }

  void Reward(std::span<double> rewards) const override {
    const double good = Distance(agent(1), goal(1));
    rewards[0] = good - Distance(goal(0), agent(0));
    rewards[1] = -good;
  }

  // Grey, with more green or blue for the first or second landmark.
  static void PutColour(double grey, double more, int64_t landmark, View& view) {
    for (int64_t i = 0; i < 3; ++i) view.Put(i == landmark + 1 ? grey + more : grey);
  }
};

WEFT_REGISTER_MULTI_AGENT_ENVIRONMENT(SimplePush, "simple_push_v3",
                                      "particles: keep the other one from its landmark")

}  // namespace
}  // namespace weft
