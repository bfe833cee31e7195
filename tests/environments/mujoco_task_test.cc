// Tasks for MuJoCo models as data: against the same tasks in C++, against numbers of MuJoCo itself,
// and their mistakes.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "allocation_count.h"
#include "base/check.h"
#include "environments/environment_config.h"
#include "environments/environment_row.h"
#include "environments/verify/conformance.h"
#include "environments/verify/verify.h"
#include "tests/base/temporary_folder.h"

namespace weft {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kFolder = WEFT_TEST_DATA "/mujoco_tasks/";

std::string IdOf(const std::string& file) {
  return "mujoco:" + kFolder + file;
}

// `arguments` as YAML, over what the file says.
std::unique_ptr<Environment> Make(const std::string& id, const std::string& arguments = "{}") {
  const EnvironmentEntry entry = FindEnvironment(id);
  const auto config = entry.make_arguments();
  ConfigSource::Text(arguments, "run.yaml").Parse(*config);
  return entry.make(*config);
}

// Why an environment cannot be made.
std::string Refusal(const std::string& id, const std::string& arguments = "{}") {
  try {
    Make(id, arguments);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig) << error.message();
    return error.message();
  }
  return "nothing";
}

// A task file and a small arm beside it, for changes to either.
class Files {
 public:
  Files() {
    Write("arm.xml",
          "<mujoco><worldbody><site name=\"goal\" pos=\".3 0 0\"/>"
          "<body name=\"upper\"><joint name=\"shoulder\" axis=\"0 1 0\" range=\"-90 90\"/>"
          "<geom type=\"capsule\" fromto=\"0 0 0 .2 0 0\" size=\".02\"/>"
          "<body name=\"lower\" pos=\".2 0 0\"><joint name=\"elbow\" axis=\"0 1 0\"/>"
          "<geom type=\"capsule\" fromto=\"0 0 0 .2 0 0\" size=\".02\"/>"
          "<site name=\"hand\" pos=\".2 0 0\"/></body></body></worldbody>"
          "<actuator><motor name=\"lift\" joint=\"shoulder\" ctrlrange=\"-2 4\"/>"
          "<motor name=\"bend\" joint=\"elbow\"/></actuator>"
          "<sensor><velocimeter name=\"speed\" site=\"hand\"/></sensor>"
          "<keyframe><key name=\"bent\" qpos=\".5 -1\"/></keyframe></mujoco>");
  }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.Path(name)) << text;
  }
  // The id of a task of these lines, each indented below `environment`.
  std::string Task(const std::string& lines) const {
    Write("task.yaml", "environment:\n  mujoco: {model: arm.xml}\n" + lines);
    return "mujoco:" + folder_.Path("task.yaml");
  }
  std::string Path(const std::string& name) const { return folder_.Path(name); }

 private:
  TemporaryFolder folder_;
};

// From reset to reset, under the same seed: the same draws, the same numbers to the last bit.
TEST(MujocoTask, EqualsTheSameTaskInCpp) {
  for (const auto& [file, id] :
       {std::pair{"inverted_pendulum.yaml", "InvertedPendulum-v5"},
        std::pair{"hopper.yaml", "Hopper-v5"}, std::pair{"half_cheetah.yaml", "HalfCheetah-v5"}}) {
    EnvironmentRow task(Make(IdOf(file))), twin(Make(id));
    ASSERT_EQ(task.spec().observation[0].shape, twin.spec().observation[0].shape) << id;
    EXPECT_EQ(task.spec().action.ToString(), twin.spec().action.ToString()) << id;
    EXPECT_EQ(task.spec().time_limit, twin.spec().time_limit);
    Rng rng(3, Purpose::kTest), twin_rng(3, Purpose::kTest), action_rng(4, Purpose::kTest);
    int64_t ends = 0;
    for (int t = 0; t < 300; ++t) {
      if (t == 0 || task.type() == StepType::kLast) {
        task.Reset(rng);
        twin.Reset(twin_rng);
      } else {
        std::vector<float> action(6);
        task.spec().action.Sample(action_rng, action.data());
        task.Step({action.data(), DType::kFloat32}, rng);
        twin.Step({action.data(), DType::kFloat32}, twin_rng);
      }
      ASSERT_EQ(task.Observation(), twin.Observation()) << id << " step " << t;
      ASSERT_EQ(task.reward(), twin.reward()) << id << " step " << t;
      ASSERT_EQ(task.type(), twin.type()) << id << " step " << t;
      ASSERT_EQ(task.discount(), twin.discount()) << id << " step " << t;
      ends += task.type() == StepType::kLast;
    }
    EXPECT_EQ(ends > 0, std::string(id) != "HalfCheetah-v5") << id << " ended " << ends << " times";
  }
}

