// The planar arm with a hand of dm_control/manipulator and dm_control/stacker
// (dm_control/suite/{manipulator,stacker}.py, dm_control 1.0.50): what both observe and draw.
#pragma once

#include "environments/dm_control/suite_environment.h"

namespace weft {

class SuiteArmEnvironment : public SuiteEnvironment {
 protected:
  explicit SuiteArmEnvironment(const SuiteTask& task);

  // The first four leaves of an observation: sine and cosine of the arm's angles, their velocities,
  // touch, and the pose of the hand.
  static std::vector<Entry> ArmEntries();
  void ObserveArm(ObservationRow out);
  // Draws the arm's angles; the two fingers mirror each other.
  void DrawArm(Rng& rng);

  // x, z and the two varying numbers of the quaternion of a body in the plane.
  std::array<double, 4> Pose(int64_t body) const;
  double SiteDistance(int64_t a, int64_t b) const {
    return Distance(physics_.site_position(a), physics_.site_position(b));
  }

  static constexpr double kClose = 0.01;  // m

 private:
  static constexpr size_t kJoints = 8, kTouches = 5;
  std::array<MujocoJoint, kJoints> joints_;
  std::array<int64_t, kTouches> touches_;
  int64_t hand_;
};

}  // namespace weft
