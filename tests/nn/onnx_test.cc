#include "nn/onnx.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

#include "base/check.h"
#include "nn/distribution_head.h"
#include "nn/network.h"
#include "nn/running_statistics.h"
#include "tensor/ops.h"
#include "tests/nn/onnx_runtime.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

// A message of the wire format, field by field: numbers as they are, everything else as bytes.
struct Message {
  std::map<int, std::vector<uint64_t>> numbers;
  std::map<int, std::vector<std::string>> bytes;

  explicit Message(const std::string& text) {
    size_t at = 0;
    const auto varint = [&] {
      uint64_t value = 0;
      for (int shift = 0;; shift += 7) {
        const auto byte = static_cast<uint8_t>(text.at(at++));
        value |= uint64_t{byte & 0x7Fu} << shift;
        if (byte < 0x80) return value;
      }
    };
    while (at < text.size()) {
      const uint64_t tag = varint();
      const int field = static_cast<int>(tag >> 3);
      switch (tag & 7) {
        case 0:
          numbers[field].push_back(varint());
          break;
        case 2: {
          const uint64_t size = varint();
          bytes[field].push_back(text.substr(at, size));
          if (bytes[field].back().size() != size) throw std::out_of_range("field is cut");
          at += size;
          break;
        }
        case 5: {
          uint32_t value = 0;
          std::memcpy(&value, text.substr(at, 4).data(), 4);
          numbers[field].push_back(value);
          at += 4;
          break;
        }
        default:
          throw std::out_of_range("wire type");
      }
    }
  }
  Message Child(int field, size_t index = 0) const { return Message(bytes.at(field).at(index)); }
  std::string Text(int field, size_t index = 0) const { return bytes.at(field).at(index); }
};

TEST(Onnx, BytesAreThoseOfTheSchema) {
  OnnxGraph graph("small");
  const std::string x = graph.Input("x", DType::kFloat32, {OnnxGraph::kBatch, 2});
  const std::string w =
      graph.Constant("w", Tensor::From<float>({2, 1}, {1, -2}).ToLayout(Layout::kPanels));
  const std::string y = graph.Node("Gemm", {x, w}, {{"alpha", 0.5f}, {"transA", int64_t{0}}});
  const auto parts = graph.Nodes("Split", {y}, 1, {{"sizes", std::vector<int64_t>{1, 300}}});
  graph.Output("y", parts[0], DType::kFloat32, {OnnxGraph::kBatch, 1});
  graph.Metadata("algorithm", "ppo");

  const Message model(graph.ToBytes());
  EXPECT_EQ(model.numbers.at(1)[0], 8u);  // ir_version
  EXPECT_EQ(model.Text(2), "weft");
  EXPECT_EQ(model.Child(8).numbers.at(2)[0], 17u);
  EXPECT_EQ(model.Child(14).Text(1), "algorithm");
  EXPECT_EQ(model.Child(14).Text(2), "ppo");

  const Message body = model.Child(7);
  EXPECT_EQ(body.Text(2), "small");
  ASSERT_EQ(body.bytes.at(1).size(), 3u);  // the third names the output
  const Message gemm = body.Child(1, 0);
  EXPECT_THAT(gemm.bytes.at(1), ElementsAre("x", "w"));
  EXPECT_EQ(gemm.Text(4), "Gemm");
  const Message alpha = gemm.Child(5, 0);
  EXPECT_EQ(alpha.Text(1), "alpha");
  EXPECT_EQ(alpha.numbers.at(2)[0], 0x3f000000u);  // 0.5f
  EXPECT_EQ(alpha.numbers.at(20)[0], 1u);
  EXPECT_EQ(gemm.Child(5, 1).numbers.at(20)[0], 2u);
  EXPECT_EQ(body.Child(1, 1).Child(5).Text(8), std::string("\x01\xac\x02", 3));  // packed 1, 300
  EXPECT_EQ(body.Child(1, 1).bytes.at(1)[0], gemm.Text(2));
  EXPECT_EQ(body.Child(1, 2).Text(2), "y");

  const Message weight = body.Child(5);
  EXPECT_EQ(weight.Text(1), std::string("\x02\x01", 2));
  EXPECT_EQ(weight.numbers.at(2)[0], 1u);
  EXPECT_EQ(weight.Text(8), "w");
  EXPECT_EQ(weight.Text(9), std::string("\x00\x00\x80\x3f\x00\x00\x00\xc0", 8));

  const Message input = body.Child(11);
  EXPECT_EQ(input.Text(1), "x");
  const Message type = input.Child(2).Child(1);
  EXPECT_EQ(type.numbers.at(1)[0], 1u);
  EXPECT_EQ(type.Child(2).Child(1, 0).Text(2), "batch");
  EXPECT_EQ(type.Child(2).Child(1, 1).numbers.at(1)[0], 2u);
}

TEST(Onnx, NamesMustBeKnownAndNew) {
  OnnxGraph graph("g");
  graph.Input("x", DType::kFloat32, {1});
  EXPECT_THROW(graph.Input("x", DType::kFloat32, {1}), Error);
  EXPECT_THROW(graph.Node("Tanh", {"z"}), Error);
  EXPECT_THROW(graph.Output("y", "z", DType::kFloat32, {1}), Error);
}

