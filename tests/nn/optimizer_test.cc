#include "nn/optimizer.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "base/check.h"
#include "tests/nn/reference.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

OptimizerConfig Named(const std::string& name) {
  OptimizerConfig config;
  config.name = name;
  return config;
}

// Ten steps of the reference case, each compared.
void ExpectReference(const std::string& name, const OptimizerConfig& config, double learning_rate) {
  const TensorMap data = ReadSafetensors(ReferencePath("language/maths/optimisers.safetensors"));
  Tensor parameter = data.At(name + ".param0").Clone();
  Optimizer optimizer(config, {{"p", &parameter}});
  for (int64_t step = 0; step < 10; ++step) {
    const std::vector<Tensor> gradients = {data.At(name + ".grads").Row(step)};
    optimizer.Step(gradients, learning_rate);
    ExpectClose(parameter, data.At(name + ".params").Row(step), 1e-5, 1e-6,
                name + ", step " + std::to_string(step));
  }
}

TEST(Optimizer, EqualsReference) {
  WEFT_REQUIRE_REFERENCE();
  ExpectReference("adam", Named("adam"), 0.01);
  OptimizerConfig config = Named("adam");
  config.epsilon = 1e-5;
  ExpectReference("adam_eps1e-5", config, 3e-4);
  config = Named("adamw");
  config.beta2 = 0.95;
  config.weight_decay = 0.1;
  ExpectReference("adamw", config, 0.01);
  ExpectReference("rmsprop_torch", Named("rmsprop"), 0.01);
  config = Named("rmsprop");
  config.epsilon = 1e-5;
  config.epsilon_inside = true;
  ExpectReference("rmsprop_tf", config, 7e-4);
  config.epsilon = 0.01;
  config.alpha = 0.95;
  config.momentum = 0.9;
  ExpectReference("rmsprop_tf_momentum", config, 7e-4);
  ExpectReference("sgd", Named("sgd"), 0.1);
  config = Named("sgd");
  config.momentum = 0.9;
  ExpectReference("sgd_momentum", config, 0.05);
  config.nesterov = true;
  config.weight_decay = 0.01;
  ExpectReference("sgd_nesterov_wd", config, 0.05);
}

TEST(Optimizer, ClipsToTheGlobalNormAsReference) {
  WEFT_REQUIRE_REFERENCE();
  const TensorMap data = ReadSafetensors(ReferencePath("language/maths/optimisers.safetensors"));
  for (const auto& [name, max_norm] :
       {std::pair<std::string, double>{"max0.01", 0.01}, {"max1", 1}, {"max100", 100}}) {
    const std::string base = "clip_global_norm." + name + ".";
    std::vector<Tensor> gradients, values;
    for (const std::string i : {"0", "1", "2"}) {
      gradients.push_back(data.At(base + "grad" + i));
      values.push_back(Tensor::Zeros(gradients.back().shape()));
    }
    Optimizer optimizer(Named("sgd"), {{"a", &values[0]}, {"b", &values[1]}, {"c", &values[2]}});
    // Plain descent from zero by a rate of -1 leaves the clipped gradient in the parameter.
    const double norm = optimizer.Step(gradients, -1, max_norm);
    EXPECT_NEAR(norm, data.At(base + "total_norm").Item(), 1e-6 * norm);
    for (size_t i = 0; i < 3; ++i) {
      ExpectClose(values[i], data.At(base + "clipped" + std::to_string(i)), 1e-5, 1e-6, name);
    }
  }
}

TEST(Optimizer, AdamsFirstStepIsTheLearningRate) {
  // With bias correction m / sqrt(v) is the sign of the gradient.
  Tensor parameter = Tensor::From<float>({2}, {1, 1});
  Optimizer optimizer(Named("adam"), {{"p", &parameter}});
  const std::vector<Tensor> gradients = {Tensor::From<float>({2}, {100, -0.5f})};
  EXPECT_NEAR(optimizer.Step(gradients, 0.25), std::hypot(100, 0.5), 1e-4);
  EXPECT_NEAR(static_cast<double>(parameter.data<float>()[0]), 0.75, 1e-6);
  EXPECT_NEAR(static_cast<double>(parameter.data<float>()[1]), 1.25, 1e-6);
}

