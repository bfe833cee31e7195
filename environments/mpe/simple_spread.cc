// simple_spread_v3: N agents cover N landmarks without running into each other.
#include <algorithm>

#include "environments/mpe/particle_world.h"

namespace weft {
namespace {

constexpr double kCovered = 0.1;  // so near an agent covers a landmark

class SimpleSpread final : public ParticleWorld {
 public:
  struct Arguments : NeighbourArguments {
    int64_t N = 3;
    double local_ratio = 0.5;
    bool curriculum = false, terminate_on_success = false;
    int64_t curriculum_stage = 0;
    void Fields(FieldVisitor& v) override {
      v.Field("N", N, "agents, and landmarks", Range::Between(1, 1000));
      v.Field("local_ratio", local_ratio, "weight of collisions; the rest: of the distances",
              Range::Between(0, 1));
      v.Field("curriculum", curriculum,
              "stage 0: collisions cost nothing; stage 1: the usual task");
      v.Field("curriculum_stage", curriculum_stage, "of the curriculum", Range::Between(0, 1));
      v.Field("terminate_on_success", terminate_on_success,
              "an episode ends when all landmarks are covered");
      NeighbourArguments::Fields(v);
    }
  };

  explicit SimpleSpread(const Arguments& arguments)
      : ParticleWorld("simple_spread_v3", arguments, 2), arguments_(arguments) {
    for (int64_t i = 0; i < arguments.N; ++i)
      AddAgent(AgentName("agent", i), {.size = 0.15, .collides = true});
    for (int64_t i = 0; i < arguments.N; ++i) AddLandmark(0.05);
    Ready();
  }

 private:
  // The messages are those of agents who never speak: zeros.
  void See(int64_t self, View& view) override {
    view.Velocity(agent(self));
    view.Position(agent(self));
    SeeLandmarks(self, arguments_.num_landmark_neighbors, view);
    SeeOthers(self, arguments_.num_agent_neighbors, view);
    const int64_t others = arguments_.num_agent_neighbors;
    view.Zeros(2 * (others > 0 ? others : std::ssize(agents()) - 1));
  }

  void Reward(std::span<double> rewards) const override {
    double shared = 0;
    for (const Particle& landmark : landmarks()) shared -= Nearest(landmark);
    const bool penalty = !arguments_.curriculum || arguments_.curriculum_stage > 0;
    const auto all = agents();
    for (size_t i = 0; i < all.size(); ++i) {
      double own = 0;
      for (size_t j = 0; penalty && j < all.size(); ++j) own -= i != j && Touch(all[i], all[j]);
      rewards[i] = shared * (1 - arguments_.local_ratio) + own * arguments_.local_ratio;
    }
  }

  bool Success() const override {
    const auto covered = [&](const Particle& landmark) { return Nearest(landmark) < kCovered; };
    return arguments_.terminate_on_success && std::ranges::all_of(landmarks(), covered);
  }

  double Nearest(const Particle& landmark) const {
    double nearest = std::numeric_limits<double>::infinity();
    for (const Particle& agent : agents()) nearest = std::min(nearest, Distance(agent, landmark));
    return nearest;
  }

  Arguments arguments_;
};

WEFT_REGISTER_MULTI_AGENT_ENVIRONMENT(SimpleSpread, "simple_spread_v3",
                                      "particles: cover all landmarks and do not collide")

}  // namespace
}  // namespace weft
