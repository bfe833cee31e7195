// simple_crypto_v3: Alice sends Bob a message, encrypted with a key that both know; Eve listens.
// The message and the key are colours of four elements.
#include "environments/mpe/particle_world.h"

namespace weft {
namespace {

constexpr int64_t kEve = 0, kBob = 1, kAlice = 2;
constexpr int64_t kColour = 4;

class SimpleCrypto final : public ParticleWorld {
 public:
  using Arguments = ParticleArguments;

  explicit SimpleCrypto(const Arguments& arguments)
      : ParticleWorld("simple_crypto_v3", arguments, kColour) {
    AddAgent("eve_0", {.movable = false, .speaks = true, .adversary = true});
    AddAgent("bob_0", {.movable = false, .speaks = true});
    AddAgent("alice_0", {.movable = false, .speaks = true});
    for (int i = 0; i < 2; ++i) AddLandmark(0.05);
    Ready();
  }

 private:
  void Draw(Rng& rng) override {
    std::ranges::fill(goals_, DrawLandmark(rng));
    key_ = DrawLandmark(rng);
  }

  void See(int64_t self, View& view) override {
    if (self == kAlice) PutColour(goals_[kAlice], view);
    if (self != kEve) PutColour(key_, view);
    if (self != kAlice) view.Put(message(kAlice));
  }

  void Reward(std::span<double> rewards) const override {
    const double eve = Error(kEve), bob = Error(kBob);
    rewards[kEve] = -eve;
    rewards[kBob] = rewards[kAlice] = eve - bob;
  }

  // The colour of a landmark is its number, one-hot.
  static void PutColour(int64_t landmark, View& view) {
    for (int64_t i = 0; i < kColour; ++i) view.Put(i == landmark);
  }

  // Squared, of what an agent says; 0 when it says nothing at all.
  double Error(int64_t self) const {
    double error = 0;
    bool silent = true;
    const auto words = message(self);
    for (int64_t i = 0; i < kColour; ++i) {
      const double word = words[static_cast<size_t>(i)];
      const double difference = word - (i == goals_[static_cast<size_t>(self)] ? 1 : 0);
      error += difference * difference;
      silent = silent && word == 0;
    }
    return silent ? 0 : error;
  }
};

WEFT_REGISTER_MULTI_AGENT_ENVIRONMENT(SimpleCrypto, "simple_crypto_v3",
                                      "particles: talk in a way that a third does not understand")

}  // namespace
}  // namespace weft
