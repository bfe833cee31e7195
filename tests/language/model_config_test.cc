// Configs as ModelConfig: every family of the reference, rope settings of both spellings.
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "base/file.h"
#include "language/gguf.h"
#include "language/gguf_config.h"
#include "language/hf_config.h"
#include "tests/nn/reference.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

ModelDescription Read(const std::string& file) {
  return ReadHfConfig(ReadJsonFile(file), file);
}
ModelDescription Model(const std::string& name) {
  return Read(ReferencePath("language/models/" + name + "/config.json"));
}

TEST(HfConfig, ReadsEachFamily) {
  WEFT_REQUIRE_REFERENCE();
  const ModelConfig gpt2 = Model("gpt2").config;
  EXPECT_EQ(gpt2.norm, NormKind::kLayerNorm);
  EXPECT_EQ(gpt2.intermediate, 256);
  EXPECT_EQ(gpt2.learned_positions, 64);
  EXPECT_EQ(gpt2.activation, FeedForwardActivation::kGeluTanh);
  EXPECT_TRUE(gpt2.tied && gpt2.qkv_bias && gpt2.feed_forward_bias && !gpt2.gated);
  EXPECT_EQ(gpt2.rope.rotary_dimensions, 0);

  const ModelConfig gemma2 = Model("gemma2").config;
  EXPECT_EQ(gemma2.windows, (std::vector<int64_t>{6, 0}));
  EXPECT_FLOAT_EQ(gemma2.attention_scale, 1 / std::sqrt(24.0f));
  EXPECT_EQ(gemma2.attention_softcap, 4);
  EXPECT_EQ(gemma2.final_softcap, 6);
  EXPECT_FLOAT_EQ(gemma2.embedding_scale, std::sqrt(72.0f));
  EXPECT_TRUE(gemma2.norm_offset && gemma2.post_norms && gemma2.tied);

  EXPECT_EQ(Model("mistral").config.windows, (std::vector<int64_t>{7, 7}));
  EXPECT_EQ(Model("qwen2").config.windows, (std::vector<int64_t>{0, 0}));
  EXPECT_TRUE(Model("qwen2").config.qkv_bias);
  EXPECT_FALSE(Model("qwen2").config.attention_output_bias);
  EXPECT_TRUE(Model("qwen3").config.query_key_norm);
  EXPECT_EQ(Model("qwen3").config.head_dimension, 24);
  EXPECT_EQ(Model("llama_bias_headdim").config.head_dimension, 20);
  EXPECT_TRUE(Model("llama_bias_headdim").config.attention_output_bias);

  const ModelConfig neox = Model("gpt_neox").config;
  EXPECT_EQ(neox.rope.rotary_dimensions, 4);
  EXPECT_EQ(neox.activation, FeedForwardActivation::kGelu);
  EXPECT_TRUE(neox.parallel_residual);

  const ModelConfig opt = Model("opt").config;
  EXPECT_EQ(opt.learned_positions, 130);
  EXPECT_EQ(opt.learned_position_offset, 2);
  EXPECT_EQ(opt.activation, FeedForwardActivation::kRelu);

  EXPECT_EQ(Model("llama_reward").config.labels, 1);
}

TEST(HfConfig, GenerationReplacesTheEndTokens) {
  WEFT_REQUIRE_REFERENCE();
  ModelDescription model = Model("llama3_rope");
  EXPECT_EQ(model.config.eos, (std::vector<int64_t>{2}));
  const std::string file = ReferencePath("language/models/llama3_rope/generation_config.json");
  ReadHfGeneration(ReadJsonFile(file), file, model);
  EXPECT_EQ(model.config.eos, (std::vector<int64_t>{2, 5}));
}

TEST(HfConfig, RopeEqualsTheReferenceInBothSpellings) {
  WEFT_REQUIRE_REFERENCE();
  const std::string folder = ReferencePath("cases/files/lm/");
  const JsonValue expected = ReadJsonFile(folder + "c68_rope.expected.json");
  for (const auto& [name, entry] : expected.Members()) {
    const std::string file = folder + "c68_" + name + ".config.json";
    const JsonValue* frequencies = entry.Find("inverse_frequencies");
    if (frequencies->IsNull()) {
      try {
        Read(file);
        ADD_FAILURE() << name;
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("rope_type: \"spiral\""));
        EXPECT_THAT(error.what(), HasSubstr(file));
      }
      continue;
    }
    const RopeConfig rope = Read(file).config.rope;
    ASSERT_EQ(rope.inverse_frequencies.size(), frequencies->Items().size());
    for (size_t i = 0; i < rope.inverse_frequencies.size(); ++i) {
      double wanted = 0;
      ASSERT_TRUE(frequencies->Items()[i].GetDouble(wanted));
      EXPECT_NEAR(static_cast<double>(rope.inverse_frequencies[i]), wanted, 2e-7 * wanted)
          << name << " " << i;
    }
    double factor = 0;
    ASSERT_TRUE(entry.Find("attention_factor")->GetDouble(factor));
    EXPECT_NEAR(static_cast<double>(rope.attention_factor), factor, 1e-6) << name;
  }
}

