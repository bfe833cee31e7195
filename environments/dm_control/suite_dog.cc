// dm_control/dog: a dog stands, walks, trots, runs, or fetches a ball (dm_control/suite/dog.py,
// dm_control 1.0.50).
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "environments/dm_control/suite_environment.h"
#include "environments/dm_control/suite_models.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kPi = std::numbers::pi;
constexpr double kUprightAngle = 30 * kPi / 180;  // rad
constexpr double kStandHeight = 0.9;              // of the heights of the model's own posture

struct Dog {
  SuiteTask task;
  double speed = 0;  // to reach, m/s; 0: stand
  bool fetches = false;
};

constexpr Dog MakeDog(const char* id, double speed, bool fetches, MujocoEdit edit) {
  return {.task = {.id = id, .xml_file = "dog.xml", .control_timestep = 0.015, .edit = edit},
          .speed = speed,
          .fetches = fetches};
}
constexpr Dog kStand = MakeDog("dm_control/dog-stand", 0, false, MakeDogField<15>);
constexpr Dog kWalk = MakeDog("dm_control/dog-walk", 1, false, MakeDogField<15>);
constexpr Dog kTrot = MakeDog("dm_control/dog-trot", 3, false, MakeDogField<45>);
constexpr Dog kRun = MakeDog("dm_control/dog-run", 9, false, MakeDogField<135>);
constexpr Dog kFetch = MakeDog("dm_control/dog-fetch", 0, true, nullptr);

class DogEnvironment final : public SuiteEnvironment {
 public:
  using Arguments = SuiteArguments<Dog>;

  explicit DogEnvironment(const Arguments& arguments)
      : SuiteEnvironment(arguments.table->task), table_(arguments.table) {
    for (int64_t i = 0; i < physics_.joints(); ++i) {
      if (physics_.joint(i).type == JointType::kHinge) hinges_.push_back(physics_.joint(i));
    }
    for (const char* name : {"accelerometer", "velocimeter", "gyro"})
      inertial_.push_back(physics_.Sensor(name));
    for (const char* name : {"foot_L", "foot_R", "hand_L", "hand_R"})
      feet_.push_back(physics_.Sensor(name));
    for (const char* name : {"palm_L", "palm_R", "sole_L", "sole_R"})
      touches_.push_back(physics_.Sensor(name));
    physics_.Reset();
    torso_height_ = kStandHeight * Height(torso_);
    pelvis_height_ = kStandHeight * Height(pelvis_);
    weight_ = physics_.gravity() * physics_.subtree_mass(torso_);
    const int64_t hinges = std::ssize(hinges_);
    std::vector<Entry> entries = {{"joint_angles", {hinges}},
                                  {"joint_velocites", {hinges}},
                                  {"torso_pelvis_height", {2}},
                                  {"z_projection", {9}},
                                  {"torso_com_velocity", {3}},
                                  {"inertial_sensors", {9}},
                                  {"foot_forces", {12}},
                                  {"touch_sensors", {4}},
                                  {"actuator_state", {std::ssize(physics_.activation())}}};
    if (table_->fetches) {
      ball_root_ = physics_.joint(physics_.Joint("ball_root"));
      ball_ = physics_.Geom("ball");
      target_ = physics_.Geom("target");
      head_ = physics_.Site("head");
      bites_ = {physics_.Site("upper_bite"), physics_.Site("lower_bite")};
      floor_size_ = physics_.geom_size(physics_.Geom("floor"))[0];
      entries.insert(entries.end(), {{"ball_state", {6}}, {"target_position", {3}}});
    }
    Declare(entries);
  }

  void Observe(ObservationRow out) override {
    for (size_t i = 0; i < hinges_.size(); ++i) {
      out.Leaf<double>(0)[i] = physics_.position()[static_cast<size_t>(hinges_[i].position)];
      out.Leaf<double>(1)[i] = physics_.velocity()[static_cast<size_t>(hinges_[i].velocity)];
    }
    Append(std::array{Height(torso_), Height(pelvis_)}, out.Leaf<double>(2));
    double* projection = out.Leaf<double>(3);
    for (const int64_t body : {skull_, torso_, pelvis_})
      projection = Append(physics_.body_rotation(body).subspan(6), projection);
    Append(ComVelocity(), out.Leaf<double>(4));
    AppendSensors(inertial_, out.Leaf<double>(5));
    AppendSensors(feet_, out.Leaf<double>(6));
    AppendSensors(touches_, out.Leaf<double>(7));
    Append(physics_.activation(), out.Leaf<double>(8));
    if (!table_->fetches) return;
    const auto head = physics_.site_position(head_), frame = physics_.site_rotation(head_);
    double* ball =
        Append(Egocentric(head, physics_.geom_position(ball_), frame), out.Leaf<double>(9));
    // The ball turns about its middle, and the velocimeter moves with the head in its frame.
    const double zero[3] = {};
    const auto moves = physics_.velocity().subspan(static_cast<size_t>(ball_root_.velocity), 3);
    const auto velocity = Egocentric(zero, moves, frame);
    const auto head_velocity = physics_.sensor(inertial_[1]);
    for (size_t i = 0; i < 3; ++i) *ball++ = velocity[i] - head_velocity[i];
    Append(Egocentric(head, physics_.geom_position(target_), frame), out.Leaf<double>(10));
  }