TEST(MujocoTask, EqualsGymnasiumsRecordings) {
  const char* reference = std::getenv("WEFT_REFERENCE");
  if (reference == nullptr) GTEST_SKIP() << "WEFT_REFERENCE is unset: environments is not there";
  for (const auto& [file, name] :
       {std::pair{"inverted_pendulum.yaml", "invertedpendulum"}, std::pair{"hopper.yaml", "hopper"},
        std::pair{"half_cheetah.yaml", "halfcheetah"}}) {
    const std::string path =
        std::string(reference) + "/environments/mujoco_" + name + "_v5.safetensors";
    const VerifyReport report = VerifyEnvironmentFile(IdOf(file), path);
    EXPECT_GT(report.checked, 1000) << path;
    EXPECT_EQ(report.failed, 0) << ToText(report, true);
  }
}

// MuJoCo's own numbers (case C38 of the reference).
TEST(MujocoTask, GoesByNamesWhateverTheOrderOfBodies) {
  std::vector<std::vector<double>> seen;
  for (const char* model : {"order_ab.xml", "order_ba.xml"}) {
    EnvironmentRow row(Make(IdOf("order.yaml"), std::string("{mujoco: {model: ") + model + "}}"));
    EXPECT_THAT(row.spec().observation[0].elements,
                testing::ElementsAre("joint_position ja", "joint_velocity ja", "joint_position jb",
                                     "joint_velocity jb"));
    const bool a_first = std::string(model) == "order_ab.xml";
    row.SetState(a_first ? std::vector<double>{0.3, -0.2, 0, 0}
                         : std::vector<double>{-0.2, 0.3, 0, 0});
    Rng rng(1, Purpose::kTest);
    const double action[] = {0.5, -0.25};
    for (int i = 0; i < 10; ++i) {  // 5 simulation steps each
      row.Step({action, DType::kFloat64}, rng);
      seen.push_back(row.Observation());
      seen.back().push_back(row.reward());
    }
    EXPECT_NEAR(row.Observation()[0], 0.746358, 1e-6);
    EXPECT_NEAR(row.Observation()[2], -0.20179467, 1e-8);
    EXPECT_EQ(row.reward(), row.Observation()[0]);
  }
  for (size_t i = 0; i < 10; ++i) {
    for (size_t k = 0; k < seen[i].size(); ++k)
      EXPECT_NEAR(seen[i][k], seen[i + 10][k], 1e-12) << "step " << i << " number " << k;
  }
}

// A model alone is a task, too: all joints observed, all actuators driven (case C31).
TEST(MujocoTask, ConvertsNoControlRangeAndWarnsOfOneInDegrees) {
  const std::string id = IdOf("degrees.xml");
  const EnvironmentEntry entry = FindEnvironment(id);
  const auto config = entry.make_arguments();
  const EnvironmentNotes notes = entry.notes(*config);
  EXPECT_THAT(
      notes.facts,
      testing::ElementsAre(
          "joint elbow: hinge of body link, range -0.523599 .. 0.523599 rad",
          "actuator elbow_servo: action -1 .. 1 is control -30 .. 30, servo of joint elbow, "
          "range -0.523599 .. 0.523599 rad"));
  ASSERT_EQ(notes.warnings.size(), 1u);
  EXPECT_THAT(notes.warnings[0], HasSubstr("exceeds the range of its joint 57-fold"));
  const auto environment = entry.make(*config);
  EXPECT_EQ(environment->spec().action.ToString(), "Box(-1, 1, [1])");

  // The control that an action becomes.
  EnvironmentRow row(Make(id, "{observations: [{actuator_control: elbow_servo}]}"));
  Rng rng(1, Purpose::kTest);
  row.Reset(rng);
  for (const double action : {-1.0, 0.5, 1.0}) {
    row.Step({&action, DType::kFloat64}, rng);
    EXPECT_EQ(row.Observation()[0], 30 * action);
  }
}

