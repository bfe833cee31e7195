// dm_control/quadruped: a four-legged robot walks, runs, climbs out of a bowl, or fetches a ball
// (dm_control/suite/quadruped.py, dm_control 1.0.50).
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "environments/dm_control/cubic_zoom.h"
#include "environments/dm_control/suite_environment.h"
#include "environments/dm_control/suite_models.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

enum class Goal { kMove, kEscape, kFetch };

struct Quadruped {
  SuiteTask task;
  Goal goal;
  double speed = 0;  // to reach, m/s
};

constexpr Quadruped MakeQuadruped(const char* id, Goal goal, MujocoEdit edit, double speed = 0) {
  return {.task = {.id = id, .xml_file = "quadruped.xml", .control_timestep = 0.02, .edit = edit},
          .goal = goal,
          .speed = speed};
}
constexpr Quadruped kWalk =
    MakeQuadruped("dm_control/quadruped-walk", Goal::kMove, MakeField<10>, 0.5);
constexpr Quadruped kRun =
    MakeQuadruped("dm_control/quadruped-run", Goal::kMove, MakeField<100>, 5);
constexpr Quadruped kEscape =
    MakeQuadruped("dm_control/quadruped-escape", Goal::kEscape, MakeTerrain);
constexpr Quadruped kFetch = MakeQuadruped("dm_control/quadruped-fetch", Goal::kFetch, MakeArena);

// The ground of the escape task: a bowl with random smooth bumps.
class Terrain {
 public:
  // heights [n, n], to be drawn, of a square that reaches `size` m from the middle to its sides.
  Terrain(std::span<float> heights, double size)
      : heights_(heights),
        bumps_(static_cast<size_t>(kBumps(size) * kBumps(size))),
        smooth_(heights.size()),
        zoom_(kBumps(size), std::lround(std::sqrt(static_cast<double>(heights.size())))) {}

  void Draw(Rng& rng) {
    for (double& bump : bumps_) bump = rng.Uniform(kSmoothness, 1);
    zoom_(bumps_, smooth_);
    const auto n = static_cast<size_t>(std::lround(std::sqrt(static_cast<double>(smooth_.size()))));
    const auto coordinate = [&](size_t i) {
      return 2 * static_cast<double>(i) / static_cast<double>(n - 1) - 1;
    };
    for (size_t i = 0; i < smooth_.size(); ++i) {
      const double radius = std::clamp(std::hypot(coordinate(i / n), coordinate(i % n)), 0.04, 1.0);
      const double bowl = 0.5 - std::cos(2 * std::numbers::pi * radius) / 2;
      heights_[i] = static_cast<float>(bowl * smooth_[i]);
    }
  }

 private:
  static constexpr double kSmoothness = 0.15;  // 0: as bumpy as can be, 1: smooth
  static constexpr double kBumpScale = 2;      // m
  static int64_t kBumps(double size) { return static_cast<int64_t>(2 * size / kBumpScale); }

  std::span<float> heights_;
  std::vector<double> bumps_, smooth_;
  CubicZoom zoom_;
};

class QuadrupedEnvironment final : public SuiteEnvironment {
 public:
  using Arguments = SuiteArguments<Quadruped>;

