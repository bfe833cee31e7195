// Valid files damaged at random, the same way each time: readers give a result or an Error, never
// anything else. The sanitizer builds run these too, and libFuzzer goes on from here.
#include <cstring>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/random.h"
#include "language/gguf_tokenizer.h"
#include "language/hf_config.h"
#include "language/json.h"
#include "language/model_writer.h"
#include "tests/fuzz/targets.h"
#include "tests/language/tokenizer_files.h"

namespace weft {
namespace {

constexpr char kConfig[] =
    R"({"model_type":"llama","architectures":["LlamaForCausalLM"],"vocab_size":12,"hidden_size":8,)"
    R"("num_hidden_layers":2,"num_attention_heads":2,"num_key_value_heads":1,)"
    R"("intermediate_size":16,"max_position_embeddings":32,"rms_norm_eps":1e-05,)"
    R"("hidden_act":"silu","eos_token_id":[2,3],)"
    R"("rope_parameters":{"rope_type":"llama3","rope_theta":500000.0,"factor":8.0,)"
    R"("low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":16}})";

GgufTokenizer TinyTokenizer() {
  GgufTokenizer tokenizer;
  tokenizer.model = "gpt2";
  tokenizer.pre = "gpt-2";
  tokenizer.tokens = {"<s>", "a", "b", "c", "ab", "abc", "d", "e", "f", "g", "h", "</s>"};
  tokenizer.types.assign(12, static_cast<int32_t>(GgufTokenType::kNormal));
  tokenizer.types[0] = tokenizer.types[11] = static_cast<int32_t>(GgufTokenType::kControl);
  tokenizer.merges = {"a b", "ab c"};
  tokenizer.bos = 0;
  tokenizer.eos = 11;
  tokenizer.add_bos = true;
  tokenizer.chat_template = "{{ messages }}";
  return tokenizer;
}

// The bytes of a small model in both forms.
struct Files {
  std::string gguf, safetensors;
  ModelDescription description;