// Case C43: quaternions are w, x, y, z, and those of keyframes need not have unit length.
TEST(MujocoTask, NamesQuaternionsAndNormalisesThem) {
  EnvironmentRow row(Make(IdOf("quaternion.xml")));
  Rng rng(1, Purpose::kTest);
  row.Reset(rng);
  const auto& elements = row.spec().observation[0].elements;
  ASSERT_EQ(elements.size(), 13u);
  EXPECT_EQ(elements[2], "joint_position root.z");
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(elements[3 + i], std::string("joint_position root.quaternion.") + "wxyz"[i]);
  const std::vector<double> observation = row.Observation();
  const double expected[] = {1, 2, 3, std::sqrt(0.5), 0, 0, std::sqrt(0.5)};
  for (size_t i = 0; i < 7; ++i) EXPECT_NEAR(observation[i], expected[i], 1e-15) << i;
}

// Against formulas for a two-link arm in the plane.
TEST(MujocoTask, MeasuresWhatItSays) {
  const Files files;
  EnvironmentRow row(
      Make(files.Task("  observations:\n"
                      "    - {site_position: hand}\n"
                      "    - {site_position: hand, component: z}\n"
                      "    - {site_offset: hand, to: goal}\n"
                      "    - {site_offset: hand, to: goal, component: x}\n"
                      "    - {site_distance: hand, to: goal}\n"
                      "    - {body_position: lower}\n"
                      "    - {body_velocity: lower}\n"
                      "    - {body_velocity: lower, component: z}\n"
                      "    - {body_rotation: lower, component: y}\n"
                      "    - {body_upright: lower}\n"
                      "    - {body_quaternion: lower}\n"
                      "    - {sensor: speed}\n"
                      "    - {joint_velocity: [elbow, shoulder], clip: 1}\n")));
  const double a = 0.4, b = -0.9, da = 0.7, db = 2;
  row.SetState(std::vector<double>{a, b, da, db});
  // Rotation about y: x turns towards -z.
  const double elbow_x = 0.2 * std::cos(a), elbow_z = -0.2 * std::sin(a);
  const double x = elbow_x + 0.2 * std::cos(a + b), z = elbow_z - 0.2 * std::sin(a + b);
  const double distance = std::hypot(0.3 - x, z);
  const double vx = -0.2 * std::sin(a) * da, vz = -0.2 * std::cos(a) * da;
  // The hand's speed in its own frame, whose x axis lies along the lower arm.
  const double hand_x = vx - 0.2 * std::sin(a + b) * (da + db);
  const double hand_z = vz - 0.2 * std::cos(a + b) * (da + db);
  const double along = hand_x * std::cos(a + b) - hand_z * std::sin(a + b);
  const double across = hand_x * std::sin(a + b) + hand_z * std::cos(a + b);
  const std::vector<double> expected = {x,
                                        0,
                                        z,
                                        z,
                                        0.3 - x,
                                        0,
                                        -z,
                                        0.3 - x,
                                        distance,
                                        elbow_x,
                                        0,
                                        elbow_z,
                                        vx,
                                        0,
                                        vz,
                                        vz,
                                        da + db,
                                        std::cos(a + b),
                                        std::cos((a + b) / 2),
                                        0,
                                        std::sin((a + b) / 2),
                                        0,
                                        along,
                                        0,
                                        across,
                                        1,
                                        da};
  const std::vector<double> observed = row.Observation();
  ASSERT_EQ(observed.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(observed[i], expected[i], 1e-12) << row.spec().observation[0].elements[i];
}

TEST(MujocoTask, AddsUpOrMultipliesItsTerms) {
  const Files files;
  const std::string terms =
      "    - {healthy: 2}\n"
      "    - {joint_position: [shoulder, elbow], target: [0.1, 0.2], measure: square, weight: -3}\n"
      "    - {joint_position: [shoulder, elbow], measure: absolute}\n"
      "    - {joint_velocity: [shoulder, elbow], measure: norm}\n"
      "    - {site_distance: hand, to: goal, tolerance: {bounds: [0, 0.05], margin: 0.2}}\n"
      "    - {joint_position: elbow, rate: true}\n"
      "    - {control_cost: 0.5}\n";
  for (const bool product : {false, true}) {
    const std::string id = files.Task(
        "  observations: [{joint_position: all}, {joint_velocity: all}, "
        "{site_distance: hand, to: goal}]\n"
        "  actions: [lift, {name: bend, range: [-1, 3]}]\n"
        "  reward:\n    combine: " +
        std::string(product ? "product" : "sum") + "\n    terms:\n" + terms);
    EnvironmentRow row(Make(id, "{mujoco: {frame_skip: 3}}"));
    row.SetState(std::vector<double>{0.4, -0.9, 0.7, 2});
    Rng rng(1, Purpose::kTest);
    const double action[] = {0.25, -0.5};
    row.Step({action, DType::kFloat64}, rng);
    const std::vector<double> o = row.Observation();
    const double beyond = std::max(0.0, o[4] - 0.05) / 0.2;
    const std::vector<double> worth = {
        2,
        -3 * ((o[0] - 0.1) * (o[0] - 0.1) + (o[1] - 0.2) * (o[1] - 0.2)),
        std::abs(o[0]) + std::abs(o[1]),
        std::hypot(o[2], o[3]),
        std::exp(-0.5 * beyond * beyond * 2 * std::log(10.0)),  // 0.1 at the margin
        (o[1] + 0.9) / (3 * 0.002),
        -0.5 * (0.25 * 0.25 + 0.5 * 0.5)};
    const std::vector<double> info = row.Info();
    ASSERT_EQ(info.size(), worth.size());
    double reward = product ? 1 : 0;
    for (size_t i = 0; i < worth.size(); ++i) {
      EXPECT_NEAR(info[i], worth[i], 1e-12) << row.spec().info[i];
      reward = product ? reward * worth[i] : reward + worth[i];
    }
    EXPECT_NEAR(row.reward(), reward, 1e-12);
  }
}

TEST(MujocoTask, ScalesActionsToTheRangesOfControls) {
  const Files files;
  EnvironmentRow row(
      Make(files.Task("  observations: [{actuator_control: [lift, bend]}]\n"
                      "  actions: [{name: bend, range: [-1, 3]}, lift]\n")));
  Rng rng(1, Purpose::kTest);
  row.Reset(rng);
  const double action[] = {0.5, -1};
  row.Step({action, DType::kFloat64}, rng);
  EXPECT_EQ(row.Observation(), (std::vector<double>{-2, 2}));
}

TEST(MujocoTask, BeginsAtAKeyframeWithNoise) {
  const Files files;
  const std::string id = files.Task(
      "  observations: [{joint_position: all}, {joint_velocity: all}]\n"
      "  reset:\n"
      "    keyframe: bent\n"
      "    noise:\n"
      "      - {joint_position: elbow, uniform: 0.1}\n"
      "      - {joint_velocity: shoulder, normal: 0.5}\n"
      "      - {joint_velocity: elbow, between: [2, 3]}\n");
  EnvironmentRow row(Make(id));
  Rng rng(1, Purpose::kTest);
  double sum = 0, squares = 0, low = 9, high = -9, least = 9, most = -9;
  constexpr int kEpisodes = 2000;
  for (int i = 0; i < kEpisodes; ++i) {
    row.Reset(rng);
    const auto o = row.Observation();
    ASSERT_EQ(o[0], 0.5);
    low = std::min(low, o[1]);
    high = std::max(high, o[1]);
    sum += o[2];
    squares += o[2] * o[2];
    least = std::min(least, o[3]);
    most = std::max(most, o[3]);
  }
  EXPECT_GE(low, -1.1);
  EXPECT_LT(low, -1.09);
  EXPECT_LE(high, -0.9);
  EXPECT_GT(high, -0.91);
  EXPECT_NEAR(sum / kEpisodes, 0, 0.05);
  EXPECT_NEAR(std::sqrt(squares / kEpisodes), 0.5, 0.05);
  EXPECT_GE(least, 2);
  EXPECT_LT(least, 2.02);
  EXPECT_LE(most, 3);
  EXPECT_GT(most, 2.98);
}

TEST(MujocoTask, EndsWhereARangeIsLeft) {
  const Files files;
  EnvironmentRow row(
      Make(files.Task("  observations: [{joint_position: all}]\n"
                      "  reward: {terms: [{healthy: 1}]}\n"
                      "  termination: [{joint_position: [shoulder, elbow], range: [-0.5, 1]}]\n")));
  Rng rng(1, Purpose::kTest);
  const double none = 0;
  const auto step = [&](double shoulder, double elbow) {
    row.SetState(std::vector<double>{shoulder, elbow, 0, 0});
    row.Step({&none, DType::kFloat64}, rng);
    return row.type() == StepType::kLast ? -row.discount() - 1 : row.reward();
  };
  EXPECT_EQ(step(0, 0), 1);
  EXPECT_EQ(step(0, 1.1), -1);  // terminal: discount 0
  EXPECT_EQ(step(-0.6, 0), -1);
  EXPECT_EQ(row.reward(), 0);
}

TEST(MujocoTask, NamesFileLineAndWhatWasMeant) {
  const Files files;
  const auto refusal = [&](const std::string& lines) { return Refusal(files.Task(lines)); };
  const std::string fine = "  observations: [{joint_position: all}]\n";
  EXPECT_THAT(refusal("  observations:\n    - {joint_position: elbw}\n"),
              AllOf(HasSubstr("task.yaml:4: environment.observations.0.joint_position: the model "
                              "has no joint \"elbw\"; did you mean \"elbow\"?"),
                    HasSubstr("it has shoulder, elbow")));
  EXPECT_THAT(refusal("  observations:\n    - {joint_positon: elbow}\n"),
              AllOf(HasSubstr("task.yaml:4: environment.observations.0: "),
                    HasSubstr("did you mean \"joint_position\"?")));
  EXPECT_THAT(refusal(fine + "  observation: []\n"),
              HasSubstr("task.yaml:4: environment.observation: there is no such key; did you mean "
                        "\"observations\"?"));
  EXPECT_THAT(refusal(""), HasSubstr("environment.observations: nothing is observed"));
  EXPECT_THAT(refusal(fine + "  actions: [lft]\n"), HasSubstr("did you mean \"lift\"?"));
  EXPECT_THAT(refusal(fine + "  actions: [lift, lift]\n"), HasSubstr("is driven twice"));
  EXPECT_THAT(refusal(fine + "  actions: [bend]\n"),
              HasSubstr("task.yaml:4: environment.actions.0: bend has no ctrlrange"));
  EXPECT_THAT(refusal(fine + "  reward:\n    terms:\n      - {site_position: hand}\n"),
              HasSubstr("task.yaml:6: environment.reward.terms.0.site_position: is 3 numbers"));
  EXPECT_THAT(refusal(fine + "  reward: {terms: [{site_position: hand, component: w}]}\n"),
              HasSubstr("component: must be one of x, y, z"));
  EXPECT_THAT(refusal(fine + "  reward: {terms: [{sensor: speed, measure: norm, rate: true}]}\n"),
              HasSubstr("rate: a sensor has no rate"));
  EXPECT_THAT(refusal(fine + "  reward: {terms: [{joint_position: elbow, target: [1, 2]}]}\n"),
              HasSubstr("target: has 2 numbers for 1 values"));
  EXPECT_THAT(refusal(fine + "  reward: {terms: [{site_distance: hand, weight: 2}]}\n"),
              HasSubstr("site_distance: needs a to"));
  EXPECT_THAT(refusal(fine + "  reward: {terms: [{healthy: yes}]}\n"),
              HasSubstr("terms.0.healthy"));
  EXPECT_THAT(refusal(fine + "  termination: [{joint_position: elbow, range: [1]}]\n"),
              HasSubstr("termination.0.range: must be [low, high]"));
  EXPECT_THAT(refusal(fine + "  reset: {keyframe: bnt}\n"),
              HasSubstr("task.yaml:4: environment.reset.keyframe: the model has no keyframe "
                        "\"bnt\"; did you mean \"bent\"?"));
  EXPECT_THAT(refusal(fine + "  reset: {noise: [{joint_position: all, uniform: 1, normal: 1}]}\n"),
              HasSubstr("more than one of"));
  EXPECT_THAT(refusal(fine + "  camera: side\n"), HasSubstr("no camera \"side\""));
  EXPECT_THAT(refusal(fine + "  mujoco: {}\n"), HasSubstr("mujoco"));  // twice
  // What the run's config says is placed there.
  EXPECT_THAT(Refusal(files.Task(fine), "{observations: [{joint_position: hip}]}"),
              HasSubstr("run.yaml:1: observations.0.joint_position"));
  EXPECT_THAT(Refusal("mujoco:" + files.Path("tusk.yaml")),
              AllOf(HasSubstr("tusk.yaml"), HasSubstr("did you mean \"task.yaml\"?")));
  files.Write("task.yaml", "environment: {mujoco: {model: amr.xml}}\n");
  EXPECT_THAT(Refusal("mujoco:" + files.Path("task.yaml")),
              AllOf(HasSubstr("task.yaml:1: environment.mujoco.model: there is no model file"),
                    HasSubstr("did you mean \"arm.xml\"?")));
  files.Write("bad.xml", "<mujoco>\n<option timestep=\"0\"/></mujoco>");
  files.Write("task.yaml", "environment: {mujoco: {model: bad.xml}}\n");
  EXPECT_THAT(Refusal("mujoco:" + files.Path("task.yaml")),
              AllOf(HasSubstr("task.yaml:1: environment.mujoco.model: "),
                    HasSubstr("bad.xml:2: <option timestep=\"0\">")));
}

// The run keeps its task: the resolved config alone makes the same environment.
TEST(MujocoTask, BelongsToTheRun) {
  const Files files;
  const std::string id = files.Task(
      "  observations: [{joint_position: all}, {site_distance: hand, to: goal, clip: 3}]\n"
      "  actions: [lift]\n"
      "  reward: {terms: [{joint_position: [elbow], rate: true, weight: 2.5}, {healthy: 1}]}\n"
      "  reset: {keyframe: bent, noise: [{joint_position: elbow, uniform: 0.1}]}\n");
  EnvironmentConfig first;
  ConfigSource::Text("{mujoco: \"" + id.substr(7) + "\", rows: 2}", "run.yaml").Parse(first);
  EXPECT_EQ(first.id, id);
  const std::string resolved = ToYaml(first);
  EXPECT_THAT(resolved, HasSubstr("- joint_position: elbow"));

  const auto read_back = [&] {
    EnvironmentConfig config;
    ConfigSource::Text(resolved, "config.yaml").Parse(config);
    return ToYaml(config);
  };
  EXPECT_EQ(read_back(), resolved);
  files.Task("  observations: [{joint_velocity: elbow}]\n");  // changed
  EXPECT_EQ(read_back(), resolved);
  std::filesystem::remove(files.Path("task.yaml"));
  EXPECT_EQ(read_back(), resolved);

  // The model is not copied, but noted.
  std::string other = resolved;
  const size_t content = other.find("content: ") + 9;
  other.replace(content, other.find('\n', content) - content, "0123abcd");
  EnvironmentConfig config;
  try {
    ConfigSource::Text(other, "config.yaml").Parse(config);
    FAIL() << "another model went unnoticed";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("config.yaml:8: arguments.mujoco.content: the model"));
  }
}

