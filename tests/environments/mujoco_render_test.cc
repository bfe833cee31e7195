// Pictures of MuJoCo's environments. Skipped where neither EGL nor OSMesa can be loaded.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

#include "base/file.h"
#include "base/thread_pool.h"
#include "environments/availability.h"
#include "environments/drawing/canvas.h"
#include "environments/environment_row.h"
#include "environments/mujoco/gl_context.h"
#include "environments/wrappers.h"
#include "tests/base/temporary_folder.h"

namespace weft {
namespace {

EnvironmentRow Make(const std::string& id) {
  const EnvironmentEntry& entry = Environments().At(id);
  return EnvironmentRow(entry.make(*entry.make_arguments()));
}

Picture Rendered(const Environment& environment, int64_t width, int64_t height,
                 const std::string& camera = "") {
  Picture picture(width, height);
  Canvas canvas(picture, camera);
  environment.Render(canvas);
  return picture;
}

class MujocoPictures : public testing::Test {
 protected:
  void SetUp() override {
    try {
      GlContext::Make();
    } catch (const Error& error) {
      GTEST_SKIP() << error.message();
    }
  }
};

// With bodies alone, a skin, a field of heights, and models that an episode changes.
TEST_F(MujocoPictures, ShowModelsOfEveryKindWithoutChangingThem) {
  for (const char* id : {"Ant-v5", "dm_control/dog-run", "dm_control/quadruped-walk",
                         "dm_control/reacher-easy", "dm_control/fish-swim"}) {
    if (!WhyUnavailable(Environments().At(id)).empty()) continue;
    EnvironmentRow row = Make(id);
    Rng rng(1, Purpose::kTest);
    row.Reset(rng);
    Writer before, after;
    row.environment().Save(before);
    const Picture picture = Rendered(row.environment(), 64, 48);
    const auto [least, most] = std::ranges::minmax(picture.pixels);
    EXPECT_LT(least + 40, most) << id << ": nothing is to be seen";
    EXPECT_EQ(picture.pixels, Rendered(row.environment(), 64, 48).pixels) << id;
    row.environment().Save(after);
    EXPECT_EQ(before.bytes(), after.bytes()) << id;
    row.Reset(rng);
    EXPECT_NE(picture.pixels, Rendered(row.environment(), 64, 48).pixels) << id;
  }
}

TEST_F(MujocoPictures, CamerasGoByNameAndNumberAndTheUsualOneIsTrack) {
  EnvironmentRow row = Make("HalfCheetah-v5");
  Rng rng(1, Purpose::kTest);
  row.Reset(rng);
  const Environment& cheetah = row.environment();
  const auto usual = Rendered(cheetah, 60, 40).pixels;
  EXPECT_EQ(usual, Rendered(cheetah, 60, 40, "track").pixels);
  EXPECT_EQ(usual, Rendered(cheetah, 60, 40, "0").pixels);
  EXPECT_NE(usual, Rendered(cheetah, 60, 40, "-1").pixels);
  for (const char* wrong : {"top", "1", "-2", "0.5"}) {
    try {
      Rendered(cheetah, 60, 40, wrong);
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("track"), std::string::npos) << error.message();
    }
  }
}

TEST_F(MujocoPictures, EverySizeIsDrawn) {
  EnvironmentRow row = Make("Hopper-v5");
  Rng rng(1, Purpose::kTest);
  row.Reset(rng);
  const auto small = Rendered(row.environment(), 31, 17).pixels;
  const auto large = Rendered(row.environment(), 700, 300).pixels;
  EXPECT_EQ(large.size(), 3u * 700 * 300);
  EXPECT_EQ(small, Rendered(row.environment(), 31, 17).pixels);
  EnvironmentRow fresh = Make("Hopper-v5");
  fresh.SetState(row.State());
  EXPECT_EQ(large, Rendered(fresh.environment(), 700, 300).pixels);
}

TEST_F(MujocoPictures, PixelsAreTheSameOnThreadsAndAfterLoading) {
  ThreadPool pool(3);
  const auto make = [](ThreadPool* threads) {
    const EnvironmentEntry& entry = Environments().At("Reacher-v5");
    return ObservePixels(
        entry.make_batch(*entry.make_arguments(), {.rows = 5, .seed = 2, .pool = threads}),
        {.width = 40, .height = 40, .pool = threads});
  };
  const auto one = make(nullptr), many = make(&pool), later = make(&pool);
  TimeStep a = one->MakeTimeStep(), b = many->MakeTimeStep(), c = later->MakeTimeStep();
  one->Reset(a);
  many->Reset(b);
  later->Reset(c);
  const Tensor action = Tensor::Full({5, 2}, 0.7);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(Hash(a.Leaves()), Hash(b.Leaves())) << i;
    if (i == 2) later->Load(one->Save());
    one->Step(action, a);
    many->Step(action, b);
    if (i < 2) continue;
    later->Step(action, c);
    EXPECT_EQ(Hash(a.Leaves()), Hash(c.Leaves())) << i;
  }
}

// Gymnasium's own pictures of the same states, from the same MuJoCo and OpenGL: by the camera named
// track, and by its free camera.
TEST_F(MujocoPictures, EqualGymnasiums) {
  const char* python = std::getenv("WEFT_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "WEFT_PYTHON names no interpreter with gymnasium";
  const TemporaryFolder folder;
  const std::string script =
      "import os, sys\n"
      "os.chdir(sys.argv[1])  # for MUJOCO_LOG.TXT\n"
      "os.environ.setdefault('MUJOCO_GL', 'egl')\n"
      "import gymnasium, numpy\n"
      "for name in sys.argv[2:]:\n"
      "  camera = 'track' if name == 'HalfCheetah-v5' else None\n"
      "  env = gymnasium.make(name, render_mode='rgb_array', camera_name=camera).unwrapped\n"
      "  env.reset(seed=1)\n"
      "  env.set_state(env.init_qpos, env.init_qvel)\n"
      "  numpy.concatenate([env.init_qpos, env.init_qvel]).tofile(f'{sys.argv[1]}/{name}.state')\n"
      "  open(f'{sys.argv[1]}/{name}.rgb', 'wb').write(numpy.ascontiguousarray(env.render()))\n";
  WriteFileAtomic(folder.path() + "/frames.py", script);
  const std::vector<std::string> ids = {"HalfCheetah-v5", "Reacher-v5"};
  std::string command = std::string(python) + " " + folder.path() + "/frames.py " + folder.path();
  for (const auto& id : ids) command += " " + id;
  if (std::system((command + " 2>" + folder.path() + "/error.txt").c_str()) != 0)
    GTEST_SKIP() << "WEFT_PYTHON renders no MuJoCo: " << ReadFile(folder.path() + "/error.txt");
  for (const auto& id : ids) {
    const std::string expected = ReadFile(folder.path() + "/" + id + ".rgb");
    const std::string bytes = ReadFile(folder.path() + "/" + id + ".state");
    std::vector<double> state(bytes.size() / sizeof(double));
    std::memcpy(state.data(), bytes.data(), bytes.size());
    EnvironmentRow row = Make(id);
    row.SetState(state);
    const Picture picture = Rendered(row.environment(), 480, 480);
    ASSERT_EQ(expected.size(), picture.pixels.size()) << id;
    size_t differ = 0;
    for (size_t i = 0; i < expected.size(); ++i)
      differ += static_cast<uint8_t>(expected[i]) != picture.pixels[i];
    EXPECT_EQ(differ, 0u) << id << ": of " << expected.size();
  }
}

}  // namespace
}  // namespace weft
