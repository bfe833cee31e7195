#include "environments/box2d/bipedal_terrain.h"

#include <cstddef>
#include <cstdint>

namespace weft::bipedal_walker {
namespace {

enum class Kind { kGrass, kStump, kStairs, kPit };

// Walks over the terrain from left to right, a step of kTerrainStep at a time.
class Builder {
 public:
  Builder(bool hardcore, Rng& rng, Terrain& terrain)
      : hardcore_(hardcore), rng_(rng), terrain_(terrain) {}

  void Build() {
    terrain_.obstacles.clear();
    for (int i = 0; i < kTerrainLength; ++i) {
      const double x = i * kTerrainStep;
      if (begins_) {
        Begin(x);
      } else {
        Continue(i);
      }
      begins_ = false;
      terrain_.ground[static_cast<size_t>(i)] = {x, y_};
      if (--left_ == 0) Turn();
    }
  }

 private:
  int64_t Draw(int64_t low, int64_t high) {  // of low .. high - 1
    return low + static_cast<int64_t>(rng_.Below(static_cast<uint64_t>(high - low)));
  }

  // A box of `width` by `height` steps whose lower left corner is `right` and `up` steps from x and
  // the ground.
  void Put(double x, int64_t right, int64_t up, int64_t width, int64_t height) {
    const auto corner = [&](int64_t i, int64_t j) {
      return Point{x + static_cast<double>(i) * kTerrainStep,
                   y_ + static_cast<double>(j) * kTerrainStep};
    };
    terrain_.obstacles.push_back({corner(right, up), corner(right + width, up),
                                  corner(right + width, up + height), corner(right, up + height)});
  }

  // The first step of a kind.
  void Begin(double x) {
    switch (kind_) {
      case Kind::kGrass:
        break;
      case Kind::kStump:
        left_ = Draw(1, 3);
        Put(x, 0, 0, left_, left_);
        break;
      case Kind::kStairs:
        rise_ = rng_.Uniform() > 0.5 ? 1 : -1;
        stairs_ = Draw(3, 5);
        edge_ = y_;
        for (int64_t i = 0; i < stairs_; ++i)
          Put(x, i * kStairWidth, i * rise_ - 1, kStairWidth, 1);
        left_ = stairs_ * kStairWidth;
        break;
      case Kind::kPit:
        left_ = Draw(3, 5);
        Put(x, 0, -kPitDepth, 1, kPitDepth);
        Put(x, left_, -kPitDepth, 1, kPitDepth);
        left_ += 2;
        edge_ = y_;
        break;
    }
  }

  // The height of any other step.
  void Continue(int i) {
    switch (kind_) {
      case Kind::kGrass:
        slope_ = 0.8 * slope_ + 0.01 * (y_ < kTerrainHeight ? 1 : y_ > kTerrainHeight ? -1 : 0);
        if (i > kTerrainStart) slope_ += rng_.Uniform(-1, 1) / kScale;
        y_ += slope_;
        break;
      case Kind::kStump:
        break;
      case Kind::kStairs: {
        const auto gone = static_cast<double>(stairs_ * kStairWidth - left_ - rise_);
        y_ = edge_ +
             gone / static_cast<double>(kStairWidth) * static_cast<double>(rise_) * kTerrainStep;
        break;
      }
      case Kind::kPit:
        y_ = left_ > 1 ? edge_ - kPitDepth * kTerrainStep : edge_;
        break;
    }
  }

  // What comes next: grass, or after grass an obstacle.
  void Turn() {
    left_ = Draw(kTerrainGrass / 2, kTerrainGrass);
    kind_ = kind_ == Kind::kGrass && hardcore_ ? static_cast<Kind>(Draw(1, 4)) : Kind::kGrass;
    begins_ = true;
  }

  static constexpr int64_t kStairWidth = 4, kPitDepth = 4;  // in steps

  bool hardcore_;
  Rng& rng_;
  Terrain& terrain_;
  Kind kind_ = Kind::kGrass;
  bool begins_ = false;
  int64_t left_ = kTerrainStart;  // steps of the kind
  double y_ = kTerrainHeight, slope_ = 0;
  double edge_ = 0;  // height at which the kind began
  int64_t stairs_ = 0, rise_ = 0;
};

}  // namespace

void DrawTerrain(bool hardcore, Rng& rng, Terrain& terrain) {
  Builder(hardcore, rng, terrain).Build();
}

}  // namespace weft::bipedal_walker
