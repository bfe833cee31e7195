// The program as a user meets it: what it prints, and its exit codes.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/program/weft_process.h"

namespace weft {
namespace {

using Json = nlohmann::json;
using testing::Test;

constexpr char kShort[] =
    "algorithm: ppo\ntotal_steps: 2000\nthreads: 1\nenvironment: {id: CartPole-v1, rows: "
    "4}\nrollout_steps: 32\n"
    "minibatch: 64\nepochs: 2\nevaluation: {every: 1000, episodes: 2, final_episodes: 5}\n";

TEST(CommandLine, TrainEvaluatePlotAndExportOneRun) {
  const WeftProcess weft;
  weft.Write("short.yaml", kShort);
  const auto trained = weft.Run("train short.yaml run=one --json");
  ASSERT_EQ(trained.status, 0) << trained.error;
  const Json summary = Json::parse(trained.LastLine());
  EXPECT_EQ(summary.at("run"), "runs/one");
  EXPECT_GE(summary.at("steps").get<int64_t>(), 2000);
  EXPECT_EQ(summary.at("evaluation").at("n"), 5);
  EXPECT_EQ(summary.at("parameter_hash").get<std::string>().size(), 16u);
  EXPECT_EQ(summary.at("perturbed"), false);
  EXPECT_GT(summary.at("steps_per_second").get<double>(), 0);

  const auto evaluated = weft.Run("evaluate one --episodes 7 --json");
  ASSERT_EQ(evaluated.status, 0) << evaluated.error;
  EXPECT_EQ(Json::parse(evaluated.LastLine()).at("evaluation").at("n"), 7);

  const auto exported = weft.Run("export one policy.onnx");
  EXPECT_EQ(exported.status, 0) << exported.error;
  EXPECT_GT(std::filesystem::file_size(weft.folder() + "/policy.onnx"), 1000u);

  for (const char* file : {"config.yaml", "manifest.json", "metrics.jsonl"}) {
    EXPECT_TRUE(std::filesystem::exists(weft.folder() + "/runs/one/" + file)) << file;
  }
  EXPECT_NE(weft.Read("runs/one/metrics.jsonl").find("evaluation_return"), std::string::npos);
  EXPECT_NE(weft.Run("train short.yaml run=one").status, 0) << "a run of that name is there";
}

TEST(CommandLine, TheResolvedConfigTrainsTheSameRun) {
  const WeftProcess weft;
  weft.Write("short.yaml", kShort);
  const Json first = Json::parse(weft.Run("train short.yaml run=one gamma=0.9 --json").LastLine());
  const Json second = Json::parse(weft.Run("train runs/one/config.yaml run=two --json").LastLine());
  EXPECT_EQ(first.at("parameter_hash"), second.at("parameter_hash"));
}

TEST(CommandLine, ReproNamesTheEnvironmentOfTheCommandLine) {
  const WeftProcess weft;
  weft.Write("short.yaml", kShort);
  const auto other =
      weft.Run("repro short.yaml seeds=1 total_steps=256 environment.id=Probe-Value-v0");
  ASSERT_EQ(other.status, 0) << other.error;
  EXPECT_NE(other.out.find("ppo Probe-Value-v0"), std::string::npos) << other.out;
  EXPECT_EQ(other.out.find("CartPole"), std::string::npos) << other.out;
  EXPECT_TRUE(std::filesystem::exists(weft.folder() + "/runs/repro-ppo-short-Probe-Value-v0-1"));
}

TEST(CommandLine, ReproTakesNoRunOfAnotherConfigForItsOwn) {
  const WeftProcess weft;
  weft.Write("short.yaml", kShort);
  const std::string command = "repro short.yaml seeds=1 total_steps=256";
  ASSERT_EQ(weft.Run(command).status, 0);
  EXPECT_EQ(weft.Run(command + " threads=2").status, 0);
  const auto other = weft.Run(command + " gamma=0.5");
  EXPECT_EQ(other.status, 78);
  EXPECT_NE(other.error.find("runs/repro-ppo-short-1 was made with \"gamma: "), std::string::npos)
      << other.error;
  EXPECT_NE(other.error.find("not \"gamma: 0.5\""), std::string::npos) << other.error;
}

TEST(CommandLine, ReproKeepsTheRowOfRunsThatFail) {
  const WeftProcess weft;
  weft.Write("short.yaml", kShort);
  const std::string command = "repro short.yaml total_steps=256 --write table.md seeds=1";
  weft.Write("table.md", "<!-- weft repro -->\n<!-- /weft repro -->\n");
  ASSERT_EQ(weft.Run(command).status, 0);
  const std::string row = weft.Read("table.md");
  EXPECT_NE(row.find("1: "), std::string::npos) << row;
  const std::string run = "runs/repro-ppo-short-1";
  std::filesystem::rename(weft.folder() + "/" + run, weft.folder() + "/done");
  weft.Write(run, "no folder can be made here");
  const auto failed = weft.Run(command);
  EXPECT_NE(failed.status, 0);
  EXPECT_NE(failed.error.find("repro-ppo-short-1 ended with status"), std::string::npos);
  EXPECT_NE(failed.error.find("short.yaml: no run of it"), std::string::npos) << failed.error;
  EXPECT_EQ(weft.Read("table.md"), row);
  // A row of those that ended; the status says that one did not.
  EXPECT_EQ(weft.Run(command + "..2").status, failed.status);
  EXPECT_NE(weft.Read("table.md").find("| 2: "), std::string::npos) << weft.Read("table.md");
}

struct Mistake {
  const char* arguments;
  const char* says;
};
void PrintTo(const Mistake& mistake, std::ostream* out) {
  *out << mistake.arguments;
}

class BadConfig : public testing::TestWithParam<Mistake> {};

TEST_P(BadConfig, OneErrorNamesPlaceAndFixAndNothingStarts) {
  const WeftProcess weft;
  weft.Write("short.yaml", kShort);
  weft.Write("typo.yaml", std::string(kShort) + "learning_rat: 1e-3\n");
  weft.Write("leftover.yaml", std::string(kShort) + "gamma: 1.5\n");
  const auto result = weft.Run(std::string("train ") + GetParam().arguments);
  EXPECT_EQ(result.status, 78) << result.error;
  EXPECT_NE(result.error.find(GetParam().says), std::string::npos) << result.error;
  EXPECT_FALSE(std::filesystem::exists(weft.folder() + "/runs"));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, BadConfig,
    testing::Values(Mistake{"missing.yaml", "missing.yaml"}, Mistake{"typo.yaml", "learning_rate"},
                    Mistake{"typo.yaml", "typo.yaml:9"}, Mistake{"leftover.yaml", "gamma"},
                    Mistake{"short.yaml minibatch=1000", "minibatch"},
                    Mistake{"short.yaml algorithm=dqn", "rollout_steps"},
                    Mistake{"short.yaml environment.id=CartPole-v2", "CartPole-v1"},
                    Mistake{"short.yaml algorithm=pppo", "ppo"},
                    Mistake{"short.yaml total_steps=many", "total_steps"},
                    Mistake{"short.yaml placement=thread", "threads"},
                    Mistake{"short.yaml critic=state", "tells no state"},
                    Mistake{"short.yaml critic=state network.shared=true", "network.shared"},
                    Mistake{"short.yaml environment.wrappers=[scale_action]", "needs real actions"},
                    Mistake{"short.yaml environment.id=Blackjack-v1 environment.wrappers=[pixels]",
                            "draws pictures"},
                    Mistake{"short.yaml device=cuda", "device"}));

TEST(CommandLine, EvaluationTellsTheReturnOfEachAgentAndOfTheTeam) {
  const WeftProcess weft;
  weft.Write("push.yaml",
             "algorithm: ppo\ntotal_steps: 200\nrollout_steps: 25\nminibatch: 50\n"
             "environment: {id: simple_push_v3}\nevaluation: {final_episodes: 0}\n");
  ASSERT_EQ(weft.Run("train push.yaml run=push").status, 0);
  const auto result = weft.Run("evaluate push --episodes 4 --json");
  ASSERT_EQ(result.status, 0) << result.error;
  const Json line = Json::parse(result.LastLine());
  const Json& agents = line.at("evaluation").at("agents");
  EXPECT_NEAR(agents.at("adversary_0").get<double>() + agents.at("agent_0").get<double>(),
              line.at("evaluation").at("mean").get<double>(), 1e-9);
}

TEST(CommandLine, ActionSpacesThatDoNotFitAreRefused) {
  const WeftProcess weft;
  weft.Write("dqn.yaml", "algorithm: dqn\nenvironment: {id: Pendulum-v1}\n");
  weft.Write("sac.yaml", "algorithm: sac\nenvironment: {id: CartPole-v1}\n");
  for (const char* config : {"dqn.yaml", "sac.yaml"}) {
    const auto result = weft.Run(std::string("train ") + config);
    EXPECT_EQ(result.status, 78);
    EXPECT_NE(result.error.find("environment.id"), std::string::npos) << result.error;
  }
}

// A last minibatch of one transition has no standard deviation: its advantages are left alone.
TEST(CommandLine, AWarmStartTakesOverThePolicyOrIsRefused) {
  const WeftProcess weft;
  weft.Write("short.yaml", kShort);
  ASSERT_EQ(weft.Run("train short.yaml run=first --json").status, 0);
  const auto warm = weft.Run("train short.yaml run=second init_from=runs/first --json");
  ASSERT_EQ(warm.status, 0) << warm.error;
  for (const char* other : {"environment.id=Acrobot-v1", "network.hidden=[32]"}) {
    const auto refused =
        weft.Run(std::string("train short.yaml run=third init_from=runs/first ") + other);
    EXPECT_EQ(refused.status, 78) << refused.error;
    EXPECT_NE(refused.error.find("init_from: "), std::string::npos) << refused.error;
    EXPECT_NE(refused.error.find("do not fit"), std::string::npos) << refused.error;
    EXPECT_FALSE(FileExists(weft.folder() + "/runs/third"));
  }
}

TEST(CommandLine, ALeftoverMinibatchOfOneStaysFinite) {
  const WeftProcess weft;
  weft.Write("short.yaml", kShort);
  for (const char* sizes :
       {"environment.rows=1 rollout_steps=5 minibatch=4", "minibatch=1 rollout_steps=4"}) {
    const auto result =
        weft.Run(std::string("train short.yaml total_steps=200 ") + sizes + " --json");
    ASSERT_EQ(result.status, 0) << result.error;
    EXPECT_EQ(weft.Read("runs/ppo-CartPole-v1-1/metrics.jsonl").find("null"), std::string::npos);
  }
}

TEST(CommandLine, ListsGraphsAndHelp) {
  const WeftProcess weft;
  weft.Write("short.yaml", kShort);
  EXPECT_NE(weft.Run("list algorithms").out.find("sac"), std::string::npos);
  EXPECT_NE(weft.Run("list environments").out.find("Acrobot-v1"), std::string::npos);
  EXPECT_NE(weft.Run("graph short.yaml").out.find("actor.rollout"), std::string::npos);
  EXPECT_EQ(weft.Run("graph short.yaml --dot").out.find("digraph"), 0u);
  EXPECT_NE(weft.Run("train short.yaml --help").out.find("entropy_coefficient"), std::string::npos);
  EXPECT_NE(weft.Run("--version").out.find("weft 0."), std::string::npos);
  const auto mistyped = weft.Run("trian short.yaml");
  EXPECT_EQ(mistyped.status, 64);
  EXPECT_NE(mistyped.error.find("did you mean \"train\""), std::string::npos) << mistyped.error;
  EXPECT_NE(weft.Run("").error.find("evaluate"), std::string::npos);
}

TEST(CommandLine, ANewEnvironmentJoinsTheTreeOrIsAProject) {
  const WeftProcess weft;
  EXPECT_EQ(weft.Run("new environment 3D").status, 78);
  EXPECT_EQ(weft.Run("new environment CartPole --json").status, 0);  // CartPole-v0 is free
  EXPECT_EQ(weft.Run("new environment CartPole").status, 78);
  EXPECT_NE(weft.Read("cart_pole/cart_pole.cc").find("\"CartPole-v0\""), std::string::npos);
  EXPECT_NE(weft.Read("cart_pole/CMakeLists.txt").find("find_package(weft"), std::string::npos);

  for (const char* folder : {"environments", "tests/environments", "configs/ppo"})
    MakeDirectories(weft.folder() + "/" + folder);
  weft.Write("environments/register_environment.h", "");
  weft.Write("environments/CMakeLists.txt", "list(\n  acrobot.cc\n  pendulum.cc\n)\n");
  weft.Write("tests/environments/CMakeLists.txt", "list(\n  allocation_count.cc\n  ${more})\n");
  ASSERT_EQ(weft.Run("new environment my_lamp").status, 0);
  EXPECT_EQ(weft.Read("environments/CMakeLists.txt"),
            "list(\n  acrobot.cc\n  my_lamp.cc\n  pendulum.cc\n)\n");
  EXPECT_EQ(weft.Read("tests/environments/CMakeLists.txt"),
            "list(\n  allocation_count.cc\n  my_lamp_test.cc\n  ${more})\n");
  EXPECT_NE(weft.Read("environments/my_lamp.cc").find("class MyLamp "), std::string::npos);
  EXPECT_NE(weft.Read("configs/ppo/my_lamp.yaml").find("MyLamp-v0"), std::string::npos);
}

}  // namespace
}  // namespace weft
