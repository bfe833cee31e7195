// Compares an ONNX model with our numbers by running it in another program.
#pragma once

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>

#include "base/file.h"
#include "nn/safetensors.h"
#include "tests/base/temporary_folder.h"

namespace weft {

// Runs the model on the inputs among `values` and compares its outputs with those in `values`.
// WEFT_PYTHON names a Python that has onnxruntime; python3 is tried otherwise, and the test skipped
// when it has none.
inline void ExpectOnnxRuntimeAgrees(const std::string& model, const TensorMap& values,
                                    double tolerance) {
  const TemporaryFolder folder;
  const std::string base = folder.path() + "/check";
  WriteFileAtomic(base + ".onnx", model);
  WriteSafetensors(base + ".safetensors", values);
  const char* python = std::getenv("WEFT_PYTHON");
  const std::string command = std::string(python ? python : "python3") +
                              " " WEFT_TEST_DATA "/onnx_check.py " + base + ".onnx " + base +
                              ".safetensors " + std::to_string(tolerance);
  const int result = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(result)) << command;
  const int status = WEXITSTATUS(result);
  if (status == 77 || status == 127) {
    GTEST_SKIP() << "no Python with onnxruntime: WEFT_PYTHON names one";
  }
  EXPECT_EQ(status, 0) << command;
}

}  // namespace weft
