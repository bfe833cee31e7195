#include "environments/mpe/particle_world.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "environments/drawing/canvas.h"

namespace weft {
namespace {

constexpr double kTimeStep = 0.1, kDamping = 0.25, kContactForce = 100, kContactMargin = 1e-3;
// Farther apart than this, in margins, a contact adds less than e^-100 of the force.
constexpr double kNoContact = 100;
constexpr int64_t kMoves = 5;

// log(1 + exp(x)).
double Softplus(double x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

int64_t WordsOf(const Particle& agent, int64_t message_size) {
  return agent.speaks ? message_size : 1;
}

}  // namespace

void ParticleArguments::Fields(FieldVisitor& v) {
  v.Field("max_cycles", max_cycles, "steps until truncation", Range::AtLeast(1));
  v.Field("continuous_actions", continuous_actions, "real actions instead of discrete ones");
}

void NeighbourArguments::Fields(FieldVisitor& v) {
  ParticleArguments::Fields(v);
  v.Field("num_agent_neighbors", num_agent_neighbors,
          "other agents that one sees, the nearest first; 0: all", Range::Between(0, 1000));
  v.Field("num_landmark_neighbors", num_landmark_neighbors,
          "landmarks that an agent sees, the nearest first; 0: all", Range::Between(0, 1000));
}

ParticleWorld::ParticleWorld(const char* id, const ParticleArguments& arguments,
                             int64_t message_size)
    : continuous_(arguments.continuous_actions),
      message_size_(message_size),
      spec_(std::make_unique<EnvironmentSpec>()) {
  spec_->id = id;
  spec_->time_limit = arguments.max_cycles;
  spec_->appearance = {.width = 500, .height = 500, .frames_per_second = 1 / kTimeStep};
}

void ParticleWorld::AddAgent(const std::string& name, const Particle& agent) {
  WEFT_CHECK_EQ(particles_.size(), agent_count_) << "agents come before landmarks";
  particles_.push_back(agent);
  ++agent_count_;
  const int64_t words = WordsOf(agent, message_size_);
  Space action;
  if (continuous_) {
    const auto size =
        static_cast<size_t>((agent.movable ? kMoves : 0) + (agent.speaks ? words : 0));
    action = Box{.low = std::vector<double>(size, 0), .high = std::vector<double>(size, 1)};
  } else {
    action = Discrete{.n = (agent.movable ? kMoves : 1) * words};
  }
  spec_->agents.push_back({.name = name, .observation_size = 0, .action = action});
}

void ParticleWorld::AddLandmark(double size, bool collides) {
  particles_.push_back({.size = size, .movable = false, .collides = collides});
}

void ParticleWorld::Ready() {
  goals_.assign(agent_count_, 0);
  messages_.assign(agent_count_ * static_cast<size_t>(message_size_), 0);
  for (auto* numbers : {&force_x_, &force_y_, &rewards_}) numbers->assign(agent_count_, 0);
  for (size_t i = 0; i < particles_.size(); ++i) {
    if (particles_[i].collides) colliders_.push_back(i);
  }
  seen_.reserve(particles_.size());

  // An agent sees no more than so many numbers; how many they are, it shows itself.
  std::vector<float> sight((particles_.size() + 2100) * static_cast<size_t>(8 + message_size_));
  int64_t choices = 0;
  size_t reals = 0;
  for (size_t i = 0; i < agent_count_; ++i) {
    AgentSpec& agent = spec_->agents[i];
    View view(sight.data());
    See(static_cast<int64_t>(i), view);
    agent.observation_size = view.end() - sight.data();
    width_ = std::max(width_, agent.observation_size);
    if (continuous_) {
      reals = std::max(reals, agent.action.As<Box>()->low.size());
    } else {
      choices = std::max(choices, agent.action.As<Discrete>()->n);
    }
  }
  spec_->observation = {{.name = "observation", .shape = {width_}}};
  if (continuous_) {
    spec_->action =
        Box{.low = std::vector<double>(reals, 0), .high = std::vector<double>(reals, 1)};
    return;
  }
  spec_->action = Discrete{.n = choices};
  const auto fewer = [&](const AgentSpec& agent) {
    return agent.action.As<Discrete>()->n < choices;
  };
  if (std::ranges::none_of(spec_->agents, fewer)) return;
  spec_->observation.push_back(
      {.name = "action_mask", .shape = {choices}, .dtype = DType::kUInt8, .low = {0}, .high = {1}});
  for (const AgentSpec& agent : spec_->agents) {
    for (int64_t action = 0; action < choices; ++action)
      masks_.push_back(action < agent.action.As<Discrete>()->n);
  }
}

void ParticleWorld::Reset(Rng& rng, AgentRows out) {
  Draw(rng);
  for (Particle& particle : particles_) {
    const double range =
        particle.movable || &particle < &particles_[agent_count_] ? 1 : landmark_range();
    particle.x = rng.Uniform(-range, range);
    particle.y = rng.Uniform(-range, range);
    particle.vx = particle.vy = 0;
  }
  std::ranges::fill(messages_, 0.0);
  for (size_t agent = 0; agent < agent_count_; ++agent) out.First(static_cast<int64_t>(agent));
  Observe(out);
}

void ParticleWorld::Step(AgentActions actions, Rng&, AgentRows out) {
  Act(actions);
  Collide();
  Move();
  Reward(rewards_);
  const bool over = Success();
  for (size_t agent = 0; agent < agent_count_; ++agent) {
    const auto index = static_cast<int64_t>(agent);
    over ? out.Last(index, rewards_[agent], true) : out.Next(index, rewards_[agent]);
  }
  Observe(out);
}

// Forces and the messages that will be heard.
void ParticleWorld::Act(AgentActions actions) {
  for (size_t i = 0; i < agent_count_; ++i) {
    const Particle& agent = particles_[i];
    const ActionRow action = actions[static_cast<int64_t>(i)];
    double* message = messages_.data() + i * static_cast<size_t>(message_size_);
    double x = 0, y = 0;
    if (continuous_) {
      int64_t next = 0;
      if (agent.movable) {
        x = action.real(2) - action.real(1);
        y = action.real(4) - action.real(3);
        next = kMoves;
      }
      for (int64_t word = 0; agent.speaks && word < message_size_; ++word)
        message[word] = action.real(next + word);
    } else {
      const int64_t move = agent.movable ? action.index() % kMoves : 0;
      x = move == 1 ? -1 : move == 2 ? 1 : 0;
      y = move == 3 ? -1 : move == 4 ? 1 : 0;
      if (agent.speaks) {
        std::fill_n(message, message_size_, 0.0);
        message[action.index() / (agent.movable ? kMoves : 1)] = 1;
      }
    }
    force_x_[i] = x * agent.acceleration;
    force_y_[i] = y * agent.acceleration;
  }
}

void ParticleWorld::Collide() {
  for (size_t i = 0; i < colliders_.size(); ++i) {
    const size_t a = colliders_[i];
    if (a >= agent_count_) return;  // landmarks stay where they are
    for (size_t j = i + 1; j < colliders_.size(); ++j) {
      const size_t b = colliders_[j];
      const Particle &first = particles_[a], &second = particles_[b];
      const double dx = first.x - second.x, dy = first.y - second.y;
      const double distance = std::sqrt(dx * dx + dy * dy);
      const double depth = -(distance - (first.size + second.size)) / kContactMargin;
      if (depth < -kNoContact || distance == 0) continue;  // in one place nothing says where to go
      const double penetration = Softplus(depth) * kContactMargin;
      const double x = kContactForce * dx / distance * penetration;
      const double y = kContactForce * dy / distance * penetration;
      force_x_[a] += x;
      force_y_[a] += y;
      if (b >= agent_count_) continue;
      force_x_[b] -= x;
      force_y_[b] -= y;
    }
  }
}

void ParticleWorld::Move() {
  for (size_t i = 0; i < agent_count_; ++i) {
    Particle& agent = particles_[i];
    if (!agent.movable) continue;
    agent.x += agent.vx * kTimeStep;
    agent.y += agent.vy * kTimeStep;
    agent.vx = agent.vx * (1 - kDamping) + force_x_[i] * kTimeStep;
    agent.vy = agent.vy * (1 - kDamping) + force_y_[i] * kTimeStep;
    const double speed = std::sqrt(agent.vx * agent.vx + agent.vy * agent.vy);
    if (speed > agent.max_speed) {
      agent.vx = agent.vx / speed * agent.max_speed;
      agent.vy = agent.vy / speed * agent.max_speed;
    }
  }
}

void ParticleWorld::Observe(AgentRows out) {
  for (size_t i = 0; i < agent_count_; ++i) {
    const auto agent = static_cast<int64_t>(i);
    auto* begin = out.Leaf<float>(agent);
    View view(begin);
    See(agent, view);
    std::fill(view.end(), begin + width_, 0.0f);
    if (masks_.empty()) continue;
    const size_t choices = masks_.size() / agent_count_;
    std::copy_n(&masks_[i * choices], choices, out.Leaf<uint8_t>(agent, 1));
  }
}

void ParticleWorld::SeeLandmarks(int64_t agent, int64_t count, View& view) {
  seen_.resize(landmarks().size());
  std::iota(seen_.begin(), seen_.end(), static_cast<int64_t>(agent_count_));
  SeeParticles(agent, count, view);
}

void ParticleWorld::SeeOthers(int64_t agent, int64_t count, View& view) {
  seen_.clear();
  for (int64_t other = 0; other < static_cast<int64_t>(agent_count_); ++other) {
    if (other != agent) seen_.push_back(other);
  }
  SeeParticles(agent, count, view);
}

void ParticleWorld::SeeParticles(int64_t agent, int64_t count, View& view) {
  const Particle& from = particles_[static_cast<size_t>(agent)];
  const auto of = [&](int64_t index) -> const Particle& {
    return particles_[static_cast<size_t>(index)];
  };
  if (count > 0) {
    std::ranges::sort(seen_, {}, [&](int64_t index) { return Distance(of(index), from); });
    if (std::ssize(seen_) > count) seen_.resize(static_cast<size_t>(count));
  }
  for (const int64_t index : seen_) view.Position(of(index), from);
  view.Zeros(2 * std::max<int64_t>(0, count - std::ssize(seen_)));
}

void ParticleWorld::GetState(std::vector<double>& state) const {
  state.clear();
  for (const Particle& agent : agents()) state.insert(state.end(), {agent.x, agent.y});
  for (const Particle& agent : agents()) state.insert(state.end(), {agent.vx, agent.vy});
  state.insert(state.end(), messages_.begin(), messages_.end());
  for (const Particle& landmark : landmarks()) state.insert(state.end(), {landmark.x, landmark.y});
  for (const int64_t goal : goals_) state.push_back(static_cast<double>(goal));
  state.push_back(static_cast<double>(key_));
}

void ParticleWorld::SetState(std::span<const double> state) {
  WEFT_CHECK_EQ(state.size(), 5 * agent_count_ + messages_.size() + 2 * landmarks().size() + 1)
      << "state of " << spec_->id;
  const double* next = state.data();
  const auto landmark = [&] {
    const double index = *next++;
    WEFT_CHECK(index >= 0 && (index == 0 || index < static_cast<double>(landmarks().size())))
        << "state of " << spec_->id << ": there is no landmark " << index;
    return static_cast<int64_t>(index);
  };
  for (Particle& agent : agents()) agent.x = *next++, agent.y = *next++;
  for (Particle& agent : agents()) agent.vx = *next++, agent.vy = *next++;
  for (double& element : messages_) element = *next++;
  for (size_t i = agent_count_; i < particles_.size(); ++i)
    particles_[i].x = *next++, particles_[i].y = *next++;
  for (int64_t& goal : goals_) goal = landmark();
  key_ = landmark();
}

void ParticleWorld::Render(Canvas& canvas) const {
  // The square that landmarks and agents are drawn in, or more when one has left it.
  double reach = 1.1;
  for (const Particle& particle : particles_)
    reach = std::max({reach, std::abs(particle.x) + 0.2, std::abs(particle.y) + 0.2});
  canvas.Open(-reach, reach, -reach, reach, kWhite);
  const auto disc = [&](const Particle& particle, const Colour& colour) {
    canvas.Circle({particle.x, particle.y}, particle.size, colour);
    canvas.Ring({particle.x, particle.y}, particle.size, 0.01, kBlack);
  };
  for (const Particle& landmark : landmarks()) disc(landmark, {160, 160, 160});
  for (const Particle& agent : agents())
    disc(agent, agent.adversary ? Colour{220, 70, 70} : Colour{70, 110, 220});
}

std::string AgentName(const char* role, int64_t index) {
  return std::string(role) + "_" + std::to_string(index);
}

double BoundPenalty(double coordinate) {
  const double x = std::abs(coordinate);
  return x < 0.9 ? 0 : x < 1.0 ? (x - 0.9) * 10 : std::min(std::exp(2 * x - 2), 10.0);
}

}  // namespace weft