DistributionSpec Spec(DistributionKind kind, std::vector<int64_t> sizes, bool state = false) {
  return {.kind = kind, .sizes = std::move(sizes), .state_dependent_std = state};
}

Tensor Normal(const Shape& shape, Rng& rng) {
  Tensor x = Tensor::Empty(shape);
  rng.FillNormal(x.data<float>());
  return x;
}

TEST(Onnx, NormalisedPoliciesActInOnnxRuntimeAsHere) {
  Rng rng(1, Purpose::kTest);
  NetworkConfig config;
  config.layer_norm = true;
  Trunk trunk(config, {5}, rng);
  RunningStatistics statistics(5);
  statistics.Update(Normal({100, 5}, rng));
  const Tensor x = Normal({7, 5}, rng);
  OnnxGraph graph("policies");
  OnnxState none;
  const std::string h =
      trunk.Export(graph, "policy.",
                   statistics.ExportNormalise(
                       graph, "normaliser.",
                       graph.Input("observation", DType::kFloat32, {OnnxGraph::kBatch, 5}), 1.5),
                   none);
  TensorMap values;
  values.Set("observation", x);
  const Tensor features = trunk.Forward(statistics.Normalise(x, 1.5));
  for (const auto& spec :
       {Spec(DistributionKind::kCategorical, {4}),
        Spec(DistributionKind::kMultiCategorical, {3, 2}), Spec(DistributionKind::kBernoulli, {3}),
        Spec(DistributionKind::kGaussian, {3}),
        Spec(DistributionKind::kSquashedGaussian, {2}, true)}) {
    DistributionHead head(spec, trunk.out(), Initialisation::Orthogonal(1), 0, rng);
    const std::string name = Name(spec.kind);
    std::vector<int64_t> shape = {OnnxGraph::kBatch};
    const Shape action_shape = spec.action_shape();
    for (const int64_t dim : action_shape.dims()) shape.push_back(dim);
    graph.Output(name, head.ExportMode(graph, name + ".", h), spec.action_dtype(), shape);
    values.Set(name, head.Forward(features).Mode());
  }
  ExpectOnnxRuntimeAgrees(graph.ToBytes(), values, 1e-5);
}

TEST(Onnx, PixelsGoThroughTheSameCnn) {
  Rng rng(2, Purpose::kTest);
  NetworkConfig config;
  config.hidden = {};
  config.orthogonal = false;
  Trunk trunk(config, {2, 36, 40}, rng);
  Tensor pixels = Tensor::Empty({2, 2, 36, 40}, DType::kUInt8);
  for (uint8_t& byte : pixels.data<uint8_t>()) byte = static_cast<uint8_t>(rng.Below(256));
  OnnxGraph graph("cnn");
  OnnxState none;
  const std::string x = graph.Input("pixels", DType::kUInt8, {OnnxGraph::kBatch, 2, 36, 40});
  graph.Output("features", trunk.Export(graph, "", x, none), DType::kFloat32,
               {OnnxGraph::kBatch, 512});
  TensorMap values;
  values.Set("pixels", pixels);
  values.Set("features", trunk.Forward(pixels));
  ExpectOnnxRuntimeAgrees(graph.ToBytes(), values, 1e-5);
}

void ExpectRecurrentAgrees(const std::string& kind) {
  Rng rng(3, Purpose::kTest);
  NetworkConfig config;
  config.recurrent = kind;
  config.recurrent_size = 6;
  config.recurrent_hidden = {5};
  Trunk trunk(config, {3}, rng);
  RecurrentState state{.hidden = Normal({4, 6}, rng), .cell = Normal({4, 6}, rng)};
  const bool lstm = kind == "lstm";
  if (!lstm) state.cell = Tensor();
  const Tensor x = Normal({4, 3}, rng);
  OnnxGraph graph(kind);
  OnnxState names;
  const std::string input = graph.Input("x", DType::kFloat32, {OnnxGraph::kBatch, 3});
  names.hidden = graph.Input("hidden", DType::kFloat32, {OnnxGraph::kBatch, 6});
  if (lstm) names.cell = graph.Input("cell", DType::kFloat32, {OnnxGraph::kBatch, 6});
  TensorMap values;
  values.Set("x", x);
  values.Set("hidden", state.hidden);
  if (lstm) values.Set("cell", state.cell);
  graph.Output("y", trunk.Export(graph, "", input, names), DType::kFloat32, {OnnxGraph::kBatch, 5});
  graph.Output("next_hidden", names.hidden, DType::kFloat32, {OnnxGraph::kBatch, 6});
  values.Set("y", trunk.Step(x, Tensor::Zeros({4}, DType::kUInt8), state));
  values.Set("next_hidden", state.hidden);
  if (lstm) {
    graph.Output("next_cell", names.cell, DType::kFloat32, {OnnxGraph::kBatch, 6});
    values.Set("next_cell", state.cell);
  }
  ExpectOnnxRuntimeAgrees(graph.ToBytes(), values, 1e-5);
}

TEST(Onnx, LstmStepsAgree) {
  ExpectRecurrentAgrees("lstm");
}

TEST(Onnx, GruStepsAgree) {
  ExpectRecurrentAgrees("gru");
}

}  // namespace
}  // namespace weft
