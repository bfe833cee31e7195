#include "environments/dm_control/suite_arm.h"

#include <cmath>
#include <numbers>

namespace weft {
namespace {

constexpr const char* kJointNames[] = {"arm_root", "arm_shoulder", "arm_elbow", "arm_wrist",
                                       "finger",   "fingertip",    "thumb",     "thumbtip"};
constexpr size_t kFinger = 4, kThumb = 6;
constexpr const char* kTouchNames[] = {"palm_touch", "finger_touch", "thumb_touch",
                                       "fingertip_touch", "thumbtip_touch"};

}  // namespace

SuiteArmEnvironment::SuiteArmEnvironment(const SuiteTask& task)
    : SuiteEnvironment(task), hand_(physics_.Body("hand")) {
  for (size_t i = 0; i < kJoints; ++i) joints_[i] = physics_.joint(physics_.Joint(kJointNames[i]));
  for (size_t i = 0; i < kTouches; ++i) touches_[i] = physics_.Sensor(kTouchNames[i]);
}

std::vector<SuiteEnvironment::Entry> SuiteArmEnvironment::ArmEntries() {
  return {
      {"arm_pos", {kJoints, 2}}, {"arm_vel", {kJoints}}, {"touch", {kTouches}}, {"hand_pos", {4}}};
}

void SuiteArmEnvironment::ObserveArm(ObservationRow out) {
  double* position = out.Leaf<double>(0);
  double* velocity = out.Leaf<double>(1);
  double* touch = out.Leaf<double>(2);
  for (const MujocoJoint& joint : joints_) {
    const double angle = physics_.position()[static_cast<size_t>(joint.position)];
    *position++ = std::sin(angle);
    *position++ = std::cos(angle);
    *velocity++ = physics_.velocity()[static_cast<size_t>(joint.velocity)];
  }
  for (const int64_t sensor : touches_) *touch++ = std::log1p(physics_.sensor(sensor)[0]);
  Append(Pose(hand_), out.Leaf<double>(3));
}

void SuiteArmEnvironment::DrawArm(Rng& rng) {
  const auto position = physics_.position();
  for (const MujocoJoint& joint : joints_) {
    position[static_cast<size_t>(joint.position)] =
        joint.limited ? rng.Uniform(joint.low, joint.high)
                      : rng.Uniform(-std::numbers::pi, std::numbers::pi);
  }
  position[static_cast<size_t>(joints_[kFinger].position)] =
      position[static_cast<size_t>(joints_[kThumb].position)];
}

std::array<double, 4> SuiteArmEnvironment::Pose(int64_t body) const {
  const auto position = physics_.body_position(body), quaternion = physics_.body_quaternion(body);
  return {position[0], position[2], quaternion[0], quaternion[2]};
}

}  // namespace weft