TEST(HfConfig, TheSameModelInBothSpellings) {
  WEFT_REQUIRE_REFERENCE();
  const std::string folder = ReferencePath("language/models/llama3_rope/");
  const ModelDescription old = Read(folder + "config_v4_spelling.json");
  EXPECT_EQ(old.rope, Model("llama3_rope").rope);
  EXPECT_EQ(old.rope.kind, RopeKind::kLlama3);
}

TEST(HfConfig, HostileOnesAreRefusedByName) {
  WEFT_REQUIRE_REFERENCE();
  const std::string folder = ReferencePath("hostile/config/");
  for (const std::string& name : ListDirectory(folder)) {
    if (name.starts_with("numbers-eps_zero")) continue;
    try {
      Read(folder + name);
      ADD_FAILURE() << name << " is accepted";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(name));
    }
  }
}

TEST(HfConfig, LongropeIsReadWhereItsListsAgree) {
  const auto read = [](const std::string& longer, int context) {
    return ReadHfConfig(
        ParseJson(R"({"model_type":"phi3","vocab_size":8,"hidden_size":8,"num_hidden_layers":1,)"
                  R"("num_attention_heads":2,"intermediate_size":8,"max_position_embeddings":)" +
                      std::to_string(context) +
                      R"(,"original_max_position_embeddings":16,"rope_scaling":{"type":"longrope",)"
                      R"("short_factor":[1.0,2.0],"long_factor":)" +
                      longer + "}}",
                  "config.json"),
        "config.json");
  };
  const ModelDescription same = read("[1.0,2.0]", 64);
  EXPECT_EQ(same.rope.kind, RopeKind::kFactors);
  EXPECT_FLOAT_EQ(same.config.rope.inverse_frequencies[1], 0.01f / 2);
  EXPECT_FLOAT_EQ(same.config.rope.attention_factor, std::sqrt(1.5f));  // ln 4 / ln 16 = 1/2
  EXPECT_EQ(read("[4.0,8.0]", 16).rope.factors, (std::vector<float>{1, 2}));
  EXPECT_THROW(read("[4.0,8.0]", 64), Error);
}

TEST(GgufConfig, EqualsTheFolderItWasMadeFrom) {
  WEFT_REQUIRE_REFERENCE();
  const auto same = [](const std::string& gguf, const std::string& folder) {
    const GgufFile file(ReferencePath("language/gguf/" + gguf));
    const ModelDescription a = ReadGgufConfig(file), b = Model(folder);
    EXPECT_EQ(a.config.family, b.config.family);
    EXPECT_EQ(a.config.vocabulary, b.config.vocabulary);
    EXPECT_EQ(a.config.head_dimension, b.config.head_dimension);
    EXPECT_EQ(a.config.kv_heads, b.config.kv_heads);
    EXPECT_EQ(a.config.norm_epsilon, b.config.norm_epsilon);
    EXPECT_EQ(a.config.tied, b.config.tied);
    EXPECT_EQ(a.config.qkv_bias, b.config.qkv_bias);
    EXPECT_EQ(a.config.embedding_scale, b.config.embedding_scale);
    EXPECT_EQ(a.config.attention_scale, b.config.attention_scale);
    EXPECT_EQ(a.config.activation, b.config.activation);
    ASSERT_EQ(a.config.rope.inverse_frequencies.size(), b.config.rope.inverse_frequencies.size());
    for (size_t i = 0; i < a.config.rope.inverse_frequencies.size(); ++i) {
      const float wanted = b.config.rope.inverse_frequencies[i];
      EXPECT_NEAR(a.config.rope.inverse_frequencies[i], wanted, 1e-6f * wanted) << gguf;
    }
  };
  same("llama_gqa_untied-f32.gguf", "llama_gqa_untied");
  same("llama3_rope-f32.gguf", "llama3_rope");
  same("qwen2-f32.gguf", "qwen2");
  same("gpt2-f32.gguf", "gpt2");
  same("gemma-f32.gguf", "gemma");
}

}  // namespace
}  // namespace weft