 private:
  void Draw(Rng& rng) override {
    const double azimuth = rng.Uniform(0, 2 * kPi);
    Append(std::array{std::cos(azimuth / 2), 0.0, 0.0, std::sin(azimuth / 2)},
           physics_.position().subspan(3).data());
    for (const size_t i : {0, 1, 5}) physics_.velocity()[i] = 2 * rng.Normal();
    const auto range = physics_.control_range();
    for (size_t i = 0; i < physics_.activation().size(); ++i)
      physics_.activation()[i] = rng.Uniform(range[2 * i], range[2 * i + 1]);
    if (table_->fetches) Throw(rng);
  }

  // The ball, from the edge of the floor towards its middle.
  void Throw(Rng& rng) {
    const double radius = 0.75 * floor_size_, azimuth = rng.Uniform(0, 2 * kPi);
    const double sine = std::sin(azimuth), cosine = std::cos(azimuth);
    Append(std::array{radius * sine, radius * cosine, 0.05},
           physics_.position().subspan(static_cast<size_t>(ball_root_.position)).data());
    const double height = rng.Uniform(0, 3), speed = rng.Uniform(0, 5);
    const double x = -sine + 0.05 * rng.Normal(), y = -cosine + 0.05 * rng.Normal();
    Append(std::array{speed * x, speed * y, std::sqrt(2 * physics_.gravity() * height)},
           physics_.velocity().subspan(static_cast<size_t>(ball_root_.velocity)).data());
  }

  double Reward() override {
    double reward =
        Tolerance(Height(torso_), torso_height_, kInfinity, {.margin = torso_height_}) *
        Tolerance(Height(pelvis_), pelvis_height_, kInfinity, {.margin = pelvis_height_});
    const double cosine = std::cos(kUprightAngle);
    for (const int64_t body : {skull_, torso_, pelvis_}) {
      reward *=
          Tolerance(physics_.body_rotation(body)[8], cosine, kInfinity,
                    {.margin = cosine + 1, .sigmoid = Sigmoid::kLinear, .value_at_margin = 0});
    }
    double touch = 0;
    for (const int64_t sensor : touches_) touch += physics_.sensor(sensor)[0];
    reward *= Tolerance(touch, weight_, kInfinity,
                        {.margin = weight_, .sigmoid = Sigmoid::kLinear, .value_at_margin = 0.9});
    if (table_->speed > 0) {
      const double forward = Tolerance(ComVelocity()[0], table_->speed, 2 * table_->speed,
                                       {.margin = std::max(1.0, table_->speed),
                                        .sigmoid = Sigmoid::kLinear,
                                        .value_at_margin = 0});
      reward *= (4 * forward + 1) / 5;
    }
    return table_->fetches ? reward * FetchReward() : reward;
  }

  double FetchReward() const {
    const auto ball = physics_.geom_position(ball_);
    const double mouth = 0.5 * (Distance(ball, physics_.site_position(bites_[0])) +
                                Distance(ball, physics_.site_position(bites_[1])));
    const double target = Distance(ball, physics_.geom_position(target_));
    const double radius = physics_.geom_size(target_)[0];
    const double near = Tolerance(mouth, 0, physics_.site_size(bites_[0])[0],
                                  {.margin = 2, .sigmoid = Sigmoid::kReciprocal});
    // A ball that has been fetched may be let go.
    const double reach = target < 2 * radius ? 1 : (6 * near + 1) / 7;
    return reach *
           (Tolerance(target, 0, radius, {.margin = floor_size_, .sigmoid = Sigmoid::kReciprocal}) +
            1) /
           2;
  }

  void AppendSensors(const std::vector<int64_t>& sensors, double* to) const {
    for (const int64_t sensor : sensors) to = Append(physics_.sensor(sensor), to);
  }
  double Height(int64_t body) const { return physics_.body_position(body)[2]; }
  // Of the whole dog, in the frame of the torso.
  std::array<double, 3> ComVelocity() const {
    const double zero[3] = {};
    return Egocentric(zero, physics_.sensor(velocity_), physics_.body_rotation(torso_));
  }

  const Dog* table_;
  int64_t skull_ = physics_.Body("skull"), torso_ = physics_.Body("torso"),
          pelvis_ = physics_.Body("pelvis"), velocity_ = physics_.Sensor("torso_linvel");
  std::vector<MujocoJoint> hinges_;
  std::vector<int64_t> inertial_, feet_, touches_;  // sensors
  double torso_height_ = 0, pelvis_height_ = 0;     // to stand at, m
  double weight_ = 0;                               // N
  // Of the task with a ball.
  MujocoJoint ball_root_{};
  int64_t ball_ = 0, target_ = 0, head_ = 0;
  std::array<int64_t, 2> bites_{};
  double floor_size_ = 0;
};

WEFT_REGISTER_ENVIRONMENT(DogEnvironment, kStand.task.id, "dm_control: a dog stands", &kStand)
WEFT_REGISTER_ENVIRONMENT(DogEnvironment, kWalk.task.id, "dm_control: a dog walks at 1 m/s", &kWalk)
WEFT_REGISTER_ENVIRONMENT(DogEnvironment, kTrot.task.id, "dm_control: a dog trots at 3 m/s", &kTrot)
WEFT_REGISTER_ENVIRONMENT(DogEnvironment, kRun.task.id, "dm_control: a dog runs at 9 m/s", &kRun)
WEFT_REGISTER_ENVIRONMENT(DogEnvironment, kFetch.task.id, "dm_control: a dog fetches a ball",
                          &kFetch)

}  // namespace
}  // namespace weft
