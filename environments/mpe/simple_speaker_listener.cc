// simple_speaker_listener_v4: a speaker who cannot move tells a listener which of three landmarks
// it should go to.
#include "environments/mpe/particle_world.h"

namespace weft {
namespace {

constexpr int64_t kSpeaker = 0, kListener = 1;

class SimpleSpeakerListener final : public ParticleWorld {
 public:
  using Arguments = ParticleArguments;

  explicit SimpleSpeakerListener(const Arguments& arguments)
      : ParticleWorld("simple_speaker_listener_v4", arguments, 3) {
    AddAgent("speaker_0", {.size = 0.075, .movable = false, .speaks = true});
    AddAgent("listener_0", {.size = 0.075});
    for (int i = 0; i < 3; ++i) AddLandmark(0.04);
    Ready();
  }

 private:
  void Draw(Rng& rng) override { goals_[kSpeaker] = DrawLandmark(rng); }

  void See(int64_t self, View& view) override {
    if (self == kSpeaker) {
      for (int64_t i = 0; i < 3; ++i) view.Put(i == goals_[kSpeaker] ? 0.65 : 0.15);
      return;
    }
    view.Velocity(agent(kListener));
    SeeLandmarks(kListener, 0, view);
    view.Put(message(kSpeaker));
  }

  void Reward(std::span<double> rewards) const override {
    rewards[0] = rewards[1] = -SquaredDistance(agent(kListener), goal(kSpeaker));
  }
};

WEFT_REGISTER_MULTI_AGENT_ENVIRONMENT(SimpleSpeakerListener, "simple_speaker_listener_v4",
                                      "particles: one tells the other where to go")

}  // namespace
}  // namespace weft
