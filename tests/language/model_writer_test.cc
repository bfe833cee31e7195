#include "language/model_writer.h"

#include <bit>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/check.h"
#include "base/file.h"
#include "base/random.h"
#include "language/gguf.h"
#include "language/hf_config.h"
#include "language/json.h"
#include "language/model_files.h"
#include "language/tokenizer/tokenizer.h"
#include "language/weight_blocks.h"
#include "tests/nn/reference.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

// A folder of its own that goes when the test ends.
class Scratch {
 public:
  Scratch() : path_(testing::TempDir() + "model_writer_" + std::to_string(::getpid())) {
    RemoveTree(path_);
    MakeDirectories(path_);
  }
  ~Scratch() { RemoveTree(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// A tiny model of each kind of layout with random weights, made without files.
ModelDescription TinyModel(const std::string& family) {
  const std::string common =
      R"({"vocab_size":40,"hidden_size":32,"num_hidden_layers":2,"num_attention_heads":4,)"
      R"("max_position_embeddings":64,"eos_token_id":[3,5],"bos_token_id":1,)" +
      std::string(family == "opt" ? "" : R"("intermediate_size":64,)");
  const std::string plain = R"({"vocab_size":40,"eos_token_id":3,"tie_word_embeddings":true,)";
  std::string text;
  if (family == "gpt2") {
    text = plain + R"("n_embd":32,"n_layer":2,"n_head":4,"n_positions":64,"model_type":"gpt2"})";
  } else if (family == "opt") {
    text = common + R"("ffn_dim":64,"model_type":"opt"})";
  } else if (family == "gemma2") {
    text = common + R"("num_key_value_heads":2,"head_dim":16,"sliding_window":8,)"
                    R"("query_pre_attn_scalar":24,"model_type":"gemma2"})";
  } else if (family == "llama") {
    text = common + R"("num_key_value_heads":2,"attention_bias":true,"mlp_bias":true,)"
                    R"("rope_parameters":{"rope_type":"llama3","rope_theta":500000.0,"factor":8.0,)"
                    R"("low_freq_factor":1.0,"high_freq_factor":4.0,)"
                    R"("original_max_position_embeddings":16},"model_type":"llama"})";
  } else if (family == "mistral") {
    text = common +
           R"("num_key_value_heads":2,"sliding_window":8,"rope_scaling":{"type":"yarn",)"
           R"("factor":4.0,"original_max_position_embeddings":16},"model_type":"mistral"})";
  } else if (family == "qwen2") {
    text = common + R"("use_sliding_window":true,"sliding_window":8,"max_window_layers":1,)"
                    R"("rope_theta":1234567.891,"model_type":"qwen2"})";
  } else if (family == "qwen3") {
    text = common + R"("head_dim":24,"rope_scaling":{"rope_type":"linear","factor":3.0},)"
                    R"("tie_word_embeddings":true,"model_type":"qwen3"})";
  } else if (family == "gpt_neox") {
    text = common + R"("rotary_pct":0.5,"use_parallel_residual":false,"model_type":"gpt_neox"})";
  } else {
    text = common + R"("model_type":")" + family + R"("})";
  }
  ModelDescription description = ReadHfConfig(ParseJson(text, "config.json"), "config.json");
  description.generation.temperature = 0.7;
  description.generation.top_k = 20;
  description.generation.do_sample = true;
  return description;
}

struct TinyWeights {
  explicit TinyWeights(const ModelConfig& config) {
    uint64_t stream = 0;
    for (const WeightSpec& spec : ModelWeights(config)) {
      int64_t count = 1;
      for (const int64_t size : spec.shape) count *= size;
      auto& data = values.emplace_back(static_cast<size_t>(count));
      Rng rng(Rng::State{5, stream++, 0});
      for (float& value : data) value = static_cast<float>(rng.Normal());
      weights.emplace_back(spec, data.data());
    }
  }
  std::vector<std::vector<float>> values;
  std::vector<StoredWeight> weights;
};

void ExpectSameConfig(const ModelDescription& a, const ModelDescription& b) {
  const ModelConfig &x = a.config, &y = b.config;
  EXPECT_EQ(x.family, y.family);
  EXPECT_EQ(x.vocabulary, y.vocabulary);
  EXPECT_EQ(x.kv_heads, y.kv_heads);
  EXPECT_EQ(x.head_dimension, y.head_dimension);
  EXPECT_EQ(x.norm_epsilon, y.norm_epsilon);
  EXPECT_EQ(x.activation, y.activation);
  EXPECT_EQ(x.parallel_residual, y.parallel_residual);
  EXPECT_EQ(x.qkv_bias, y.qkv_bias);
  EXPECT_EQ(x.attention_output_bias, y.attention_output_bias);
  EXPECT_EQ(x.feed_forward_bias, y.feed_forward_bias);
  EXPECT_EQ(x.windows, y.windows);
  EXPECT_EQ(x.tied, y.tied);
  EXPECT_EQ(x.labels, y.labels);
  EXPECT_EQ(x.eos, y.eos);
  EXPECT_EQ(x.bos, y.bos);
  EXPECT_EQ(x.pad, y.pad);
  EXPECT_EQ(x.embedding_scale, y.embedding_scale);
  EXPECT_FLOAT_EQ(x.attention_scale, y.attention_scale);
  EXPECT_EQ(x.attention_softcap, y.attention_softcap);
  EXPECT_EQ(x.rope.rotary_dimensions, y.rope.rotary_dimensions);
  EXPECT_EQ(x.rope.inverse_frequencies, y.rope.inverse_frequencies);
  EXPECT_EQ(x.rope.attention_factor, y.rope.attention_factor);
  EXPECT_EQ(a.rope, b.rope);
  EXPECT_EQ(a.generation, b.generation);
}

// norms: their values may differ by this much, since Gemma's GGUF adds 1 to them.
void ExpectSameWeights(std::span<const StoredWeight> a, std::span<const StoredWeight> b,
                       float norms) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name(), b[i].name());
    const auto x = a[i].Read(), y = b[i].Read();
    const float tolerance = a[i].name().find("norm") == std::string::npos ? 0 : norms;
    for (size_t j = 0; j < x.size(); ++j) {
      if (tolerance > 0) {
        ASSERT_NEAR(x[j], y[j], tolerance) << a[i].name();
      } else {
        ASSERT_EQ(std::bit_cast<uint32_t>(x[j]), std::bit_cast<uint32_t>(y[j])) << a[i].name();
      }
    }
  }
}

