#include "language/model_files.h"

#include <cmath>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "base/file.h"
#include "language/gguf.h"
#include "language/weight_layout.h"
#include "tests/base/temporary_folder.h"
#include "tests/nn/reference.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

std::string Models() {
  return ReferencePath("language/models/");
}

// A tensor of a safetensors file as f32, in the file's own layout.
std::vector<float> Stored(const TensorMap& map, const std::string& name) {
  const Tensor* tensor = map.Find(name);
  EXPECT_TRUE(tensor) << name;
  std::vector<float> values;
  for (int64_t i = 0; tensor && i < tensor->elements(); ++i) {
    values.push_back(static_cast<float>(Element(*tensor, static_cast<size_t>(i))));
  }
  return values;
}

TEST(ModelFile, OpensEveryFamilyOfTheReference) {
  WEFT_REQUIRE_REFERENCE();
  int opened = 0;
  for (const std::string& name : ListDirectory(Models())) {
    if (!FileExists(Models() + name + "/config.json")) continue;
    const auto model = ModelFile::Open(Models() + name);
    EXPECT_EQ(model->weights().size(), ModelWeights(model->config()).size()) << name;
    int64_t parameters = 0;
    for (const StoredWeight& weight : model->weights()) {
      EXPECT_EQ(weight.Read().size(), static_cast<size_t>(weight.elements()));
      parameters += weight.elements();
    }
    EXPECT_GT(parameters, 50'000) << name;
    ++opened;
  }
  EXPECT_GE(opened, 17);
}

TEST(ModelFile, OpensEveryGgufOfTheReference) {
  WEFT_REQUIRE_REFERENCE();
  const std::string folder = ReferencePath("language/gguf/");
  int opened = 0;
  for (const std::string& name : ListDirectory(folder)) {
    if (!name.ends_with(".gguf") || name.starts_with("blocks") || name.starts_with("quirks"))
      continue;
    const auto model = ModelFile::Open(folder + name);
    for (const StoredWeight& weight : model->weights()) weight.Read();
    ++opened;
  }
  EXPECT_EQ(opened, 19);
}

// Names, shapes and the values of fused, transposed and interleaved tensors, by hand from the file.
TEST(ModelFile, SplitsFusedTensors) {
  WEFT_REQUIRE_REFERENCE();
  {  // [in, 3 * out], transposed
    const auto model = ModelFile::Open(Models() + "gpt2");
    const auto stored = Stored(ReadSafetensors(Models() + "gpt2/model.safetensors"),
                               "transformer.h.1.attn.c_attn.weight");
    const StoredWeight& key = model->Find("model.layers.1.self_attn.k_proj.weight");
    EXPECT_EQ(key.shape(), (std::vector<int64_t>{64, 64}));
    EXPECT_EQ(key.RowBytes(0), nullptr);
    const auto values = key.Read();
    for (size_t out = 0; out < 64; ++out) {
      for (size_t in = 0; in < 64; ++in) {
        ASSERT_EQ(values[out * 64 + in], stored[in * 192 + 64 + out]);
      }
    }
    std::vector<float> rows(2 * 64);
    key.ReadRows(5, 7, rows.data());
    for (size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(rows[i], values[5 * 64 + i]);
  }
  {  // [heads, 3, head_dimension]
    const auto model = ModelFile::Open(Models() + "gpt_neox");
    const TensorMap map = ReadSafetensors(Models() + "gpt_neox/model.safetensors");
    const auto stored = Stored(map, "gpt_neox.layers.0.attention.query_key_value.weight");
    const auto bias = Stored(map, "gpt_neox.layers.0.attention.query_key_value.bias");
    const auto value = model->Find("model.layers.0.self_attn.v_proj.weight").Read();
    const auto value_bias = model->Find("model.layers.0.self_attn.v_proj.bias").Read();
    for (size_t row = 0; row < 64; ++row) {
      const size_t at = row / 16 * 48 + 32 + row % 16;
      ASSERT_EQ(value_bias[row], bias[at]);
      for (size_t in = 0; in < 64; ++in) ASSERT_EQ(value[row * 64 + in], stored[at * 64 + in]);
    }
  }
  {  // one after the other
    const auto model = ModelFile::Open(Models() + "phi3");
    const auto stored = Stored(ReadSafetensors(Models() + "phi3/model.safetensors"),
                               "model.layers.0.mlp.gate_up_proj.weight");
    const auto up = model->Find("model.layers.0.mlp.up_proj.weight").Read();
    for (size_t i = 0; i < up.size(); ++i) ASSERT_EQ(up[i], stored[96 * 64 + i]);
  }
}

TEST(ModelFile, ShardsLegacyNamesAndTypesGiveTheSameWeights) {
  WEFT_REQUIRE_REFERENCE();
  const auto expect_same = [](const std::string& a, const std::string& b, double tolerance) {
    const auto first = ModelFile::Open(a), second = ModelFile::Open(b);
    ASSERT_EQ(first->weights().size(), second->weights().size()) << a << " " << b;
    for (size_t w = 0; w < first->weights().size(); ++w) {
      const StoredWeight& weight = first->weights()[w];
      EXPECT_EQ(weight.name(), second->weights()[w].name());
      EXPECT_EQ(weight.shape(), second->weights()[w].shape());
      const auto x = weight.Read(), y = second->weights()[w].Read();
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_LE(std::abs(x[i] - y[i]), tolerance * (std::abs(x[i]) + 0x1p-15f))
            << b << " " << weight.name();
      }
    }
  };
  expect_same(Models() + "llama_gqa_untied", Models() + "llama_gqa_untied_sharded", 0);
  expect_same(Models() + "gpt2", Models() + "gpt2_legacy_names", 0);
  expect_same(Models() + "llama_gqa_untied", Models() + "llama_gqa_untied_bf16", 0x1p-8);
  expect_same(Models() + "llama_gqa_untied", Models() + "llama_gqa_untied_f16", 0x1p-10);
  const std::string gguf = ReferencePath("language/gguf/");
  expect_same(Models() + "llama_gqa_untied", gguf + "llama_gqa_untied-f32.gguf", 0);
  expect_same(Models() + "qwen2", gguf + "qwen2-f32.gguf", 0);
  expect_same(Models() + "gpt2", gguf + "gpt2-f32.gguf", 0);
  expect_same(Models() + "llama3_rope", gguf + "llama3_rope-f32.gguf", 0);
}

// w + 1 is rounded to f32 in the file.
TEST(ModelFile, TakesTheOffsetOfGemmasNormsAway) {
  WEFT_REQUIRE_REFERENCE();
  const auto folder = ModelFile::Open(Models() + "gemma");
  const auto gguf = ModelFile::Open(ReferencePath("language/gguf/gemma-f32.gguf"));
  for (const StoredWeight& weight : folder->weights()) {
    const bool norm = weight.name().find("norm") != std::string::npos;
    const auto a = weight.Read(), b = gguf->Find(weight.name()).Read();
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_LE(std::abs(a[i] - b[i]), norm ? 0x1p-23 : 0) << weight.name();
      if (norm) {
        ASSERT_EQ(1 + a[i], 1 + b[i]);
      }
    }
  }
}

