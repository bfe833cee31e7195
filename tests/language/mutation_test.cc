// Valid files damaged at random, the same way each time: readers give a model or an Error, never
// anything else. The sanitizer builds run these too.
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/check.h"
#include "base/file.h"
#include "base/random.h"
#include "language/gguf.h"
#include "language/gguf_config.h"
#include "language/gguf_tokenizer.h"
#include "language/hf_config.h"
#include "language/json.h"
#include "language/model_files.h"
#include "language/model_writer.h"
#include "language/stored_tensors.h"
#include "language/tokenizer/tokenizer.h"

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

// How many of the damaged files were accepted; everything but an Error fails the test.
int Accepted(const std::string& valid, int files, uint64_t stream,
             const std::function<void(const std::string&)>& load) {
  EXPECT_NO_THROW(load(valid));
  int accepted = 0;
  Rng rng(Rng::State{11, stream, 0});
  for (int i = 0; i < files; ++i) {
    const std::string damaged = Damaged(valid, rng);
    try {
      load(damaged);
      ++accepted;
    } catch (const Error& error) {
      EXPECT_FALSE(error.message().empty());
    }
  }
  return accepted;
}

std::span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

TEST(Mutation, GgufFilesGiveAModelOrAnError) {
  const Files files;
  const int accepted = Accepted(files.gguf, 3000, 1, [](const std::string& bytes) {
    const GgufFile file(Bytes(bytes), "m.gguf");
    const ModelDescription description = ReadGgufConfig(file);
    std::vector<FoundTensor> found;
    for (const GgufTensor& tensor : file.tensors()) {
      found.push_back({tensor.name, tensor.shape, tensor.type, tensor.bytes});
    }
    const std::vector<std::string> used = {"rope_freqs.weight"};
    for (const StoredWeight& weight :
         JoinWeights(description.config, FileFormat::kGguf, std::move(found), used, "m.gguf")) {
      weight.Read();
    }
    Tokenizer::FromGguf(ReadGgufTokenizer(file), "m.gguf").Encode("abc <s> d");
  });
  EXPECT_GT(accepted, 30);  // a changed weight is no fault
  EXPECT_LT(accepted, 2000);
}

TEST(Mutation, SafetensorsGiveWeightsOrAnError) {
  const Files files;
  const int accepted = Accepted(files.safetensors, 3000, 2, [&](const std::string& bytes) {
    std::vector<FoundTensor> found;
    AddSafetensors(Bytes(bytes), "m.safetensors", found);
    for (const StoredWeight& weight : JoinWeights(
             files.description.config, FileFormat::kHuggingFace, std::move(found), {}, "m")) {
      weight.Read();
    }
  });
  EXPECT_GT(accepted, 30);
  EXPECT_LT(accepted, 2500);
}

TEST(Mutation, ConfigsGiveADescriptionOrAnError) {
  testing::internal::CaptureStderr();  // warnings of keys that no longer are those they were
  const int accepted = Accepted(kConfig, 3000, 3, [](const std::string& text) {
    ReadHfConfig(ParseJson(text, "config.json"), "config.json");
  });
  EXPECT_NE(testing::internal::GetCapturedStderr().find("unknown keys are ignored"),
            std::string::npos);
  EXPECT_LT(accepted, 1500);
}

}  // namespace
}  // namespace weft
