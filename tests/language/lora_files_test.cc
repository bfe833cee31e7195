#include "language/lora_files.h"

#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "base/file.h"
#include "language/hf_config.h"
#include "language/language_head.h"
#include "language/language_model.h"
#include "language/model_files.h"
#include "tests/language/tiny_model.h"
#include "tests/nn/reference.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

ModelConfig Config(const std::string& family) {
  const std::string text =
      family == "gpt2"
          ? R"({"model_type":"gpt2","vocab_size":8,"n_embd":4,"n_layer":1,"n_head":2,)"
            R"("n_positions":8})"
          : R"({"model_type":"llama","vocab_size":8,"hidden_size":4,"num_hidden_layers":1,)"
            R"("num_attention_heads":2,"intermediate_size":6,"max_position_embeddings":8})";
  return ReadHfConfig(ParseJson(text, "config.json"), "config.json").config;
}

std::string Scratch(const std::string& name) {
  const std::string path = testing::TempDir() + "lora_files_" + name;
  RemoveTree(path);
  return path;
}

TEST(LoraFiles, MergedWeightsEqualPeft) {
  WEFT_REQUIRE_REFERENCE();
  const std::string models = ReferencePath("language/models/");
  const auto base = ModelFile::Open(models + "llama_gqa_untied");
  const LoraAdapter adapter = ReadLoraAdapter(models + "llama_lora_adapter", base->config());
  EXPECT_EQ(adapter.rank, 4);
  EXPECT_EQ(adapter.scale(), 3);
  EXPECT_EQ(adapter.base_model, "../llama_gqa_untied");
  EXPECT_EQ(adapter.matrices.size(), 6u);
  const TensorMap merged = ReadSafetensors(models + "llama_lora_adapter/merged.safetensors");
  for (const StoredWeight& weight : MergeLoraAdapter(base->weights(), adapter)) {
    const Tensor* wanted = merged.Find(weight.name());
    ASSERT_TRUE(wanted) << weight.name();
    const std::vector<float> got = weight.Read();
    for (size_t at = 0; at < got.size(); ++at) {
      ASSERT_NEAR(got[at], Element(*wanted, at), 1e-6) << weight.name();
    }
  }
}

// Beside a quantised matrix, whose products have the bits of its numbers in bf16.
TEST(LoraFiles, AQuantisedBaseGivesTheBitsOfItsNumbers) {
  WEFT_REQUIRE_REFERENCE();
  const auto base = ModelFile::Open(ReferencePath("language/gguf/llama_gqa_untied-q8_0.gguf"));
  const std::string adapter = ReferencePath("language/models/llama_lora_adapter");
  const std::vector<int32_t> ids = {5, 17, 300, 42, 8}, positions = {0, 1, 2, 3, 4};
  const kernels::AttentionSpan span{0, 5, 0, nullptr};
  const auto logits = [&](const LoadOptions& options) {
    const auto model = LoadTransformer({}, *base, options);
    return Logits(
        {}, *model,
        model->Forward({}, {.ids = ids, .positions = positions, .spans = {&span, 1}}, nullptr));
  };
  const Tensor quantised = logits({.adapter = adapter});
  const Tensor numbers = logits({.keep_quantised = false, .adapter = adapter});
  const Tensor alone = logits({});
  EXPECT_TRUE(std::ranges::equal(quantised.data<float>(), numbers.data<float>()));
  EXPECT_FALSE(std::ranges::equal(quantised.data<float>(), alone.data<float>()));
}

// In every precision an adapter beside the weights is one added to them, up to rounding; an odd
// rank goes by pairs in bf16.
TEST(LoraFiles, AttachedIsMerged) {
  LoraAdapter adapter;
  adapter.rank = 3;
  adapter.alpha = 6;
  Numbers numbers(4);
  adapter.matrices = {{"model.layers.1.self_attn.k_proj.weight", 32, 16, numbers.Vector(3 * 32),
                       numbers.Vector(16 * 3)},
                      {"model.layers.0.mlp.up_proj.weight", 32, 48, numbers.Vector(3 * 32),
                       numbers.Vector(48 * 3)}};
  const std::vector<int32_t> ids = {5, 17, 30, 42, 8}, positions = {0, 1, 2, 3, 4};
  const kernels::AttentionSpan span{0, 5, 0, nullptr};
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    const auto logits = [&](Transformer& model) {
      return Logits(
          {}, model,
          model.Forward({}, {.ids = ids, .positions = positions, .spans = {&span, 1}}, nullptr));
    };
    const auto attached = MakeTiny(TinyConfig(), precision);
    const Tensor alone = logits(*attached);
    AttachLoraAdapter({}, adapter, *attached);
    const auto source = MakeTiny(TinyConfig()), merged = MakeTiny(TinyConfig(), precision);
    std::vector<std::vector<float>> values;
    std::vector<StoredWeight> weights;
    for (const Transformer::WeightSlot& slot : source->Weights()) {
      auto& row = values.emplace_back(static_cast<size_t>(slot.rows * slot.columns));
      slot.get(0, row);
      weights.emplace_back(WeightSpec{slot.name, {slot.rows, slot.columns}}, row.data());
    }
    const auto sums = MergeLoraAdapter(weights, adapter);
    for (const Transformer::WeightSlot& slot : merged->Weights()) {
      slot.set(0, std::ranges::find(sums, slot.name, &StoredWeight::name)->Read());
    }
    merged->Refresh({});
    const Tensor got = logits(*attached), want = logits(*merged);
    double largest = 0;
    for (int64_t i = 0; i < want.elements(); ++i) {
      const auto at = static_cast<size_t>(i);
      const double tolerance = precision == Precision::kFloat32 ? 1e-4 : 0.3;
      ASSERT_NEAR(got.data<float>()[at], want.data<float>()[at], tolerance) << at;
      largest =
          std::max<double>(largest, std::fabs(got.data<float>()[at] - alone.data<float>()[at]));
    }
    EXPECT_GT(largest, 1) << "the adapter hardly changes anything";
  }
}

