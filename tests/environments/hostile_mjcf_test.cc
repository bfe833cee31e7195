// Model files that are broken or mean harm: each is refused by name, in bounded time and memory,
// and the process goes on.
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

#include "base/check.h"
#include "environments/mujoco/mujoco_compiler.h"
#include "environments/mujoco/mujoco_model.h"
#include "tests/base/temporary_folder.h"

namespace weft {
namespace {

const std::string kFolder = WEFT_TEST_DATA "/hostile_mjcf/";

double Seconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}
// Of this process and the children that it has ended, in seconds of one core.
double CpuSeconds() {
  return Seconds(RUSAGE_SELF) + Seconds(RUSAGE_CHILDREN);
}
int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Why a file is refused; "accepted" when it is not.
std::string Refusal(const std::string& path) {
  const double begin = CpuSeconds();
  const int64_t before = ResidentBytes();
  std::string message = "accepted";
  try {
    LoadMujocoModel(std::filesystem::absolute(path));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig) << error.message();
    message = error.message();
  }
  EXPECT_LT(CpuSeconds() - begin, 2) << path;
  EXPECT_LT(ResidentBytes() - before, int64_t{64} << 20) << path;
  return message;
}

struct Case {
  const char* file;
  std::vector<const char*> says;
};
void PrintTo(const Case& of, std::ostream* out) {
  *out << of.file;
}

class HostileMjcf : public testing::TestWithParam<Case> {};

TEST_P(HostileMjcf, IsRefusedByName) {
  const std::string message = Refusal(kFolder + GetParam().file);
  EXPECT_TRUE(message.starts_with(std::filesystem::absolute(kFolder).string())) << message;
  for (const char* part : GetParam().says)
    EXPECT_NE(message.find(part), std::string::npos) << "\"" << part << "\" in: " << message;
}

const Case kCases[] = {
    {"timestep_zero.xml", {":2: <option timestep=\"0\">", "above 0"}},
    {"timestep_negative.xml", {":2: <option timestep=\"-0.002\">"}},
    {"timestep_nan.xml", {":2: <option timestep=\"nan\">", "NaN"}},
    {"timestep_in_include.xml", {"folder/option.xml:2: <option"}},
    {"keyframe_nan.xml", {":3: <key qpos=\"NaN\">: holds NaN"}},
    {"keyframe_infinite.xml", {"<key qvel=\"1e999\">: is not finite"}},
    {"keyframe_unstable.xml", {"cannot be simulated from keyframe 0"}},
    {"position_infinite.xml", {"body_pos is not finite"}},
    {"include_absolute.xml", {":2: <include file=\"/etc/hostname\">"}},
    {"include_above.xml", {":2: <include file=\"folder/../../probe.xml\">"}},
    {"include_encoded.xml", {":2: <include file=\"../probe.xml\">"}},
    {"include_itself.xml", {"already included", "Element 'include'"}},
    {"include_missing.xml", {"nowhere.xml"}},
    {"include_folder.xml", {":2: <include file=\"folder\">", "is no file"}},
    {"mesh_absolute.xml", {":2: <mesh file=\"/etc/hostname\">"}},
    {"mesh_above.xml", {":2: <compiler meshdir=\"../..\">"}},
    {"mesh_missing.xml", {"nowhere.stl"}},
    {"mesh_of_no_faces.xml", {"number of faces", "Element name 'm'"}},
    {"composite.xml", {":4: <composite count=\"1000000 1 1\">", "50000 elements"}},
    {"replicate.xml", {":4: <replicate count=\"1000\">", "50000 elements"}},
    {"flexcomp.xml", {":3: <flexcomp count=\"300 300 300\">"}},
    {"height_field.xml", {":2: <hfield nrow=\"50000\">", "cells"}},
    {"texture.xml", {":2: <texture width=\"60000\">", "cells"}},
    {"memory.xml", {":2: <size memory=\"1000G\">"}},
    {"user_data.xml", {":2: <size nuser_body=\"2000000000\">"}},
    {"keyframes.xml", {":2: <size nkey=\"100000000\">"}},
    {"sensor.xml", {":3: <user dim=\"2000000000\">"}},
    {"actuator.xml", {":2: <general actdim=\"2000000000\">"}},
    {"unknown_element.xml", {"Element 'wrldbody', line 2"}},
    {"unknown_attribute.xml", {"sise", "Element 'geom', line 2"}},
    {"unknown_joint.xml", {"unknown", "knee"}},
    {"entities.xml", {":1: document types"}},
    {"entity_alone.xml", {":1: <mujoco model=...>", "&"}},
    {"cut.xml", {":3: <body> does not end"}},
    {"crossed.xml", {":2: </mujoco> ends no element"}},
    {"empty.xml", {"no element"}},
    {"text.xml", {"no element"}},
    {"robot.xml", {":1: the root is <robot>"}},
    {"zero_byte.xml", {"zero byte"}},
    {"plugin.xml", {"weft.nowhere"}},
};
INSTANTIATE_TEST_SUITE_P(Files, HostileMjcf, testing::ValuesIn(kCases), [](const auto& parameter) {
  std::string name = parameter.param.file;
  return name.substr(0, name.find('.'));
});

// Files that are harmless or not, as MuJoCo sees it, but within bounds.
TEST(HostileMjcfBounds, HoldForWhatIsLetThrough) {
  for (const char* file : {"height_field_below_the_cap.xml", "history.xml"})
    Refusal(kFolder + file);
}