TEST(ModelWriter, FolderToGgufToFolderKeepsEveryBit) {
  const Scratch scratch;
  for (const char* family :
       {"llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "phi3", "gpt2", "gpt_neox"}) {
    SCOPED_TRACE(family);
    const ModelDescription description = TinyModel(family);
    const TinyWeights tiny(description.config);
    const std::string name = family;
    WriteModelFolder(scratch / name, description, tiny.weights, WeightType::kF32, {});
    const auto folder = ModelFile::Open(scratch / name);
    ExpectSameConfig(folder->description(), description);
    ExpectSameWeights(folder->weights(), tiny.weights, 0);

    WriteModelGguf(scratch / (name + ".gguf"), folder->description(), folder->weights(), {});
    const auto gguf = ModelFile::Open(scratch / (name + ".gguf"));
    ExpectSameConfig(gguf->description(), description);
    const float norms = description.config.norm_offset ? 0x1p-22f : 0;
    ExpectSameWeights(gguf->weights(), tiny.weights, norms);

    WriteModelFolder(scratch / (name + "_again"), gguf->description(), gguf->weights(),
                     WeightType::kF32, {});
    const auto again = ModelFile::Open(scratch / (name + "_again"));
    ExpectSameConfig(again->description(), description);
    ExpectSameWeights(again->weights(), tiny.weights, norms);
    if (norms == 0) {
      EXPECT_EQ(ReadFile(scratch / (name + "/model.safetensors")),
                ReadFile(scratch / (name + "_again/model.safetensors")));
    }
    EXPECT_EQ(ReadFile(scratch / (name + "/config.json")),
              ReadFile(scratch / (name + "_again/config.json")));
  }
}

TEST(ModelWriter, OptHasNoGguf) {
  const Scratch scratch;
  const ModelDescription description = TinyModel("opt");
  const TinyWeights tiny(description.config);
  WriteModelFolder(scratch / "opt", description, tiny.weights, WeightType::kF32, {});
  const auto folder = ModelFile::Open(scratch / "opt");
  ExpectSameConfig(folder->description(), description);
  ExpectSameWeights(folder->weights(), tiny.weights, 0);
  try {
    WriteModelGguf(scratch / "opt.gguf", description, tiny.weights, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no architecture for models of the family opt"));
  }
}

TEST(ModelWriter, WritesHalfTypesRoundedOnce) {
  const Scratch scratch;
  const ModelDescription description = TinyModel("llama");
  const TinyWeights tiny(description.config);
  for (const WeightType type : {WeightType::kF16, WeightType::kBF16}) {
    const std::string name(Info(type).name);
    WriteModelFolder(scratch / name, description, tiny.weights, type, {});
    const auto model = ModelFile::Open(scratch / name);
    EXPECT_EQ(model->main_type(), type);
    for (size_t w = 0; w < tiny.weights.size(); ++w) {
      const auto read = model->weights()[w].Read();
      for (size_t i = 0; i < read.size(); ++i) {
        const float wanted = type == WeightType::kF16 ? HalfToFloat(FloatToHalf(tiny.values[w][i]))
                                                      : ToFloat(ToBFloat16(tiny.values[w][i]));
        ASSERT_EQ(read[i], wanted);
      }
    }
  }
}

// llama.cpp's rules: vectors F32, the output matrix at least Q8_0, and F16 where blocks do not fit.
TEST(ModelWriter, QuantisedFilesHaveTheUsualTypes) {
  const Scratch scratch;
  const ModelDescription description = TinyModel("llama");
  const TinyWeights tiny(description.config);
  GgufWriteOptions options;
  options.type = WeightType::kQ4_0;
  WriteModelGguf(scratch / "m.gguf", description, tiny.weights, options);
  const GgufFile file(scratch / "m.gguf");
  EXPECT_EQ(file.FindTensor("token_embd.weight")->type, WeightType::kQ4_0);
  EXPECT_EQ(file.FindTensor("output.weight")->type, WeightType::kQ8_0);
  EXPECT_EQ(file.FindTensor("blk.0.attn_q.weight")->type, WeightType::kQ4_0);
  EXPECT_EQ(file.FindTensor("blk.0.attn_q.bias")->type, WeightType::kF32);
  EXPECT_EQ(file.FindTensor("blk.1.ffn_norm.weight")->type, WeightType::kF32);
  int64_t type = 0;
  EXPECT_TRUE(file.Find("general.file_type")->GetInteger(type));
  EXPECT_EQ(type, 2);

  ModelDescription odd = TinyModel("gpt2");
  odd.config.intermediate = 72;
  const TinyWeights odd_tiny(odd.config);
  WriteModelGguf(scratch / "odd.gguf", odd, odd_tiny.weights, options);
  const GgufFile odd_file(scratch / "odd.gguf");
  EXPECT_EQ(odd_file.FindTensor("blk.0.ffn_down.weight")->type, WeightType::kF16);
  EXPECT_EQ(odd_file.FindTensor("token_embd.weight")->type, WeightType::kQ8_0);  // tied
  EXPECT_EQ(odd_file.FindTensor("position_embd.weight")->type, WeightType::kF32);
}

// Rows move; blocks stay.
TEST(ModelWriter, CopiesQuantisedRowsAsTheyAre) {
  const Scratch scratch;
  const ModelDescription description = TinyModel("llama");
  const TinyWeights tiny(description.config);
  GgufWriteOptions options;
  options.type = WeightType::kQ5_1;
  WriteModelGguf(scratch / "a.gguf", description, tiny.weights, options);
  const auto first = ModelFile::Open(scratch / "a.gguf");
  options = {};
  options.source = first->gguf();
  WriteModelGguf(scratch / "b.gguf", first->description(), first->weights(), options);
  EXPECT_EQ(ReadFile(scratch / "a.gguf"), ReadFile(scratch / "b.gguf"));
}

TEST(ModelWriter, QuantisesTheReferenceModelsToTheirOwnBytes) {
  WEFT_REQUIRE_REFERENCE();
  const Scratch scratch;
  const auto source = ModelFile::Open(ReferencePath("language/gguf/llama_gqa_untied-f32.gguf"));
  for (const char* type : {"f16", "bf16", "q8_0", "q4_0", "q5_0", "q5_1"}) {
    GgufWriteOptions options;
    options.type = FindWeightType(type)->type;
    options.source = source->gguf();
    WriteModelGguf(scratch / "m.gguf", source->description(), source->weights(), options);
    const GgufFile written(scratch / "m.gguf");
    const GgufFile wanted(
        ReferencePath(std::string("language/gguf/llama_gqa_untied-") + type + ".gguf"));
    int equal = 0;
    for (const GgufTensor& tensor : wanted.tensors()) {
      const GgufTensor* ours = written.FindTensor(tensor.name);
      ASSERT_TRUE(ours) << tensor.name;
      EXPECT_EQ(ours->shape, tensor.shape);
      if (ours->type != tensor.type) continue;  // the output matrix of some is not Q8_0 there
      EXPECT_TRUE(std::ranges::equal(ours->bytes, tensor.bytes)) << type << " " << tensor.name;
      ++equal;
    }
    EXPECT_GE(equal, 20) << type;
    for (const char* key : {"tokenizer.ggml.tokens", "tokenizer.chat_template",
                            "tokenizer.ggml.scores", "llama.rope.freq_base"}) {
      ASSERT_TRUE(written.Find(key)) << key;
      EXPECT_TRUE(std::ranges::equal(written.Find(key)->bytes, wanted.Find(key)->bytes)) << key;
    }
  }
}

// Ids of a text by a tokenizer from a folder and by the one that its GGUF carries.
void ExpectSameIds(const Tokenizer& a, const Tokenizer& b, const std::string& file, int most) {
  int compared = 0;
  const std::string text = ReadFile(file);
  for (size_t begin = 0; begin < text.size() && compared < most; ++compared) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const JsonValue row = ParseJson(text.substr(begin, end - begin), file);
    const std::string& sample = row.Find("text")->AsString();
    ASSERT_EQ(a.Encode(sample), b.Encode(sample)) << sample;
    begin = end + 1;
  }
  EXPECT_GT(compared, 100);
}

TEST(ModelWriter, TokenizersSurviveTheWayThroughGguf) {
  WEFT_REQUIRE_REFERENCE();
  const Scratch scratch;
  for (const char* name : {"smollm2", "gpt2_small", "llama3_small", "llama2_spm_small"}) {
    SCOPED_TRACE(name);
    const std::string source = ReferencePath(std::string("language/tokenizers/") + name);
    const std::string folder = scratch / name;
    MakeDirectories(folder);
    WriteFileAtomic(folder + "/tokenizer.json", ReadFile(source + "/tokenizer.json"));
    WriteFileAtomic(folder + "/tokenizer_config.json", R"({"chat_template": "{{ messages }}\n"})");
    ModelDescription description = TinyModel("llama");
    GgufWriteOptions options;
    options.tokenizer = MakeGgufTokenizer(folder, 40);
    description.config.vocabulary = static_cast<int64_t>(options.tokenizer->tokens.size());
    const TinyWeights tiny(description.config);
    // Without the whole tokenizer.json, so that the keys themselves are tried.
    WriteModelGguf(scratch / "t.gguf", description, tiny.weights, options);
    const GgufFile file(scratch / "t.gguf");
    const GgufTokenizer read = ReadGgufTokenizer(file);
    EXPECT_EQ(read.chat_template, "{{ messages }}\n");
    EXPECT_EQ(read.tokens, options.tokenizer->tokens);
    const Tokenizer original = Tokenizer::Load(folder);
    ExpectSameIds(original, Tokenizer::FromGguf(read, "t.gguf"), source + "/cases.jsonl", 200);
    // And back to a folder.
    const std::string back = folder + "_back";
    MakeDirectories(back);
    for (const auto& [file_name, text] : MakeTokenizerFiles(file, 64)) {
      WriteFileAtomic(back + "/" + file_name, text);
    }
    ExpectSameIds(original, Tokenizer::Load(back), source + "/cases.jsonl", 200);
    // With it, the very text comes back.
    options.tokenizer_json = ReadFile(folder + "/tokenizer.json");
    WriteModelGguf(scratch / "u.gguf", description, tiny.weights, options);
    EXPECT_EQ(MakeTokenizerFiles(GgufFile(scratch / "u.gguf"), 64)[0].second,
              options.tokenizer_json);
  }
}

}  // namespace
}  // namespace weft