TEST(LoraFiles, WrittenOnesAreReadBack) {
  LoraAdapter adapter;
  adapter.rank = 1;
  adapter.alpha = 2.5;
  adapter.rank_stabilised = true;
  adapter.dropout = 0.125;
  adapter.matrices = {
      {"model.layers.0.self_attn.v_proj.weight", 4, 4, {1, 2, 3, 4}, {5, 6, 7, 8}},
      {"model.layers.0.mlp.down_proj.weight", 6, 4, {1, 2, 3, 4, 5, 6}, {0, 0, 1, 2}}};
  const std::string folder = Scratch("written");
  WriteLoraAdapter(folder, adapter, Config("llama"));
  const LoraAdapter read = ReadLoraAdapter(folder, Config("llama"));
  EXPECT_EQ(read.alpha, 2.5);
  EXPECT_EQ(read.scale(), 2.5);
  EXPECT_TRUE(read.rank_stabilised);
  EXPECT_EQ(read.dropout, 0.125);
  ASSERT_EQ(read.matrices.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read.matrices[i].weight, adapter.matrices[i].weight);
    EXPECT_EQ(read.matrices[i].a, adapter.matrices[i].a);
    EXPECT_EQ(read.matrices[i].b, adapter.matrices[i].b);
  }
  RemoveTree(folder);
}

// GPT-2's c_attn holds q, k and v.
TEST(LoraFiles, FusedMatricesAreSplitAndFused) {
  LoraAdapter adapter;
  adapter.rank = 1;
  adapter.alpha = 1;
  for (const char* name : {"q", "k", "v"}) {
    adapter.matrices.push_back({std::string("model.layers.0.self_attn.") + name + "_proj.weight",
                                4,
                                4,
                                {1, 2, 3, 4},
                                std::vector<float>(4, static_cast<float>(*name))});
  }
  const std::string folder = Scratch("fused");
  WriteLoraAdapter(folder, adapter, Config("gpt2"));
  const TensorMap stored = ReadSafetensors(folder + "/adapter_model.safetensors");
  const Tensor* b = stored.Find("base_model.model.transformer.h.0.attn.c_attn.lora_B.weight");
  ASSERT_TRUE(b);
  EXPECT_EQ(b->shape(), Shape({12, 1}));
  EXPECT_EQ(b->data<float>()[4], static_cast<float>('k'));
  const LoraAdapter read = ReadLoraAdapter(folder, Config("gpt2"));
  ASSERT_EQ(read.matrices.size(), 3u);
  EXPECT_EQ(read.matrices[2].b, adapter.matrices[2].b);
  RemoveTree(folder);
  adapter.matrices.pop_back();
  EXPECT_THROW(WriteLoraAdapter(folder, adapter, Config("gpt2")), Error);
}

TEST(LoraFiles, OptionsThatChangeAnAdapterAreRefusedByName) {
  LoraAdapter adapter;
  adapter.rank = 1;
  adapter.alpha = 1;
  adapter.matrices = {{"model.layers.0.self_attn.q_proj.weight", 4, 4, {1, 2, 3, 4}, {5, 6, 7, 8}}};
  const std::string folder = Scratch("refused");
  WriteLoraAdapter(folder, adapter, Config("llama"));
  const std::string config = ReadFile(folder + "/adapter_config.json");
  const auto fault = [&](const std::string& from, const std::string& to) -> std::string {
    std::string text = config;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    WriteFileAtomic(folder + "/adapter_config.json", text.replace(at, from.size(), to));
    try {
      ReadLoraAdapter(folder, Config("llama"));
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(fault("\"use_dora\": false", "\"use_dora\": true"), HasSubstr("use_dora: is not"));
  EXPECT_THAT(fault("\"bias\": \"none\"", "\"bias\": \"all\""), HasSubstr("bias: \"all\""));
  EXPECT_THAT(fault("\"inference_mode\"", "\"rank_pattern\": {\"q_proj\": 2}, \"inference_mode\""),
              HasSubstr("rank_pattern"));
  EXPECT_THAT(fault("\"inference_mode\"", "\"new_trick\": 1, \"inference_mode\""),
              HasSubstr("new_trick: is not known"));
  EXPECT_THAT(fault("\"init_lora_weights\": true", "\"init_lora_weights\": \"pissa\""),
              HasSubstr("init_lora_weights: \"pissa\""));
  EXPECT_THAT(fault("\"r\": 1", "\"r\": 2"),
              HasSubstr("does not have the shapes [2, 4] and [4, 2]"));
  EXPECT_THAT(fault("\"LORA\"", "\"IA3\""), HasSubstr("peft_type: \"IA3\""));
  RemoveTree(folder);
}

}  // namespace
}  // namespace weft
