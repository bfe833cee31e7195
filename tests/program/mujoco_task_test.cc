// Tasks for MuJoCo models as a user meets them: looked at, trained, resumed, exported.
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "environments/environment.h"
#include "tests/program/weft_process.h"

namespace weft {
namespace {

using Json = nlohmann::json;

class MujocoTaskProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (EnvironmentSchemes().Find("mujoco") == nullptr) GTEST_SKIP() << "weft is without MuJoCo";
  }
  WeftProcess weft_;
};

TEST_F(MujocoTaskProgram, VerifyShowsNamesAndWarns) {
  namespace fs = std::filesystem;
  for (const char* file : {"degrees.xml", "quaternion.xml"})
    fs::copy(WEFT_TEST_DATA "/mujoco_tasks/" + std::string(file), weft_.folder());
  const auto degrees = weft_.Run("verify environment degrees.xml");
  EXPECT_EQ(degrees.status, 0) << degrees.out << degrees.error;
  for (const char* part : {"joint elbow: hinge of body link, range -0.523599 .. 0.523599 rad",
                           "actuator elbow_servo: action -1 .. 1 is control -30 .. 30", "57-fold",
                           "ok    a step allocates nothing", "0 failed"}) {
    EXPECT_NE(degrees.out.find(part), std::string::npos) << part << " in:\n" << degrees.out;
  }
  const auto quaternion = weft_.Run("list environments --fields quaternion.xml").out;
  size_t at = 0;
  for (const char* part : {"root.x", "root.z", "root.quaternion.w", "root.quaternion.x",
                           "root.quaternion.y", "root.quaternion.z"}) {
    at = quaternion.find(part, at);
    ASSERT_NE(at, std::string::npos) << part << " in this order in:\n" << quaternion;
  }
  for (const char* id : {"Ant-v5", "Humanoid-v5"}) {
    const std::string out = weft_.Run(std::string("list environments --fields ") + id).out;
    EXPECT_NE(out.find("1  joint_position root.quaternion.w"), std::string::npos) << out;
  }
  const Json json = Json::parse(weft_.Run("verify environment degrees.xml --json").LastLine());
  EXPECT_EQ(json.at("failed"), 0);
  EXPECT_EQ(json.at("warnings").size(), 1u);
}

TEST_F(MujocoTaskProgram, ARunKeepsItsTaskInEveryPlacement) {
  ASSERT_EQ(weft_.Run("new environment Balance --mujoco --json").status, 0);
  EXPECT_NE(weft_.Run("new environment Balance --mujoco").status, 0) << "it is there already";
  const std::string train =
      "train balance/train.yaml environment.mujoco=balance/balance.yaml environment.rows=4 "
      "total_steps=2000 rollout_steps=32 minibatch=64 epochs=2 threads=2 evaluation.episodes=2 "
      "evaluation.final_episodes=2 --json ";
  const auto whole = weft_.Run(train + "run=whole");
  ASSERT_EQ(whole.status, 0) << whole.error;
  const Json hash = Json::parse(whole.LastLine()).at("parameter_hash");
  const auto processes = weft_.Run(train + "run=processes placement=split_actors processes=2");
  ASSERT_EQ(processes.status, 0) << processes.error;
  EXPECT_EQ(Json::parse(processes.LastLine()).at("parameter_hash"), hash);

  ASSERT_EQ(weft_.Run(train + "run=parts total_steps=1000").status, 0);
  weft_.Write("balance/balance.yaml", "environment: {mujoco: {model: nothing.xml}}\n");
  const auto resumed = weft_.Run("resume parts total_steps=2000 --json");
  ASSERT_EQ(resumed.status, 0) << resumed.error;
  EXPECT_EQ(Json::parse(resumed.LastLine()).at("parameter_hash"), hash);
  EXPECT_EQ(weft_.Run("evaluate parts --episodes 2").status, 0);
  EXPECT_EQ(weft_.Run("export parts policy.onnx").status, 0);

  std::string model = weft_.Read("balance/balance.xml");
  model.replace(model.find("gear=\"10\""), 9, "gear=\"11\"");
  weft_.Write("balance/balance.xml", model);
  const auto refused = weft_.Run("resume parts total_steps=3000");
  EXPECT_EQ(refused.status, 78);
  EXPECT_NE(refused.error.find("environment.arguments.mujoco.content"), std::string::npos)
      << refused.error;
  EXPECT_EQ(weft_.Run("resume parts total_steps=3000 environment.arguments.mujoco.content=").status,
            0);
}

TEST_F(MujocoTaskProgram, MistakesAreConfigErrorsWithTheirPlace) {
  weft_.Write("bad.xml", "<mujoco>\n  <option timestep=\"-1\"/>\n</mujoco>\n");
  weft_.Write("bad.yaml", "environment:\n  mujoco: {model: bad.xml}\n");
  weft_.Write("train.yaml", "algorithm: ppo\nenvironment: {mujoco: bad.yaml}\n");
  const auto output = weft_.Run("train train.yaml");
  EXPECT_EQ(output.status, 78);
  EXPECT_NE(output.error.find("bad.yaml:2: environment.mujoco.model: ./bad.xml:2: <option "
                              "timestep=\"-1\">"),
            std::string::npos)
      << output.error;
}

}  // namespace
}  // namespace weft