TEST(ModelFile, GivesTheBytesOfQuantisedRowsUnpermuted) {
  WEFT_REQUIRE_REFERENCE();
  const auto model = ModelFile::Open(ReferencePath("language/gguf/llama_gqa_untied-q4_1.gguf"));
  EXPECT_EQ(model->main_type(), WeightType::kQ4_1);
  const StoredWeight& query = model->Find("model.layers.1.self_attn.q_proj.weight");
  const GgufTensor* stored = model->gguf()->FindTensor("blk.1.attn_q.weight");
  // head 2, row 5: the first of pair 5; row 13: its second.
  const int64_t row_bytes = RowBytes(WeightType::kQ4_1, 64);
  EXPECT_EQ(query.RowBytes(2 * 16 + 5), stored->bytes.data() + (2 * 16 + 10) * row_bytes);
  EXPECT_EQ(query.RowBytes(2 * 16 + 13), stored->bytes.data() + (2 * 16 + 11) * row_bytes);
  EXPECT_EQ(model->Find("model.norm.weight").type(), WeightType::kF32);
}

// A copy of a reference folder with files changed.
class BrokenFolder {
 public:
  explicit BrokenFolder(const std::string& model) {
    for (const char* file : {"/config.json", "/model.safetensors", "/generation_config.json"}) {
      if (FileExists(Models() + model + file)) {
        WriteFileAtomic(folder_.path() + file, ReadFile(Models() + model + file));
      }
    }
  }

