#include "bench/games.h"

#include <algorithm>
#include <chrono>

#include "base/random.h"
#include "environments/boards/game.h"
#include "environments/environment.h"

namespace weft {
namespace {

constexpr int kSamples = 5;
// A sample is the fastest of some short stretches, those that no other process interrupted.
constexpr int kStretches = 30;
constexpr double kStretchSeconds = 0.002;

// Plays whole games for about a stretch.
double MovesPerSecond(Game& game, std::vector<Move>& moves, Rng& rng) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  int64_t played = 0;
  std::chrono::duration<double> spent{};
  do {
    for (game.Start(); !game.Over(); ++played) {
      const auto count = static_cast<uint64_t>(game.LegalMoves(moves));
      game.Play(moves[rng.Below(count)]);
    }
    spent = Clock::now() - start;
  } while (spent.count() < kStretchSeconds);
  return static_cast<double>(played) / spent.count();
}

}  // namespace

std::vector<GameFigure> BenchGames(const std::string& only) {
  std::vector<GameFigure> figures;
  for (const auto& [id, entry] : Games()) {
    if (!only.empty() && only != id) continue;
    const auto game = entry.make(*Environments().At(id).make_arguments());
    std::vector<Move> moves(static_cast<size_t>(game->Spec().actions));
    Rng rng(1, Purpose::kTest);
    std::vector<double> samples;
    for (int i = 0; i < kSamples; ++i) {
      double& fastest = samples.emplace_back();
      for (int k = 0; k < kStretches; ++k)
        fastest = std::max(fastest, MovesPerSecond(*game, moves, rng));
    }
    std::ranges::sort(samples);
    figures.push_back({.id = id,
                       .moves_per_second = samples[kSamples / 2],
                       .low = samples.front(),
                       .high = samples.back()});
  }
  return figures;
}

}  // namespace weft
