// The layers of the reference data, and that a number which is not the recorded one is found.
#include "language/verify_layers.h"

#include <filesystem>
#include <gtest/gtest.h>

#include "nn/safetensors.h"
#include "tests/base/temporary_folder.h"
#include "tests/language/reference_files.h"

namespace weft {
namespace {

TEST(VerifyLayers, EveryLayerOfTheReferenceHolds) {
  const std::string folder = ReferencePath("language/maths");
  if (folder.empty()) GTEST_SKIP() << "WEFT_REFERENCE is unset: no reference data to compare with";
  ThreadPool pool(2);
  const VerifyReport report = VerifyLayers({.pool = &pool}, folder);
  EXPECT_EQ(report.failed, 0) << ToText(report, true);
  EXPECT_EQ(report.files.size(), 4u);
  EXPECT_GT(report.checked, 9000);
  ASSERT_EQ(report.skipped.size(), 4u) << "topics with layers of other networks";
  EXPECT_NE(report.skipped[1].find("rope.dynamic"), std::string::npos) << report.skipped[1];
}

TEST(VerifyLayers, AChangedRecordingFails) {
  const std::string folder = ReferencePath("language/maths");
  if (folder.empty()) GTEST_SKIP() << "WEFT_REFERENCE is unset: no reference data to compare with";
  const TemporaryFolder copy;
  for (const char* topic : {"layers_dense", "layers_attention", "layers_activations", "sampling"}) {
    for (const char* ending : {".json", ".safetensors"}) {
      std::filesystem::copy_file(folder + "/" + topic + ending, copy.path() + "/" + topic + ending);
    }
  }
  const std::string file = copy.path() + "/layers_attention.safetensors";
  TensorMap data = ReadSafetensors(file);
  Tensor gradient = data.At("gqa.grad.k").Clone();
  gradient.data<double>()[7] += 1e-3;
  data.Set("gqa.grad.k", gradient);
  WriteSafetensors(file, data);
  const VerifyReport report = VerifyLayers({}, copy.path());
  EXPECT_EQ(report.failed, 1);
  EXPECT_EQ(report.worst.tensor, "gqa.grad.k");
}

}  // namespace
}  // namespace weft