TEST(Optimizer, ANonFiniteGradientChangesNothingAndNamesTheParameter) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Tensor good = Tensor::From<float>({1}, {1}), poisoned = Tensor::From<float>({2}, {1, 1});
    Optimizer optimizer(Named("adam"), {{"good", &good}, {"poisoned", &poisoned}});
    const std::vector<Tensor> gradients = {Tensor::From<float>({1}, {1}),
                                           Tensor::From<float>({2}, {0, bad})};
    const uint64_t before = Hash(optimizer.Save());
    try {
      optimizer.Step(gradients, 1);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDiverged);
      EXPECT_THAT(error.what(), HasSubstr("gradient of poisoned"));
    }
    EXPECT_EQ(good.Item(), 1);
    EXPECT_EQ(Hash(optimizer.Save()), before);
  }
}

TEST(Optimizer, ResumesExactly) {
  for (const std::string name : {"adam", "adamw", "rmsprop", "sgd"}) {
    OptimizerConfig config = Named(name);
    if (name != "adam") config.weight_decay = 0.01;
    config.momentum = 0.9;
    Tensor straight = Tensor::Full({5, 3}, 1).ToLayout(Layout::kPanels);
    Tensor resumed = straight.Clone();
    const auto gradients = [](float value) {
      return std::vector<Tensor>{Tensor::Full({5, 3}, value).ToLayout(Layout::kPanels)};
    };
    Optimizer whole(config, {{"w", &straight}}), first(config, {{"w", &resumed}});
    for (const float value : {1.0f, -2.0f}) whole.Step(gradients(value), 0.1);
    first.Step(gradients(1), 0.1);
    Optimizer second(config, {{"w", &resumed}});
    // Through a file: state comes back row-major.
    const std::string bytes = ToSafetensorsBytes(first.Save());
    second.Load(
        ParseSafetensors({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "state"));
    second.Step(gradients(-2), 0.1);
    EXPECT_EQ(Hash(whole.Save()), Hash(second.Save())) << name;
    EXPECT_TRUE(std::ranges::equal(straight.data<float>(), resumed.data<float>())) << name;
  }
}

TEST(Optimizer, DecaysMatricesAloneWhereAsked) {
  OptimizerConfig config = Named("adamw");
  config.weight_decay = 0.5;
  config.decay_vectors = false;
  Tensor matrix = Tensor::Full({2, 3}, 1), vector = Tensor::Full({3}, 1);
  Optimizer optimizer(config, {{"matrix", &matrix}, {"vector", &vector}});
  optimizer.Step(std::vector<Tensor>{Tensor::Zeros({2, 3}), Tensor::Zeros({3})}, 0.5);
  EXPECT_THAT(matrix.data<float>(), testing::Each(0.75f));  // 1 - learning rate x decay
  EXPECT_THAT(vector.data<float>(), testing::Each(1.0f));
}

TEST(Optimizer, LoadRefusesAnotherOptimisersState) {
  Tensor parameter = Tensor::Zeros({2});
  Optimizer adam(Named("adam"), {{"p", &parameter}}), sgd(Named("sgd"), {{"p", &parameter}});
  EXPECT_THROW(adam.Load(sgd.Save()), Error);
  EXPECT_THROW(sgd.Load(adam.Save()), Error);
  EXPECT_THROW(adam.Load(TensorMap()), Error);
}

TEST(Optimizer, ConfigRefusesWhatWouldBeIgnored) {
  OptimizerConfig config = Named("adam");
  config.weight_decay = 0.1;
  EXPECT_THROW(config.Check(), ConfigProblem);
  config = Named("adam");
  config.beta2 = 1;
  EXPECT_THROW(config.Check(), ConfigProblem);
  config = Named("rmsprop");
  config.nesterov = true;
  EXPECT_THROW(config.Check(), ConfigProblem);
}

}  // namespace
}  // namespace weft
