// simple_world_comm_v3: as simple_tag, with food for the hunted, forests that hide who is inside,
// and a leader of the hunters who sees everything and speaks to them.
#include <algorithm>

#include "environments/mpe/particle_world.h"

namespace weft {
namespace {

constexpr int64_t kLeader = 0;

class SimpleWorldComm final : public ParticleWorld {
 public:
  struct Arguments : ParticleArguments {
    int64_t num_good = 2, num_adversaries = 4, num_obstacles = 1, num_food = 2, num_forests = 2;
    void Fields(FieldVisitor& v) override {
      v.Field("num_good", num_good, "agents that are hunted", Range::Between(1, 1000));
      v.Field("num_adversaries", num_adversaries, "agents that hunt, the leader among them",
              Range::Between(1, 1000));
      v.Field("num_obstacles", num_obstacles, "obstacles", Range::Between(0, 1000));
      v.Field("num_food", num_food, "places with food", Range::Between(1, 1000));
      v.Field("num_forests", num_forests, "forests", Range::Between(0, 1000));
      ParticleArguments::Fields(v);
    }
  };

  explicit SimpleWorldComm(const Arguments& arguments)
      : ParticleWorld("simple_world_comm_v3", arguments, 4), arguments_(arguments) {
    for (int64_t i = 0; i < arguments.num_adversaries; ++i) {
      AddAgent(i == kLeader ? "leadadversary_0" : AgentName("adversary", i - 1),
               {.size = 0.075,
                .acceleration = 3,
                .max_speed = 1,
                .collides = true,
                .speaks = i == kLeader,
                .adversary = true});
    }
    for (int64_t i = 0; i < arguments.num_good; ++i) {
      AddAgent(AgentName("agent", i),
               {.size = 0.045, .acceleration = 4, .max_speed = 1.3, .collides = true});
    }
    for (int64_t i = 0; i < arguments.num_obstacles; ++i) AddLandmark(0.2, /*collides=*/true);
    for (int64_t i = 0; i < arguments.num_food; ++i) AddLandmark(0.03);
    for (int64_t i = 0; i < arguments.num_forests; ++i) AddLandmark(0.3);
    Ready();
  }

 private:
  std::span<const Particle> food() const {
    return landmarks().subspan(static_cast<size_t>(arguments_.num_obstacles),
                               static_cast<size_t>(arguments_.num_food));
  }
  std::span<const Particle> forests() const {
    return landmarks().last(static_cast<size_t>(arguments_.num_forests));
  }
  std::span<const Particle> hunters() const {
    return agents().first(static_cast<size_t>(arguments_.num_adversaries));
  }
  std::span<const Particle> hunted() const { return agents().subspan(hunters().size()); }

  double landmark_range() const override { return 0.9; }

  bool InForest(const Particle& agent) const {
    return std::ranges::any_of(forests(),
                               [&](const Particle& forest) { return Touch(agent, forest); });
  }
  // In the same forest, or both in none; the leader sees all.
  bool Sees(int64_t self, const Particle& other) const {
    const Particle& from = agent(self);
    for (const Particle& forest : forests()) {
      if (Touch(from, forest) && Touch(other, forest)) return true;
    }
    return self == kLeader || (!InForest(from) && !InForest(other));
  }

  void See(int64_t self, View& view) override {
    const Particle& from = agent(self);
    view.Velocity(from);
    view.Position(from);
    SeeLandmarks(self, 0, view);
    for (const Particle& other : agents()) {
      if (&other == &from) continue;
      Sees(self, other) ? view.Position(other, from) : view.Zeros(2);
    }
    const auto forest_flags = [&] {
      for (const Particle& forest : forests()) view.Put(Touch(from, forest) ? 1 : -1);
    };
    if (!from.adversary) forest_flags();
    for (const Particle& other : hunted()) {
      if (&other == &from) continue;
      Sees(self, other) ? view.Velocity(other) : view.Zeros(2);
    }
    if (!from.adversary) return;
    forest_flags();
    view.Put(message(kLeader));
  }

  void Reward(std::span<double> rewards) const override {
    double caught = 0;
    for (size_t i = hunters().size(); i < agents().size(); ++i)
      rewards[i] = HuntedReward(agents()[i], caught);
    for (size_t i = 0; i < hunters().size(); ++i) {
      double nearest = std::numeric_limits<double>::infinity();
      for (const Particle& other : hunted())
        nearest = std::min(nearest, Distance(other, hunters()[i]));
      rewards[i] = -0.1 * nearest + caught;
    }
  }

  // Adds to `caught` what the hunters get for it.
  double HuntedReward(const Particle& self, double& caught) const {
    double reward = 0;
    for (const Particle& hunter : hunters()) {
      if (!Touch(hunter, self)) continue;
      reward -= 5;
      caught += 5;
    }
    reward -= 2 * BoundPenalty(self.x);
    reward -= 2 * BoundPenalty(self.y);
    double nearest = std::numeric_limits<double>::infinity();
    for (const Particle& place : food()) {
      if (Touch(self, place)) reward += 2;
      nearest = std::min(nearest, Distance(place, self));
    }
    return reward - 0.05 * nearest;
  }

  Arguments arguments_;
};

WEFT_REGISTER_MULTI_AGENT_ENVIRONMENT(SimpleWorldComm, "simple_world_comm_v3",
                                      "particles: a hunt with food, forests and a leader")

}  // namespace
}  // namespace weft