  explicit QuadrupedEnvironment(const Arguments& arguments)
      : SuiteEnvironment(arguments.table->task),
        goal_(arguments.table->goal),
        speed_(arguments.table->speed),
        torso_(physics_.Body("torso")),
        workspace_(physics_.Site("workspace")),
        velocimeter_(physics_.Sensor("velocimeter")) {
    for (int64_t i = 0; i < physics_.joints(); ++i) {
      if (physics_.joint(i).type == JointType::kHinge) hinges_.push_back(physics_.joint(i));
    }
    for (const char* name : {"imu_accel", "imu_gyro"}) imu_.push_back(physics_.Sensor(name));
    for (const std::string kind : {"force_toe_", "torque_toe_"}) {
      for (const char* toe : {"front_left", "front_right", "back_right", "back_left"})
        toes_.push_back(physics_.Sensor(kind + toe));
    }
    std::vector<Entry> entries = {
        {"egocentric_state", {2 * std::ssize(hinges_) + std::ssize(physics_.activation())}},
        {"torso_velocity", {3}},
        {"torso_upright", {}},
        {"imu", {6}},
        {"force_torque", {3 * std::ssize(toes_)}}};
    if (goal_ == Goal::kEscape) {
      for (int group = 0; group < 4; ++group) {
        for (int i = 0; i < 5; ++i)
          rangefinders_.push_back(
              physics_.Sensor("rf_" + std::to_string(group) + std::to_string(i)));
      }
      terrain_ = std::make_unique<Terrain>(physics_.OwnTerrain(), physics_.terrain_size());
      entries.insert(entries.end(), {{"origin", {3}}, {"rangefinder", {20}}});
    } else if (goal_ == Goal::kFetch) {
      ball_ = physics_.Body("ball");
      target_ = physics_.Site("target");
      root_ = physics_.joint(physics_.Joint("root"));
      ball_root_ = physics_.joint(physics_.Joint("ball_root"));
      floor_size_ = physics_.geom_size(physics_.Geom("floor"))[0];
      ball_size_ = physics_.geom_size(physics_.Geom("ball"))[0];
      entries.insert(entries.end(), {{"ball_state", {9}}, {"target_position", {3}}});
    }
    Declare(entries);
  }

  void Observe(ObservationRow out) override {
    double* state = out.Leaf<double>(0);
    for (const MujocoJoint& hinge : hinges_)
      *state++ = physics_.position()[static_cast<size_t>(hinge.position)];
    for (const MujocoJoint& hinge : hinges_)
      *state++ = physics_.velocity()[static_cast<size_t>(hinge.velocity)];
    Append(physics_.activation(), state);
    Append(physics_.sensor(velocimeter_), out.Leaf<double>(1));
    *out.Leaf<double>(2) = Upright();
    double* imu = out.Leaf<double>(3);
    for (const int64_t sensor : imu_) imu = Append(physics_.sensor(sensor), imu);
    double* force = out.Leaf<double>(4);
    for (const int64_t sensor : toes_) {
      for (const double value : physics_.sensor(sensor)) *force++ = std::asinh(value);
    }
    if (goal_ == Goal::kMove) return;
    const auto frame = physics_.body_rotation(torso_), torso = physics_.body_position(torso_);
    const double zero[3] = {};
    if (goal_ == Goal::kEscape) {
      Append(Egocentric(torso, zero, frame), out.Leaf<double>(5));
      double* range = out.Leaf<double>(6);
      for (const int64_t sensor : rangefinders_) {
        const double distance = physics_.sensor(sensor)[0];
        *range++ = distance == -1 ? 1 : std::tanh(distance);  // -1: there is nothing
      }
      return;
    }
    double* ball =
        Append(Egocentric(torso, physics_.body_position(ball_), frame), out.Leaf<double>(5));
    ball = Append(Egocentric(Velocity(root_), Velocity(ball_root_), frame), ball);
    Append(Egocentric(zero, Velocity(ball_root_, 3), frame), ball);
    Append(Egocentric(torso, physics_.site_position(target_), frame), out.Leaf<double>(6));
  }

 private:
  void Draw(Rng& rng) override {
    if (goal_ != Goal::kFetch) {
      if (terrain_) terrain_->Draw(rng);
      std::array<double, 4> orientation;
      DrawDirection(rng, orientation);
      return Place(0, 0, orientation);
    }
    const double azimuth = rng.Uniform(0, 2 * std::numbers::pi), radius = 0.9 * floor_size_;
    const double x = rng.Uniform(-radius, radius), y = rng.Uniform(-radius, radius);
    Place(x, y, {std::cos(azimuth / 2), 0, 0, std::sin(azimuth / 2)});
    const auto at = static_cast<size_t>(ball_root_.position);
    physics_.position()[at] = rng.Uniform(-radius, radius);
    physics_.position()[at + 1] = rng.Uniform(-radius, radius);
    physics_.position()[at + 2] = 2;
    const auto moves = static_cast<size_t>(ball_root_.velocity);
    physics_.velocity()[moves] = 5 * rng.Normal();
    physics_.velocity()[moves + 1] = 5 * rng.Normal();
  }