TEST(MujocoTask, SaysWhereASimulationDiverges) {
  const Files files;
  EnvironmentConfig config;
  ConfigSource::Text("{mujoco: \"" +
                         files
                             .Task("  observations: [{joint_position: all}]\n"
                                   "  actions: [{name: bend, range: [-1e9, 1e9]}]\n")
                             .substr(7) +
                         "\", rows: 2}",
                     "run.yaml")
      .Parse(config);
  const auto batch = MakeBatchEnvironment(config, {.rows = 2, .seed = 5});
  TimeStep step = batch->MakeTimeStep();
  batch->Reset(step);
  try {
    for (int i = 0; i < 100; ++i)
      batch->Step(Tensor::From<float>({2, 1}, std::vector<float>{0, 1}), step);
    FAIL() << "it went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDiverged);
    EXPECT_THAT(error.message(), AllOf(HasSubstr("row 1 (seed 5)"), HasSubstr("of joint ")));
  }
}

TEST(MujocoTask, KeepsTheContractOfEnvironments) {
  for (const char* file : {"hopper.yaml", "half_cheetah.yaml", "order.yaml", "degrees.xml"}) {
    for (const ConformanceCheck& check : CheckConformance(IdOf(file), AllocationCount))
      EXPECT_EQ(check.problem, "") << file << ": " << check.claim;
  }
}

}  // namespace
}  // namespace weft
