// Ant: four legs are paid for running to the right and for staying upright, less the costs of
// controls and contacts (gymnasium/envs/mujoco/ant_v{4,5}.py, Gymnasium 1.4). Version 4 observes
// and pays for contacts only when it is told to, and reports where the torso was when MuJoCo last
// computed it.
#include <algorithm>
#include <cmath>

#include "environments/mujoco/ground_track.h"
#include "environments/mujoco/mujoco_environment.h"
#include "environments/mujoco/numpy_sum.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr MujocoTask Task(const char* id, int version) {
  return {.id = id,
          .xml_file = "ant.xml",
          .frame_skip = 5,
          .reset_noise_scale = 0.1,
          .normal_velocity = true,
          .reward_threshold = 6000,
          .version = version};
}

class Ant final : public MujocoEnvironment {
 public:
  static constexpr double kStepNanoseconds = 120000;

  struct Arguments : MujocoArguments {
    explicit Arguments(const MujocoTask& table)
        : MujocoArguments(table), contacts(table.version != 4) {}

    void Fields(FieldVisitor& v) override {
      MujocoArguments::Fields(v);
      v.Field("forward_reward_weight", forward_reward_weight, "reward per m/s to the right");
      v.Field("ctrl_cost_weight", control_cost_weight, "cost of the sum of squares of the action");
      v.Field("contact_cost_weight", contact_cost_weight,
              "cost of the sum of squares of the clipped contact forces");
      health.Fields(v);
      v.Field("main_body", main_body, "body that is to run: a name or a number");
      RangeField(v, "contact_force_range", contact_force_range, "clips the contact forces");
      v.Field("exclude_current_positions_from_observation", exclude_position,
              "leave the x and y coordinates out of the observation");
      if (task.version == 4) {
        v.Field("use_contact_forces", contacts, "observe contact forces and pay for them");
      } else {
        v.Field("include_cfrc_ext_in_observation", contacts, "observe contact forces");
      }
    }

    void Check() const override {
      CheckRange("healthy_z_range", health.z_range);
      CheckRange("contact_force_range", contact_force_range);
      if (!(contact_force_range[0] <= contact_force_range[1]))
        throw ConfigProblem("contact_force_range", "must not end below its beginning");
    }

    double forward_reward_weight = 1, control_cost_weight = 0.5, contact_cost_weight = 5e-4;
    HealthArguments health{.z_range = {0.2, 1}};
    std::string main_body = "1";
    std::vector<double> contact_force_range = {-1, 1};
    bool exclude_position = true, contacts;
  };

  explicit Ant(const Arguments& arguments)
      : MujocoEnvironment(arguments, 3, 1),
        arguments_(arguments),
        main_body_(simulation_.Body(arguments.main_body)),
        pays_contacts_(arguments.contact_cost_weight != 0 &&
                       (version() == 5 || arguments.contacts)) {
    std::vector<std::string> info = GroundInfo();
    info.insert(info.end(), {"reward_forward", "reward_ctrl", "reward_survive"});
    info.emplace_back(version() == 4 ? "forward_reward" : "reward_contact");
    Declare(simulation_.nq() - static_cast<int64_t>(hidden()) + simulation_.nv() +
                (arguments.contacts ? std::ssize(ObservedForces()) : 0),
            std::move(info), static_cast<int64_t>(hidden()));
  }

  void Step(ActionRow action, Rng&, StepRow out) override {
    Simulate(action);
    if (arguments_.contacts || pays_contacts_) simulation_.ComputeContactForces();
    const auto body = simulation_.body_position(main_body_);
    track_.Move(body[0], body[1], dt());
    const double forward = arguments_.forward_reward_weight * track_.x_velocity;
    const double control = ControlCost(action, arguments_.control_cost_weight);
    const double contact = ContactCost();
    const bool healthy = Healthy();
    const double survive = arguments_.health.Reward(healthy, version());
    const auto place = version() == 4 ? body : simulation_.position();
    WriteGroundInfo(place[0], place[1], track_, info_);
    info_[5] = forward;
    info_[6] = version() == 4 && arguments_.contacts ? -contact : -control;  // as it was
    info_[7] = survive;
    info_[8] = version() == 4 ? forward : -contact;
    Observe(out.observation);
    out.Next(forward + survive - (control + contact), !healthy && arguments_.health.terminate);
  }

  void Observe(ObservationRow out) override {
    double* values = Append(simulation_.position().subspan(hidden()), out.Leaf<double>());
    values = Append(simulation_.velocity(), values);
    if (!arguments_.contacts) return;
    for (const double force : ObservedForces()) *values++ = Clip(force);
  }

  void Save(Writer& out) const override {
    MujocoEnvironment::Save(out);
    out.Write(track_);
  }
  void Load(Reader& in) override {
    MujocoEnvironment::Load(in);
    track_ = in.Read<GroundTrack>();
  }

 private:
  void Settle() override {
    const auto body = simulation_.body_position(main_body_);
    track_.Place(body[0], body[1]);
  }

  size_t hidden() const { return arguments_.exclude_position ? 2 : 0; }
  double Clip(double force) const {
    return std::clamp(force, arguments_.contact_force_range[0], arguments_.contact_force_range[1]);
  }
  // Version 5 leaves out the world, which feels none.
  std::span<const double> ObservedForces() const {
    return simulation_.contact_force().subspan(version() == 4 ? 0 : 6);
  }
  double ContactCost() const {
    if (!pays_contacts_) return 0;
    const auto forces = simulation_.contact_force();
    const double sum = NumpySum<double>(std::ssize(forces), [&](int64_t i) {
      const double force = Clip(forces[static_cast<size_t>(i)]);
      return force * force;
    });
    return arguments_.contact_cost_weight * sum;
  }
  bool Healthy() const {
    const auto finite = [](double value) { return std::isfinite(value); };
    const auto position = simulation_.position(), velocity = simulation_.velocity();
    return arguments_.health.z_range[0] <= position[2] &&
           position[2] <= arguments_.health.z_range[1] &&
           std::all_of(position.begin(), position.end(), finite) &&
           std::all_of(velocity.begin(), velocity.end(), finite);
  }

  Arguments arguments_;
  int64_t main_body_;
  bool pays_contacts_;
  GroundTrack track_;  // of the main body
};

WEFT_REGISTER_ENVIRONMENT(Ant, "Ant-v5",
                          "MuJoCo: four legs run and do not fall: 105 numbers, 8 real actions",
                          Task("Ant-v5", 5))
WEFT_REGISTER_ENVIRONMENT(Ant, "Ant-v4",
                          "Ant-v5 without contact forces: 27 numbers, last step as in Hopper-v4",
                          Task("Ant-v4", 4))

}  // namespace
}  // namespace weft
