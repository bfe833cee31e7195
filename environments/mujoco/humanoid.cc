// Humanoid and HumanoidStandup: a humanoid is paid for running to the right without falling, or for
// the height of its torso (gymnasium/envs/mujoco/humanoid{,standup}_v{4,5}.py, Gymnasium 1.4). The
// cost of controls is that of MuJoCo's control vector, so always f64. Version 4 of Humanoid has no
// contact cost; version 4 of both observes the rows of the world and of the free joint, too, which
// are 0.
#include <algorithm>
#include <limits>

#include "environments/mujoco/ground_track.h"
#include "environments/mujoco/mujoco_environment.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kRootVelocities = 6;  // of the free joint

constexpr MujocoTask Task(const char* id, const char* xml_file, int version) {
  return {.id = id,
          .xml_file = xml_file,
          .frame_skip = 5,
          .reset_noise_scale = 0.01,
          .version = version};
}

// What both tasks observe.
struct HumanoidObservation {
  bool exclude_position = true, inertia = true, velocity = true, actuator_force = true,
       contact_force = true;

  void Fields(FieldVisitor& v) {
    v.Field("exclude_current_positions_from_observation", exclude_position,
            "leave the x and y coordinates out of the observation");
    v.Field("include_cinert_in_observation", inertia, "observe the bodies' masses and inertias");
    v.Field("include_cvel_in_observation", velocity, "observe the bodies' velocities");
    v.Field("include_qfrc_actuator_in_observation", actuator_force, "observe actuator forces");
    v.Field("include_cfrc_ext_in_observation", contact_force, "observe contact forces");
  }

  int64_t hidden() const { return exclude_position ? 2 : 0; }  // of the positions

  // Calls append for each part in order.
  template <class Append>
  void ForEachPart(const MujocoSimulation& simulation, int version, Append append) const {
    const size_t bodies = version == 4 ? 0 : 1;  // left out
    append(simulation.position().subspan(static_cast<size_t>(hidden())));
    append(simulation.velocity());
    if (inertia) append(simulation.body_inertia().subspan(10 * bodies));
    if (velocity) append(simulation.body_velocity().subspan(6 * bodies));
    if (actuator_force)
      append(simulation.actuator_force().subspan(version == 4 ? 0 : kRootVelocities));
    if (contact_force) append(simulation.contact_force().subspan(6 * bodies));
  }

  int64_t Size(const MujocoSimulation& simulation, int version) const {
    int64_t size = 0;
    ForEachPart(simulation, version,
                [&](std::span<const double> part) { size += std::ssize(part); });
    return size;
  }
  void Write(const MujocoSimulation& simulation, int version, double* values) const {
    ForEachPart(simulation, version,
                [&](std::span<const double> part) { values = Append(part, values); });
  }
};

void AddTendonInfo(const MujocoSimulation& simulation, std::vector<std::string>& info) {
  for (const char* name : {"tendon_length", "tendon_velocity"}) {
    for (size_t i = 0; i < simulation.tendon_length().size(); ++i)
      info.push_back(std::string(name) + "[" + std::to_string(i) + "]");
  }
}
void WriteTendonInfo(const MujocoSimulation& simulation, double* info) {
  Append(simulation.tendon_velocity(), Append(simulation.tendon_length(), info));
}

// The cost of contact forces, clipped to a range.
struct ContactCost {
  double weight;
  std::vector<double> range = {-kInfinity, 10};

  double Of(const MujocoSimulation& simulation) const {
    return std::clamp(weight * SumOfSquares(simulation.contact_force()), range[0], range[1]);
  }
};

void CheckContactCost(const char* key, const ContactCost& cost) {
  CheckRange(key, cost.range);
  if (!(cost.range[0] <= cost.range[1]))
    throw ConfigProblem(key, "must not end below its beginning");
}

class Humanoid final : public MujocoEnvironment {
 public:
  static constexpr double kStepNanoseconds = 120000;

  struct Arguments : MujocoArguments {
    using MujocoArguments::MujocoArguments;
    void Fields(FieldVisitor& v) override {
      MujocoArguments::Fields(v);
      v.Field("forward_reward_weight", forward_reward_weight, "reward per m/s to the right");
      v.Field("ctrl_cost_weight", control_cost_weight,
              "cost of the sum of squares of the controls");
      if (task.version != 4) {
        v.Field("contact_cost_weight", contact.weight,
                "cost of the sum of squares of the contact forces");
        RangeField(v, "contact_cost_range", contact.range, "clips the cost of contacts");
      }
      health.Fields(v);
      observation.Fields(v);
    }
    void Check() const override {
      CheckRange("healthy_z_range", health.z_range);
      CheckContactCost("contact_cost_range", contact);
    }

    double forward_reward_weight = 1.25, control_cost_weight = 0.1;
    ContactCost contact{.weight = 5e-7};
    HealthArguments health{.reward = 5, .z_range = {1, 2}};
    HumanoidObservation observation;
  };

  explicit Humanoid(const Arguments& arguments)
      : MujocoEnvironment(arguments, 3, kRootVelocities), arguments_(arguments) {
    for (const double mass : simulation_.body_mass()) mass_ += mass;
    std::vector<std::string> info = GroundInfo();
    if (version() == 4) {
      info.insert(info.end(),
                  {"reward_linvel", "reward_quadctrl", "reward_alive", "forward_reward"});
    } else {
      info.insert(info.end(),
                  {"reward_forward", "reward_ctrl", "reward_survive", "reward_contact"});
    }
    AddTendonInfo(simulation_, info);
    Declare(arguments.observation.Size(simulation_, version()), std::move(info),
            arguments.observation.hidden());
  }

