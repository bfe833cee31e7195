#include "environments/box2d/race_track.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace weft::car_racing {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;
constexpr int kCheckpoints = 12;
constexpr double kRadius = 900 / kTrackScale, kStep = 21 / kTrackScale;
constexpr double kTurnRate = 0.31;  // rad per step at most
constexpr double kWidth = 40 / kTrackScale,
                 kBorder = 8 / kTrackScale;  // the first is half the road
constexpr int kBorderSteps = 4;              // a turn has to last so long
constexpr double kStartAngle = kTurn * -0.5 / kCheckpoints;

struct Checkpoint {
  double angle, x, y;
};

int Sign(double value) {
  return value > 0 ? 1 : value < 0 ? -1 : 0;
}

std::array<Checkpoint, kCheckpoints> DrawCheckpoints(Rng& rng) {
  std::array<Checkpoint, kCheckpoints> checkpoints;
  for (int c = 0; c < kCheckpoints; ++c) {
    const double noise = rng.Uniform(0, kTurn / kCheckpoints);
    double angle = kTurn * c / kCheckpoints + noise;
    double radius = rng.Uniform(kRadius / 3, kRadius);
    if (c == 0) angle = 0;
    if (c == kCheckpoints - 1) angle = kTurn * c / kCheckpoints;
    if (c == 0 || c == kCheckpoints - 1) radius = 1.5 * kRadius;
    checkpoints[static_cast<size_t>(c)] = {angle, radius * std::cos(angle),
                                           radius * std::sin(angle)};
  }
  return checkpoints;
}

// Several laps, one step after the other.
void Drive(const std::array<Checkpoint, kCheckpoints>& checkpoints, std::vector<Stretch>& track) {
  constexpr int kLaps = 4;
  double x = 1.5 * kRadius, y = 0, heading = 0;
  size_t next = 0;
  int laps = 0;
  bool was_below = false;
  track.clear();
  for (int step = 0; step < kMostSteps && laps <= kLaps; ++step) {
    double angle = std::atan2(y, x);
    if (was_below && angle > 0) {
      ++laps;
      was_below = false;
    }
    if (angle < 0) {
      was_below = true;
      angle += kTurn;
    }
    // The next checkpoint ahead; after the last one, the first of the next round.
    while (angle > checkpoints[next % kCheckpoints].angle) {
      if (++next % kCheckpoints == 0) angle -= kTurn;
    }
    const Checkpoint& target = checkpoints[next % kCheckpoints];
    const double right_x = std::cos(heading), right_y = std::sin(heading);
    while (heading - angle > 1.5 * std::numbers::pi) heading -= kTurn;
    while (heading - angle < -1.5 * std::numbers::pi) heading += kTurn;
    const double before = heading;
    const double off = kTrackScale * (right_x * (target.x - x) + right_y * (target.y - y));
    const double turn = std::min(kTurnRate, std::abs(0.001 * off));
    if (off > 0.3) heading -= turn;
    if (off < -0.3) heading += turn;
    x += -right_y * kStep;
    y += right_x * kStep;
    track.push_back({.angle = angle, .heading = before * 0.5 + heading * 0.5, .x = x, .y = y});
  }
}

// Cuts the last whole lap out; false when there is none or its ends do not meet.
bool Close(std::vector<Stretch>& track) {
  size_t begin = 0, end = 0;
  for (size_t i = track.size() - 1; i > 0 && begin == 0; --i) {
    if (track[i].angle <= kStartAngle || track[i - 1].angle > kStartAngle) continue;
    (end == 0 ? end : begin) = i;
  }
  if (begin == 0) return false;
  track.assign(track.begin() + static_cast<std::ptrdiff_t>(begin),
               track.begin() + static_cast<std::ptrdiff_t>(end) - 1);
  const Stretch &first = track.front(), &last = track.back();
  const double gap_x = std::cos(first.heading) * (first.x - last.x);
  const double gap_y = std::sin(first.heading) * (first.y - last.y);
  return std::sqrt(gap_x * gap_x + gap_y * gap_y) <= kStep;
}

void MarkHardTurns(std::vector<Stretch>& track) {
  const size_t n = track.size();
  const auto turn = [&](size_t i, size_t back) {
    return track[(i + n - back) % n].heading - track[(i + n - back - 1) % n].heading;
  };
  std::array<bool, kMostSteps> hard{};
  for (size_t i = 0; i < n; ++i) {
    bool sharp = true;
    int side = 0;
    for (size_t back = 0; back < kBorderSteps; ++back) {
      sharp &= std::abs(turn(i, back)) > kTurnRate * 0.2;
      side += Sign(turn(i, back));
    }
    hard[i] = sharp && std::abs(side) == kBorderSteps;
  }
  // As the original, which goes round while it marks what lies before a hard turn.
  for (size_t i = 0; i < n; ++i) {
    for (size_t back = 0; back < kBorderSteps; ++back) {
      if (hard[i]) hard[(i + n - back) % n] = true;
    }
  }
  for (size_t i = 0; i < n; ++i) track[i].hard_turn = hard[i];
}

// The strip between two distances to the right of two steps.
std::array<Point, 4> Strip(const Stretch& here, const Stretch& before, double left, double right) {
  const auto point = [](const Stretch& step, double away) {
    return Point{step.x + away * std::cos(step.heading), step.y + away * std::sin(step.heading)};
  };
  return {point(here, left), point(here, right), point(before, right), point(before, left)};
}

}  // namespace

void DrawTrack(Rng& rng, std::vector<Stretch>& track) {
  do {
    Drive(DrawCheckpoints(rng), track);
  } while (!Close(track));
  MarkHardTurns(track);
  for (size_t i = 0; i < track.size(); ++i) {
    Stretch& here = track[i];
    const Stretch& before = track[i == 0 ? track.size() - 1 : i - 1];
    here.tile = Strip(here, before, -kWidth, kWidth);
    const int side = Sign(before.heading - here.heading);
    here.border = Strip(here, before, side * kWidth, side * (kWidth + kBorder));
  }
}

}  // namespace weft::car_racing
