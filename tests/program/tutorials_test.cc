// The pages that show how to bring an environment of one's own, run as they are written.
#include <cstdlib>
#include <gtest/gtest.h>

#include "base/file.h"
#include "environments/environment.h"
#include "tutorial.h"

namespace weft {
namespace {

TEST(Tutorials, AnEnvironmentInCpp) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers would have to be in the page's own binary, too";
#endif
  Tutorial("own_environment.md").Run();
}

TEST(Tutorials, AMujocoTask) {
  if (EnvironmentSchemes().Find("mujoco") == nullptr) GTEST_SKIP() << "weft is without MuJoCo";
  Tutorial("mujoco_task.md").Run();
}

TEST(Tutorials, AnEnvironmentInPython) {
  if (std::getenv("WEFT_PYTHON") == nullptr)
    GTEST_SKIP() << "WEFT_PYTHON names no Python that has pyzmq, numpy and gymnasium";
  Tutorial("python_environments.md").Run();
}

// What the page shows is what docs/examples has and `weft new` copies.
TEST(Tutorials, TheMujocoTaskIsThatOfTheExamples) {
  const std::string page = ReadFile("docs/mujoco_task.md");
  for (const char* file : {"balance.xml", "balance.yaml", "train.yaml"}) {
    EXPECT_NE(page.find(ReadFile(std::string("docs/examples/mujoco_task/") + file) + "```"),
              std::string::npos)
        << file;
  }
}

}  // namespace
}  // namespace weft