  // Lifts the robot from inside the floor, 1 cm at a time, until nothing touches.
  void Place(double x, double y, const std::array<double, 4>& orientation) {
    double z = 0;
    DrawUntilFree([&] {
      double* root = Append(std::array{x, y, z}, physics_.position().data());
      Append(orientation, root);
      z += 0.01;
    });
  }

  double Reward() override {
    const double least = goal_ == Goal::kEscape ? std::cos(20 * std::numbers::pi / 180) : 1;
    const double upright =
        Tolerance(Upright(), least, kInfinity,
                  {.margin = 1 + least, .sigmoid = Sigmoid::kLinear, .value_at_margin = 0});
    if (goal_ == Goal::kEscape) {
      const double size = physics_.terrain_size();
      return upright *
             Tolerance(Norm(physics_.site_position(workspace_)), size, kInfinity,
                       {.margin = size, .sigmoid = Sigmoid::kLinear, .value_at_margin = 0});
    }
    if (goal_ == Goal::kMove) {
      return upright *
             Tolerance(physics_.sensor(velocimeter_)[0], speed_, kInfinity,
                       {.margin = speed_, .sigmoid = Sigmoid::kLinear, .value_at_margin = 0.5});
    }
    const Margin margin{.margin = floor_size_ * std::numbers::sqrt2,
                        .sigmoid = Sigmoid::kLinear,
                        .value_at_margin = 0};
    const auto ball = physics_.body_position(ball_).first(2);
    const double reach = Tolerance(Distance(physics_.site_position(workspace_).first(2), ball), 0,
                                   physics_.site_size(workspace_)[0] + ball_size_, margin);
    const double fetch = Tolerance(Distance(physics_.site_position(target_).first(2), ball), 0,
                                   physics_.site_size(target_)[0], margin);
    return upright * (reach * (0.5 + 0.5 * fetch));
  }

  double Upright() const { return physics_.body_rotation(torso_)[8]; }
  std::span<const double> Velocity(const MujocoJoint& joint, size_t offset = 0) {
    return physics_.velocity().subspan(static_cast<size_t>(joint.velocity) + offset, 3);
  }

  Goal goal_;
  double speed_;
  int64_t torso_, workspace_, velocimeter_;
  std::vector<MujocoJoint> hinges_;
  std::vector<int64_t> imu_, toes_;  // sensors
  // Of the task with a terrain.
  std::vector<int64_t> rangefinders_;  // sensors
  std::unique_ptr<Terrain> terrain_;
  // Of the task with a ball.
  int64_t ball_ = 0, target_ = 0;
  MujocoJoint root_{}, ball_root_{};
  double floor_size_ = 0, ball_size_ = 0;
};

WEFT_REGISTER_ENVIRONMENT(QuadrupedEnvironment, kWalk.task.id,
                          "dm_control: a four-legged robot walks at 0.5 m/s", &kWalk)
WEFT_REGISTER_ENVIRONMENT(QuadrupedEnvironment, kRun.task.id,
                          "dm_control: a four-legged robot runs at 5 m/s", &kRun)
WEFT_REGISTER_ENVIRONMENT(QuadrupedEnvironment, kEscape.task.id,
                          "dm_control: a four-legged robot climbs out of a bowl", &kEscape)
WEFT_REGISTER_ENVIRONMENT(QuadrupedEnvironment, kFetch.task.id,
                          "dm_control: a four-legged robot brings a ball to the centre", &kFetch)

}  // namespace
}  // namespace weft