  Files() {
    description = ReadHfConfig(ParseJson(kConfig, "config.json"), "config.json");
    std::vector<std::vector<float>> values;
    std::vector<StoredWeight> weights;
    for (const WeightSpec& spec : ModelWeights(description.config)) {
      int64_t count = 1;
      for (const int64_t size : spec.shape) count *= size;
      values.emplace_back(static_cast<size_t>(count), 0.5f);
    }
    for (const WeightSpec& spec : ModelWeights(description.config)) {
      weights.emplace_back(spec, values[weights.size()].data());
    }
    const std::string path = testing::TempDir() + "mutation_" + std::to_string(::getpid());
    RemoveTree(path);
    GgufWriteOptions options;
    options.tokenizer = TinyTokenizer();
    WriteModelGguf(path + ".gguf", description, weights, options);
    WriteModelFolder(path, description, weights, WeightType::kBF16, {});
    gguf = ReadFile(path + ".gguf");
    safetensors = ReadFile(path + "/model.safetensors");
    RemoveTree(path);
    RemoveTree(path + ".gguf");
  }
};

uint32_t Below(Rng& rng, size_t bound) {
  return static_cast<uint32_t>(rng.Uniform() * static_cast<double>(bound));
}

// One to four of: a byte changed, a number that surprises written, a cut, bytes left out or twice.
std::string Damaged(std::string bytes, Rng& rng) {
  constexpr uint64_t kNumbers[] = {0,
                                   1,
                                   0x7F,
                                   0xFFFF,
                                   1u << 31,
                                   uint64_t{1} << 40,
                                   uint64_t{1} << 63,
                                   ~uint64_t{0},
                                   ~uint64_t{0} - 31};
  for (uint32_t times = 1 + Below(rng, 4); times > 0 && !bytes.empty(); --times) {
    const size_t at = Below(rng, bytes.size());
    const size_t length = std::min<size_t>(1 + Below(rng, 16), bytes.size() - at);
    switch (Below(rng, 6)) {
      case 0:
      case 1:
        bytes[at] = static_cast<char>(Below(rng, 256));
        break;
      case 2: {
        const uint64_t number = kNumbers[Below(rng, std::size(kNumbers))];
        std::memcpy(&bytes[at], &number, std::min<size_t>(sizeof(number), bytes.size() - at));
        break;
      }
      case 3:
        bytes.erase(at, length);
        break;
      case 4:
        bytes.insert(at, bytes.substr(at, length));
        break;
      default:
        if (Below(rng, 4) == 0) bytes.resize(at);
    }
  }
  return bytes;
}

std::span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// How many of the damaged files were accepted.
int Accepted(const std::string& target_name, const std::string& valid, int files, uint64_t stream) {
  const fuzz::Target& target = *fuzz::FindTarget(target_name);
  EXPECT_TRUE(target.read(Bytes(valid))) << target_name;
  int accepted = 0;
  Rng rng(Rng::State{11, stream, 0});
  for (int i = 0; i < files; ++i) accepted += target.read(Bytes(Damaged(valid, rng)));
  return accepted;
}

TEST(Mutation, GgufFilesGiveAModelOrAnError) {
  const int accepted = Accepted("gguf", Files().gguf, 3000, 1);
  EXPECT_GT(accepted, 30);  // a changed weight is no fault
  EXPECT_LT(accepted, 2000);
}

TEST(Mutation, SafetensorsGiveWeightsOrAnError) {
  const int accepted = Accepted("safetensors", Files().safetensors, 3000, 2);
  EXPECT_GT(accepted, 30);
  EXPECT_LT(accepted, 2500);
}

TEST(Mutation, ConfigsGiveADescriptionOrAnError) {
  testing::internal::CaptureStderr();  // warnings of keys that no longer are those they were
  const int accepted = Accepted("config", kConfig, 3000, 3);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("unknown keys are ignored"),
            std::string::npos);
  EXPECT_GT(accepted, 30);
  EXPECT_LT(accepted, 1500);
}

TEST(Mutation, EncodersGiveAConfigOrAnError) {
  const int accepted = Accepted(
      "encoder",
      R"({"model_type":"bert","architectures":["BertModel"],"vocab_size":12,"hidden_size":8,)"
      R"("num_hidden_layers":2,"num_attention_heads":2,"intermediate_size":16,)"
      R"("max_position_embeddings":32,"hidden_act":"gelu","layer_norm_eps":1e-12})"
      "\n--\n"
      R"([{"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"},)"
      R"({"idx":1,"name":"1","path":"1_Pooling","type":"sentence_transformers.models.Pooling"},)"
      R"({"idx":2,"name":"2","path":"2_N","type":"sentence_transformers.models.Normalize"}])"
      "\n--\n"
      R"({"word_embedding_dimension":8,"pooling_mode_cls_token":false,)"
      R"("pooling_mode_mean_tokens":true})"
      "\n--\n"
      R"({"max_seq_length":16,"do_lower_case":false})"
      "\n--\n"
      R"({"model_max_length":1e30})",
      3000, 7);
  EXPECT_GT(accepted, 30);
  EXPECT_LT(accepted, 1500);
}

TEST(Mutation, YamlGivesAConfigOrAnError) {
  const int accepted = Accepted("yaml",
                                "steps: 2000\nrate: 1e-3  # of learning\nquick: true\n"
                                "country: \"no\"\nsizes: [64, 64,\n  32]\n",
                                3000, 4);
  EXPECT_GT(accepted, 30);
  EXPECT_LT(accepted, 2500);
}

TEST(Mutation, TokenizersWorkOrAreRefused) {
  const int accepted = Accepted("tokenizer", SmallTokenizerJson(), 1500, 5);
  EXPECT_GT(accepted, 30);
  EXPECT_LT(accepted, 1400);
}

TEST(Mutation, TemplatesRenderOrAreRefused) {
  const int accepted = Accepted("template",
                                "{%- for m in messages if m.role != 'x' %}{{ m['role'] ~ ': ' + "
                                "m.content | trim }}{% endfor %}{{ bos_token }}",
                                3000, 6);
  EXPECT_GT(accepted, 30);
  EXPECT_LT(accepted, 2500);
}

}  // namespace
}  // namespace weft
