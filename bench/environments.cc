#include "bench/environments.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>

#include "base/thread_pool.h"
#include "bench/script.h"
#include "environments/availability.h"
#include "environments/batch_environment.h"
#include "environments/environment_row.h"
#include "environments/vector_environment.h"

namespace weft {
namespace {

constexpr uint64_t kSeed = 1;
// A sample plays the script some times over, segment by segment and in turn with the bare loop, and
// adds up the shortest time of each segment: what other processes take away from a segment is not
// counted.
constexpr int kSamples = 5;
constexpr int kRepeats = 3;
constexpr int64_t kSegments = 8;
constexpr double kSegmentSeconds = 0.002;

using Clock = std::chrono::steady_clock;
double Seconds(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Random legal actions, a stream for each row.
Script MakeScript(const EnvironmentEntry& entry, int64_t rows, int64_t steps) {
  Script script;
  std::vector<Rng> rngs;
  for (int64_t row = 0; row < rows; ++row) rngs.emplace_back(kSeed, Purpose::kAction, row);
  const auto batch = entry.make_batch(*entry.make_arguments(), {.rows = rows, .seed = kSeed});
  const Space& space = batch->spec().action;
  TimeStep step = batch->MakeTimeStep();
  const bool masked = step.observation.Has("action_mask");
  if (masked) batch->Reset(step);
  for (int64_t t = 0; t < steps; ++t) {
    Tensor& action = script.actions.emplace_back(
        Tensor::Zeros(space.shape().Prepend(batch->rows()), space.dtype()));
    SampleActions(space, step, rngs, action);
    if (masked) batch->Step(action, step);  // what is legal depends on what came before
  }
  return script;
}

// Adds what the rows of a batch do under the script's actions, found by playing each row alone.
void AddEvents(const EnvironmentEntry& entry, Script& script) {
  const int64_t rows = script.actions.at(0).dim(0);
  for (int64_t n = 0; n < rows; ++n) {
    EnvironmentRow row(entry.make(*entry.make_arguments()));
    Rng rng(kSeed, Purpose::kEnvironment, static_cast<uint64_t>(n));
    std::vector<Script::Event>& events = script.rows.emplace_back();
    row.Reset(rng);
    events.push_back({true, row.State()});
    for (const Tensor& action : script.actions) {
      if (row.type() == StepType::kLast) {
        row.Reset(rng);
        events.push_back({true, row.State()});
        continue;
      }
      const Tensor mine = action.Row(n);
      row.Step({mine.raw(), mine.dtype()}, rng);
      const auto reals = mine.data<float>();
      events.push_back({false, {reals.begin(), reals.end()}});
    }
  }
}

class BatchPlayer final : public Player {
 public:
  BatchPlayer(const EnvironmentEntry& entry, int64_t rows, ThreadPool& pool)
      : batch_(entry.make_batch(*entry.make_arguments(),
                                {.rows = rows, .seed = kSeed, .pool = &pool})),
        step_(batch_->MakeTimeStep()) {
    batch_->Reset(step_);
    first_ = batch_->Save();
  }
  void Rewind() override { batch_->Load(first_); }
  void Play(const Script& script, int64_t begin, int64_t end) override {
    for (int64_t t = begin; t < end; ++t)
      batch_->Step(script.actions[static_cast<size_t>(t)], step_);
  }

 private:
  std::unique_ptr<BatchEnvironment> batch_;
  TimeStep step_;
  TensorMap first_;
};

// CartPole's arithmetic on one row at a time; writes what a step writes.
class BareCartPole final : public Player {
 public:
  explicit BareCartPole(int64_t rows)
      : state_(static_cast<size_t>(rows)), observation_(state_.size()), outcome_(state_.size()) {}
  void Rewind() override { std::fill(state_.begin(), state_.end(), std::array<double, 4>{}); }
  void Play(const Script& script, int64_t begin, int64_t end) override {
    constexpr double kForces[] = {-10, 10};
    for (int64_t t = begin; t < end; ++t) {
      const auto actions = script.actions[static_cast<size_t>(t)].data<int64_t>();
      for (size_t row = 0; row < state_.size(); ++row) {
        auto& s = state_[row];
        const double sine = std::sin(s[2]), cosine = std::cos(s[2]);
        const double pull = (kForces[actions[row]] + 0.05 * (s[3] * s[3]) * sine) / 1.1;
        const double spin =
            (9.8 * sine - cosine * pull) / (0.5 * (4.0 / 3.0 - 0.1 * (cosine * cosine) / 1.1));
        const double push = pull - 0.05 * spin * cosine / 1.1;
        s = {s[0] + 0.02 * s[1], s[1] + 0.02 * push, s[2] + 0.02 * s[3], s[3] + 0.02 * spin};
        const bool fell = s[0] < -2.4 || s[0] > 2.4 || s[2] < -0.2094 || s[2] > 0.2094;
        for (size_t i = 0; i < 4; ++i) observation_[row][i] = static_cast<float>(s[i]);
        outcome_[row] = {1, fell ? 0.0f : 1.0f};
        if (fell) s = {0.01, 0.02, 0.03, 0.04};
      }
    }
  }

 private:
  std::vector<std::array<double, 4>> state_;
  std::vector<std::array<float, 4>> observation_;
  std::vector<std::array<float, 2>> outcome_;
};

std::unique_ptr<Player> MakeBare(const std::string& id, const EnvironmentEntry& entry,
                                 Script& script, ThreadPool& pool) {
  if (id == "CartPole-v1" && pool.threads() == 1) {
    return std::make_unique<BareCartPole>(script.actions.at(0).dim(0));
  }
  if (!HasBareMujoco(id)) return nullptr;
  AddEvents(entry, script);
  return MakeBareMujoco(id, script, pool);
}

// Seconds of the whole script for each player: sums of the shortest time of each segment.
std::vector<double> Sample(const Script& script, const std::vector<Player*>& players) {
  const int64_t steps = std::ssize(script.actions);
  std::vector<double> seconds(players.size());
  std::vector<std::vector<double>> best(
      players.size(), std::vector<double>(kSegments, std::numeric_limits<double>::max()));
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    for (Player* player : players) player->Rewind();
    for (int64_t segment = 0; segment < kSegments; ++segment) {
      for (size_t i = 0; i < players.size(); ++i) {
        double& shortest = best[i][static_cast<size_t>(segment)];
        const auto start = Clock::now();
        players[i]->Play(script, segment * steps / kSegments, (segment + 1) * steps / kSegments);
        shortest = std::min(shortest, Seconds(start));
      }
    }
  }
  for (size_t i = 0; i < players.size(); ++i) {
    for (const double shortest : best[i]) seconds[i] += shortest;
  }
  return seconds;
}

EnvironmentFigure Measure(const std::string& id, const EnvironmentEntry& entry, ThreadPool& pool) {
  // A short run tells how many rows and steps fill a segment.
  BatchPlayer short_player(entry, 8, pool);
  const double rough =
      8.0 * kSegments / Sample(MakeScript(entry, 8, kSegments), {&short_player})[0];
  const int64_t rows = rough > 1e6 ? 256 : 8 * pool.threads();
  const auto fill = static_cast<int64_t>(rough * kSegmentSeconds / static_cast<double>(rows));
  const int64_t steps = kSegments * std::clamp<int64_t>(fill, 1, 1000);
  Script script = MakeScript(entry, rows, steps);
  BatchPlayer batch(entry, rows, pool);
  const std::unique_ptr<Player> bare = MakeBare(id, entry, script, pool);
  std::vector<Player*> players = {&batch};
  if (bare) players.push_back(bare.get());

  const auto total = static_cast<double>(rows * steps);
  std::vector<double> rates, bare_rates, ratios;
  for (int sample = 0; sample < kSamples; ++sample) {
    const std::vector<double> seconds = Sample(script, players);
    rates.push_back(total / seconds[0]);
    if (!bare) continue;
    bare_rates.push_back(total / seconds[1]);
    ratios.push_back(seconds[1] / seconds[0]);
  }
  EnvironmentFigure figure{.id = id, .threads = pool.threads(), .rows = rows};
  figure.steps_per_second = Median(rates);
  const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
  figure.spread = (*most - *least) / figure.steps_per_second;
  if (bare) {
    figure.bare_steps_per_second = Median(bare_rates);
    figure.ratio = Median(ratios);
  }
  return figure;
}

}  // namespace

EnvironmentFigure BenchVectorEnvironment(const std::string& id, int threads) {
  constexpr double kSampleSeconds = 0.1;
  EnvironmentConfig config;
  config.SetId(id);
  const int64_t rows = 8 * threads, ready = rows / 2;
  VectorEnvironment vector(config, {.environments = rows, .seed = kSeed, .threads = threads});
  VectorStep step = vector.MakeStep(ready);
  std::vector<int64_t> ids(static_cast<size_t>(ready));
  std::vector<Rng> rngs = {Rng(kSeed, Purpose::kAction)};
  const Space& space = vector.spec().action;
  Tensor action = Tensor::Zeros(space.shape().Prepend(step.now.type.dim(0)), space.dtype());
  vector.Reset();
  std::vector<double> rates;
  for (int sample = 0; sample <= kSamples; ++sample) {
    // The fastest of many short stretches: the one that other processes took least from.
    double fastest = 0;
    for (const auto start = Clock::now(); Seconds(start) < kSampleSeconds;) {
      const auto stretch = Clock::now();
      int64_t steps = 0;
      while (Seconds(stretch) < kSegmentSeconds) {
        vector.Receive(ids, step);
        SampleActions(space, step.now, rngs, action);
        vector.Send(ids, action);
        steps += ready;
      }
      fastest = std::max(fastest, static_cast<double>(steps) / Seconds(stretch));
    }
    if (sample > 0) rates.push_back(fastest);
  }
  const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
  EnvironmentFigure figure{.id = id, .threads = threads, .rows = rows};
  figure.steps_per_second = Median(rates);
  figure.spread = (*most - *least) / figure.steps_per_second;
  return figure;
}

std::vector<EnvironmentFigure> BenchEnvironments(const std::vector<std::string>& only,
                                                 int threads) {
  ThreadPool pool(threads);
  std::vector<EnvironmentFigure> figures;
  for (const std::string& id : only.empty() ? Environments().Names() : only) {
    if (only.empty() && !WhyUnavailable(Environments().At(id)).empty()) continue;
    figures.push_back(Measure(id, Environments().At(id), pool));
  }
  return figures;
}

}  // namespace weft
