// simple_tag_v3: slow adversaries hunt faster agents around obstacles.
#include <algorithm>
#include <array>

#include "environments/mpe/particle_world.h"

namespace weft {
namespace {

class SimpleTag final : public ParticleWorld {
 public:
  struct Arguments : NeighbourArguments {
    int64_t num_good = 1, num_adversaries = 3, num_obstacles = 2;
    bool curriculum = false, terminate_on_success = false;
    int64_t curriculum_stage = 0;
    void Fields(FieldVisitor& v) override {
      v.Field("num_good", num_good, "agents that are hunted", Range::Between(1, 1000));
      v.Field("num_adversaries", num_adversaries, "agents that hunt", Range::Between(1, 1000));
      v.Field("num_obstacles", num_obstacles, "obstacles", Range::Between(0, 1000));
      v.Field("curriculum", curriculum, "the hunted have 0.5, 0.75 or 1 of their speed, by stage");
      v.Field("curriculum_stage", curriculum_stage, "of the curriculum", Range::Between(0, 2));
      v.Field("terminate_on_success", terminate_on_success,
              "an episode ends when all hunted are caught at once");
      NeighbourArguments::Fields(v);
    }
  };

  explicit SimpleTag(const Arguments& arguments)
      : ParticleWorld("simple_tag_v3", arguments, 2), arguments_(arguments) {
    constexpr std::array kSpeeds = {0.5, 0.75, 1.0};  // of a stage
    const double speed =
        arguments.curriculum ? kSpeeds[static_cast<size_t>(arguments.curriculum_stage)] : 1;
    for (int64_t i = 0; i < arguments.num_adversaries; ++i) {
      AddAgent(
          AgentName("adversary", i),
          {.size = 0.075, .acceleration = 3, .max_speed = 1, .collides = true, .adversary = true});
    }
    for (int64_t i = 0; i < arguments.num_good; ++i) {
      AddAgent(
          AgentName("agent", i),
          {.size = 0.05, .acceleration = 4 * speed, .max_speed = 1.3 * speed, .collides = true});
    }
    for (int64_t i = 0; i < arguments.num_obstacles; ++i) AddLandmark(0.2, /*collides=*/true);
    Ready();
  }

 private:
  double landmark_range() const override { return 0.9; }

  void See(int64_t self, View& view) override {
    view.Velocity(agent(self));
    view.Position(agent(self));
    SeeLandmarks(self, arguments_.num_landmark_neighbors, view);
    const int64_t neighbours = arguments_.num_agent_neighbors;
    SeeOthers(self, neighbours, view);
    // Velocities of the hunted; with neighbours adversaries have a place of zeros.
    for (const int64_t other : seen()) {
      if (!agent(other).adversary) {
        view.Velocity(agent(other));
      } else if (neighbours > 0) {
        view.Zeros(2);
      }
    }
    view.Zeros(2 * std::max<int64_t>(0, neighbours - std::ssize(seen())));
  }

  void Reward(std::span<double> rewards) const override {
    const auto hunters = agents().first(static_cast<size_t>(arguments_.num_adversaries));
    double caught = 0;
    for (size_t i = hunters.size(); i < agents().size(); ++i) {
      const Particle& hunted = agents()[i];
      rewards[i] = 0;
      for (const Particle& hunter : hunters) {
        if (!Touch(hunter, hunted)) continue;
        rewards[i] -= 10;
        caught += 10;
      }
      rewards[i] -= BoundPenalty(hunted.x);
      rewards[i] -= BoundPenalty(hunted.y);
    }
    std::ranges::fill(rewards.first(hunters.size()), caught);
  }

  bool Success() const override {
    const auto hunters = agents().first(static_cast<size_t>(arguments_.num_adversaries));
    const auto caught = [&](const Particle& hunted) {
      return std::ranges::any_of(hunters,
                                 [&](const Particle& hunter) { return Touch(hunted, hunter); });
    };
    return arguments_.terminate_on_success &&
           std::ranges::all_of(agents().subspan(hunters.size()), caught);
  }

  Arguments arguments_;
};

WEFT_REGISTER_MULTI_AGENT_ENVIRONMENT(SimpleTag, "simple_tag_v3",
                                      "particles: hunters work together to catch a faster one")

}  // namespace
}  // namespace weft
