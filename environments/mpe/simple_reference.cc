// simple_reference_v3: each of two agents knows the landmark that the other should go to, and tells
// it in words of ten elements.
#include "environments/mpe/particle_world.h"

namespace weft {
namespace {

class SimpleReference final : public ParticleWorld {
 public:
  struct Arguments : ParticleArguments {
    double local_ratio = 0.5;
    void Fields(FieldVisitor& v) override {
      v.Field("local_ratio", local_ratio, "weight of an agent's own reward; the rest: the mean's",
              Range::Between(0, 1));
      ParticleArguments::Fields(v);
    }
  };

  explicit SimpleReference(const Arguments& arguments)
      : ParticleWorld("simple_reference_v3", arguments, 10), local_(arguments.local_ratio) {
    for (int64_t i = 0; i < 2; ++i) AddAgent(AgentName("agent", i), {.speaks = true});
    for (int i = 0; i < 3; ++i) AddLandmark(0.05);
    Ready();
  }

 private:
  // The goal of an agent is where the other one should go.
  void Draw(Rng& rng) override {
    for (int64_t& goal : goals_) goal = DrawLandmark(rng);
  }

  void See(int64_t self, View& view) override {
    view.Velocity(agent(self));
    SeeLandmarks(self, 0, view);
    const int64_t landmark = goals_[static_cast<size_t>(self)];
    for (int64_t i = 0; i < 3; ++i) view.Put(i == landmark ? 0.75 : 0.25);
    view.Put(message(1 - self));
  }

  void Reward(std::span<double> rewards) const override {
    const double own[] = {-Distance(agent(1), goal(0)), -Distance(agent(0), goal(1))};
    const double mean = (own[0] + own[1]) / 2;
    for (size_t i = 0; i < 2; ++i) rewards[i] = mean * (1 - local_) + own[i] * local_;
  }

  double local_;
};

WEFT_REGISTER_MULTI_AGENT_ENVIRONMENT(SimpleReference, "simple_reference_v3",
                                      "particles: two tell each other where to go")

}  // namespace
}  // namespace weft