  void Replace(const std::string& file, const std::string& from, const std::string& to) {
    std::string text = ReadFile(folder_.Path(file));
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    WriteFileAtomic(folder_.Path(file), text.replace(at, from.size(), to));
  }
  std::string Fault() const {
    try {
      ModelFile::Open(folder_.path());
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }

 private:
  TemporaryFolder folder_;
};

TEST(ModelFile, ListsMissingMisshapedAndUnexpectedTensorsTogether) {
  WEFT_REQUIRE_REFERENCE();
  BrokenFolder folder("llama_gqa_untied");
  folder.Replace("model.safetensors", "model.norm.weight", "model.Norm.weight");
  folder.Replace("config.json", "\"intermediate_size\": 96", "\"intermediate_size\": 95");
  const std::string fault = folder.Fault();
  EXPECT_THAT(fault, HasSubstr("1 tensors are missing: model.norm.weight"));
  EXPECT_THAT(fault,
              HasSubstr("6 have another shape: model.layers.0.mlp.gate_proj.weight [96, 64]"));
  EXPECT_THAT(fault, HasSubstr("not [95, 64]"));
  EXPECT_THAT(fault, HasSubstr("1 are not expected: model.Norm.weight"));
}

TEST(ModelFile, NamesTheKeyOfWhatItDoesNotSupport) {
  WEFT_REQUIRE_REFERENCE();
  struct Case {
    const char *model, *from, *to, *fault;
  };
  for (const Case& c : {
           Case{"llama_gqa_untied", "\"silu\"", "\"mish\"",
                "hidden_act: \"mish\" is not supported"},
           Case{"llama_gqa_untied", "\"LlamaForCausalLM\"", "\"LlamaModel\"",
                "architectures: \"LlamaModel\""},
           Case{"llama_gqa_untied", "\"model_type\": \"llama\"", "\"model_type\": \"mamba\"",
                "model_type: \"mamba\" is not supported"},
           Case{"llama_gqa_untied", "\"rope_scaling\": null",
                "\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2.0}",
                "rope_scaling.rope_type: \"dynamic\""},
           Case{"llama_gqa_untied", "\"use_cache\": true", "\"quantization_config\": {\"bits\": 4}",
                "quantization_config: is not supported"},
           Case{"gpt2", "\"scale_attn_by_inverse_layer_idx\": false",
                "\"scale_attn_by_inverse_layer_idx\": true", "scale_attn_by_inverse_layer_idx"},
           Case{"opt", "\"do_layer_norm_before\": true", "\"do_layer_norm_before\": false",
                "do_layer_norm_before"},
       }) {
    BrokenFolder folder(c.model);
    folder.Replace("config.json", c.from, c.to);
    EXPECT_THAT(folder.Fault(), HasSubstr(c.fault));
    EXPECT_THAT(folder.Fault(), HasSubstr("config.json"));
  }
}

TEST(ModelFile, NamesATensorWithAValueThatIsNotFinite) {
  const float values[] = {1, NAN, 3, 4};
  const StoredWeight weight({"model.norm.weight", {4}}, values);
  EXPECT_THROW(weight.Read(), Error);
  std::vector<float> row(1);
  weight.ReadRows(2, 3, row.data());
  EXPECT_EQ(row[0], 3);
}

}  // namespace
}  // namespace weft
