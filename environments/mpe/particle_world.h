// The world of the multi-agent particle environments (Lowe et al. 2017, "Multi-agent actor-critic
// for mixed cooperative-competitive environments"; Mordatch and Abbeel 2018) with the numbers of
// MPE2 1.1: discs on a plane that are pushed by their actions and by contacts, and send messages. A
// scenario adds its agents and landmarks, and says what is drawn at a reset, seen and rewarded.
//
// A step of 0.1 s: forces of actions and contacts at the old positions; positions move with the old
// velocities; velocities lose a quarter, take the forces and keep their limit; then messages are
// heard. (The older OpenAI and PettingZoo worlds change velocities first.)
//
// Actions of an agent that moves: none, -x, +x, -y, +y; of one that speaks: which element of the
// message is 1. One that does both has their product, action = move + 5 * word. Continuous: the
// five in [0, 1], then the message's elements in [0, 1].
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "environments/register_environment.h"

namespace weft {

struct Particle {
  double x = 0, y = 0, vx = 0, vy = 0;
  double size = 0.05;       // radius
  double acceleration = 5;  // of a full action; the mass is 1
  double max_speed = std::numeric_limits<double>::infinity();
  bool movable = true;
  bool collides = false;
  bool speaks = false;
  bool adversary = false;
};

inline double SquaredDistance(const Particle& a, const Particle& b) {
  return (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y);
}
inline double Distance(const Particle& a, const Particle& b) {
  return std::sqrt(SquaredDistance(a, b));
}
inline bool Touch(const Particle& a, const Particle& b) {
  return Distance(a, b) < a.size + b.size;
}

// The keyword arguments that all scenarios have.
struct ParticleArguments : Config {
  int64_t max_cycles = 25;
  bool continuous_actions = false;
  void Fields(FieldVisitor& v) override;
};

// Keyword arguments of scenarios where agents may see no more than what is nearest.
struct NeighbourArguments : ParticleArguments {
  int64_t num_agent_neighbors = 0, num_landmark_neighbors = 0;
  void Fields(FieldVisitor& v) override;
};

class ParticleWorld : public MultiAgentEnvironment {
 public:
  static constexpr double kStepNanoseconds = 500;

  const EnvironmentSpec& spec() const override { return *spec_; }
  void Reset(Rng& rng, AgentRows out) override;
  void Step(AgentActions actions, Rng& rng, AgentRows out) override;
  // Of the agents x and y, vx and vy, the messages; x and y of the landmarks; the goals (a landmark
  // for each agent, 0 where it means nothing) and the key.
  void GetState(std::vector<double>& state) const override;
  void SetState(std::span<const double> state) override;
  void Observe(AgentRows out) override;
  // Agents are blue, adversaries red, landmarks grey.
  void Render(Canvas& canvas) const override;

 protected:
  // Where an agent writes what it sees.
  class View {
   public:
    explicit View(float* at) : at_(at) {}
    void Put(double value) { *at_++ = static_cast<float>(value); }
    void Put(std::span<const double> values) {
      for (const double value : values) Put(value);
    }
    void Position(const Particle& of) { Put(of.x), Put(of.y); }
    void Velocity(const Particle& of) { Put(of.vx), Put(of.vy); }
    void Position(const Particle& of, const Particle& from) {
      Put(of.x - from.x), Put(of.y - from.y);
    }
    void Zeros(int64_t count) {
      for (int64_t i = 0; i < count; ++i) Put(0);
    }
    float* end() const { return at_; }

   private:
    float* at_;
  };

  ParticleWorld(const char* id, const ParticleArguments& arguments, int64_t message_size);
  // For constructors of scenarios: agents first, then landmarks, then Ready.
  void AddAgent(const std::string& name, const Particle& agent);
  void AddLandmark(double size, bool collides = false);
  void Ready();

  // Goals and key; landmarks lie in a square of this half width.
  virtual void Draw(Rng& rng) { (void)rng; }
  virtual double landmark_range() const { return 1; }
  virtual void See(int64_t agent, View& view) = 0;
  virtual void Reward(std::span<double> rewards) const = 0;  // one of each agent
  virtual bool Success() const { return false; }             // ends the episode

  std::span<const Particle> agents() const { return {particles_.data(), agent_count_}; }
  std::span<Particle> agents() { return {particles_.data(), agent_count_}; }
  std::span<const Particle> landmarks() const {
    return std::span(particles_).subspan(agent_count_);
  }
  const Particle& agent(int64_t index) const { return particles_[static_cast<size_t>(index)]; }
  std::span<const double> message(int64_t agent) const {
    return std::span(messages_).subspan(static_cast<size_t>(agent * message_size_),
                                        static_cast<size_t>(message_size_));
  }
  const Particle& goal(int64_t agent) const {
    return landmarks()[static_cast<size_t>(goals_[static_cast<size_t>(agent)])];
  }
  int64_t DrawLandmark(Rng& rng) const {
    return static_cast<int64_t>(rng.Below(landmarks().size()));
  }

  // The landmarks, or the `count` nearest of them, seen from an agent; 0: all.
  void SeeLandmarks(int64_t agent, int64_t count, View& view);
  // The other agents, or the nearest `count` of them. seen(): which, in order, until the next call.
  void SeeOthers(int64_t agent, int64_t count, View& view);
  std::span<const int64_t> seen() const { return seen_; }

  std::vector<int64_t> goals_;  // [G], landmarks
  int64_t key_ = 0;             // a landmark

 private:
  void Act(AgentActions actions);
  void Collide();
  void Move();
  // Those of seen_, or the nearest `count`, in this order.
  void SeeParticles(int64_t agent, int64_t count, View& view);

  const bool continuous_;
  const int64_t message_size_;
  size_t agent_count_ = 0;
  std::vector<Particle> particles_;                  // agents, then landmarks
  std::vector<double> messages_;                     // [G, message_size_]
  std::vector<double> force_x_, force_y_, rewards_;  // [G]
  std::vector<size_t> colliders_;                    // of particles_
  std::vector<int64_t> seen_;                        // of particles_
  std::vector<uint8_t> masks_;                       // [G, n]; empty: agents have the same actions
  int64_t width_ = 0;                                // of an observation
  std::unique_ptr<EnvironmentSpec> spec_;
};

// "agent_1"
std::string AgentName(const char* role, int64_t index);

// What leaving the screen costs in one coordinate: nothing up to 0.9, then more and more.
double BoundPenalty(double coordinate);

}  // namespace weft