  void Step(ActionRow action, Rng&, StepRow out) override {
    Simulate(action);
    const bool pays_contacts = version() != 4;
    if (pays_contacts || arguments_.observation.contact_force) simulation_.ComputeContactForces();
    const auto [x, y] = CentreOfMass();
    track_.Move(x, y, dt());
    const auto position = simulation_.position();
    const double forward = arguments_.forward_reward_weight * track_.x_velocity;
    const double control = arguments_.control_cost_weight * SumOfSquares(simulation_.control());
    const double contact = pays_contacts ? arguments_.contact.Of(simulation_) : 0;
    const bool healthy =
        arguments_.health.z_range[0] < position[2] && position[2] < arguments_.health.z_range[1];
    const double survive = arguments_.health.Reward(healthy, version());
    if (version() == 4) {
      WriteGroundInfo(x, y, track_, info_);
    } else {
      WriteGroundInfo(position[0], position[1], track_, info_);
    }
    info_[5] = forward;
    info_[6] = -control;
    info_[7] = survive;
    info_[8] = version() == 4 ? forward : -contact;
    WriteTendonInfo(simulation_, &info_[0] + 9);
    Observe(out.observation);
    out.Next(forward + survive - (control + contact), !healthy && arguments_.health.terminate);
  }

  void Observe(ObservationRow out) override {
    arguments_.observation.Write(simulation_, version(), out.Leaf<double>());
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
  struct Point {
    double x, y;
  };
  Point CentreOfMass() const {
    const auto mass = simulation_.body_mass(), centre = simulation_.body_centre_of_mass();
    Point sum{};
    for (size_t body = 0; body < mass.size(); ++body) {
      sum.x += mass[body] * centre[3 * body];
      sum.y += mass[body] * centre[3 * body + 1];
    }
    return {sum.x / mass_, sum.y / mass_};
  }
  void Settle() override {
    const auto [x, y] = CentreOfMass();
    track_.Place(x, y);
  }

  Arguments arguments_;
  double mass_ = 0;    // kg
  GroundTrack track_;  // of the centre of mass
};

class HumanoidStandup final : public MujocoEnvironment {
 public:
  static constexpr double kStepNanoseconds = 120000;

  struct Arguments : MujocoArguments {
    using MujocoArguments::MujocoArguments;
    void Fields(FieldVisitor& v) override {
      MujocoArguments::Fields(v);
      v.Field("uph_cost_weight", height_weight, "has no effect, as in Gymnasium");
      v.Field("ctrl_cost_weight", control_cost_weight,
              "cost of the sum of squares of the controls");
      v.Field("impact_cost_weight", impact.weight,
              "cost of the sum of squares of the contact forces");
      RangeField(v, "impact_cost_range", impact.range, "clips the cost of contacts");
      observation.Fields(v);
    }
    void Check() const override { CheckContactCost("impact_cost_range", impact); }

    double height_weight = 1, control_cost_weight = 0.1;
    ContactCost impact{.weight = 0.5e-6};
    HumanoidObservation observation;
  };

  explicit HumanoidStandup(const Arguments& arguments)
      : MujocoEnvironment(arguments, 3, kRootVelocities), arguments_(arguments) {
    std::vector<std::string> info = {"x_position",   "y_position",      "z_distance_from_origin",
                                     "reward_linup", "reward_quadctrl", "reward_impact"};
    AddTendonInfo(simulation_, info);
    Declare(arguments.observation.Size(simulation_, version()), std::move(info),
            arguments.observation.hidden());
  }

  void Step(ActionRow action, Rng&, StepRow out) override {
    Simulate(action);
    simulation_.ComputeContactForces();
    const auto position = simulation_.position();
    info_[0] = position[0];
    info_[1] = position[1];
    info_[2] = position[2] - simulation_.initial_position()[2];
    info_[3] = position[2] / simulation_.timestep();
    info_[4] = -arguments_.control_cost_weight * SumOfSquares(simulation_.control());
    info_[5] = -arguments_.impact.Of(simulation_);
    WriteTendonInfo(simulation_, &info_[0] + 6);
    Observe(out.observation);
    out.Next(info_[3] + info_[4] + info_[5] + 1, false);
  }

  void Observe(ObservationRow out) override {
    arguments_.observation.Write(simulation_, version(), out.Leaf<double>());
  }

 private:
  Arguments arguments_;
};

WEFT_REGISTER_ENVIRONMENT(Humanoid, "Humanoid-v5",
                          "MuJoCo: a humanoid runs without falling: 348 numbers, 17 real actions",
                          Task("Humanoid-v5", "humanoid.xml", 5))
WEFT_REGISTER_ENVIRONMENT(
    Humanoid, "Humanoid-v4",
    "Humanoid-v5 without contact cost: 376 numbers, last step as in Hopper-v4",
    Task("Humanoid-v4", "humanoid.xml", 4))
WEFT_REGISTER_ENVIRONMENT(HumanoidStandup, "HumanoidStandup-v5",
                          "MuJoCo: a humanoid stands up: 348 numbers, 17 real actions",
                          Task("HumanoidStandup-v5", "humanoidstandup.xml", 5))
WEFT_REGISTER_ENVIRONMENT(HumanoidStandup, "HumanoidStandup-v4",
                          "HumanoidStandup-v5 that observes the world's rows, too: 376 numbers",
                          Task("HumanoidStandup-v4", "humanoidstandup.xml", 4))

}  // namespace
}  // namespace weft