std::string Repeated(const std::string& text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

TEST(HostileMjcfBounds, HoldForFilesThatAreLarge) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& name, const std::string& world) {
    const std::string path = folder.path() + "/" + name;
    std::ofstream(path) << "<mujoco>\n<worldbody>\n" << world << "</worldbody>\n</mujoco>\n";
    return Refusal(path);
  };
  EXPECT_NE(refusal("deep.xml", Repeated("<body>", 20000) + Repeated("</body>", 20000))
                .find("deep.xml:3: <body> is nested deeper"),
            std::string::npos);
  EXPECT_NE(refusal("geoms.xml", Repeated("<geom size=\".1\"/>\n", 200000)).find("<geom"),
            std::string::npos);
  EXPECT_NE(refusal("long.xml", Repeated("<!-- padding -->\n", 600000)).find("long.xml"),
            std::string::npos);
  // All balls touch each other.
  EXPECT_NE(refusal("heap.xml", Repeated("<body><freejoint/><geom size=\".1\"/></body>\n", 2000))
                .find("heap.xml: "),
            std::string::npos);
}

TEST(HostileMjcfBounds, EveryPrefixOfAModelIsRefused) {
  const TemporaryFolder folder;
  const std::string model =
      "<mujoco><worldbody><body><joint name=\"j\"/><geom size=\".1\"/></body></worldbody>"
      "<actuator><motor joint=\"j\"/></actuator></mujoco>";
  for (size_t size = 0; size < model.size(); ++size) {
    const std::string path = folder.path() + "/" + std::to_string(size) + ".xml";
    std::ofstream(path) << model.substr(0, size);
    EXPECT_THROW(LoadMujocoModel(path), Error) << model.substr(0, size);
  }
}

TEST(HostileMjcfFiles, MayNotLeaveTheFolderThroughLinks) {
  const TemporaryFolder folder;
  const std::string inside = folder.path() + "/inside";
  std::filesystem::create_directory(inside);
  std::ofstream(folder.path() + "/secret.xml") << "<mujocoinclude/>";
  std::filesystem::create_symlink("../secret.xml", inside + "/link.xml");
  std::filesystem::create_directory_symlink("..", inside + "/up");
  std::filesystem::create_symlink("/dev/zero", inside + "/endless.stl");
  const auto refusal = [&](const std::string& content) {
    std::ofstream(inside + "/model.xml") << "<mujoco>" << content << "</mujoco>";
    return Refusal(inside + "/model.xml");
  };
  EXPECT_NE(refusal("<include file=\"link.xml\"/>").find("leaves the model's folder"),
            std::string::npos);
  EXPECT_NE(refusal("<include file=\"up/secret.xml\"/>").find("leaves the model's folder"),
            std::string::npos);
  EXPECT_NE(refusal("<asset><mesh file=\"endless.stl\"/></asset>").find("is no file"),
            std::string::npos);
}

TEST(HostileMjcfFiles, MayBeCutInPiecesWithinTheFolder) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() + "/parts/meshes");
  std::ofstream(folder.path() + "/parts/arm.xml")
      << "<mujocoinclude><body name=\"arm\"><joint/><geom type=\"mesh\" mesh=\"m\"/></body>"
         "</mujocoinclude>";
  std::ofstream(folder.path() + "/parts/meshes/m.obj")
      << "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n";
  const std::string path = folder.path() + "/model.xml";
  std::ofstream(path) << "<mujoco><compiler meshdir=\"parts/meshes\"/>"
                         "<asset><mesh name=\"m\" file=\"m.obj\"/></asset>"
                         "<worldbody><include file=\"parts/arm.xml\"/></worldbody></mujoco>";
  EXPECT_EQ(Refusal(path), "accepted");
  const MjcfFiles files = InspectMjcf(path);
  ASSERT_EQ(files.paths.size(), 3u);
  EXPECT_TRUE(files.paths[2].ends_with("parts/meshes/m.obj")) << files.paths[2];
}

// Few enough elements to be let through, but too many for MuJoCo's compiler.
TEST(HostileMjcfBounds, EndAChildThatTakesTooLongOrTooMuch) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("bodies.xml");
  std::ofstream(path) << "<mujoco><worldbody>"
                      << Repeated("<body><joint/><geom size=\".1\"/></body>\n", 16000)
                      << "</worldbody></mujoco>";
  const MjcfFiles files = InspectMjcf(path);
  const auto refusal = [](const MjcfFiles& of, const ModelBounds& bounds) -> std::string {
    try {
      CompileInChild(of, bounds);
    } catch (const Error& error) {
      return error.message();
    }
    return "accepted";
  };
  const double begin = CpuSeconds();
  EXPECT_EQ(refusal(files, {.seconds = 0.2, .bytes = 1 << 28}),
            path +
                ": MuJoCo needs more than 0.2s to compile it (48002 elements, most of them "
                "<body>)");
  EXPECT_LT(CpuSeconds() - begin, 1.5);
  const MjcfFiles large = InspectMjcf(kFolder + "height_field_below_the_cap.xml");
  EXPECT_THAT(refusal(large, {.seconds = 1, .bytes = 1 << 20}), testing::HasSubstr("emory"));
  EXPECT_EQ(BoundsOf(files).seconds, 1.5);
  EXPECT_EQ(BoundsOf(files).bytes, uint64_t{256} << 20);
}

}  // namespace
}  // namespace weft
