// Plans of memory against what is there.
#include "language/transformer_memory.h"

#include <gtest/gtest.h>

#include "tests/language/reference_files.h"
#include "tests/language/tiny_model.h"

namespace weft {
namespace {

ModelConfig Variant(int which) {
  ModelConfig config = TinyConfig();
  if (which == 1) {  // Gemma 2 and Qwen 3 together
    config.post_norms = true;
    config.query_key_norm = true;
  }
  if (which == 2) {  // OPT
    config.norm = NormKind::kLayerNorm;
    config.gated = false;
    config.qkv_bias = config.attention_output_bias = config.feed_forward_bias = true;
    config.learned_positions = 64;
    config.tied = false;
  }
  return config;
}

int64_t Bytes(const TransformerTrace& trace) {
  int64_t bytes = static_cast<int64_t>(trace.last.bytes());
  for (const TransformerTrace::Layer& layer : trace.layers) {
    for (const Tensor* tensor :
         {&layer.x, &layer.qkv, &layer.q_plain, &layer.k_plain, &layer.attended, &layer.log_sum,
          &layer.attention_out, &layer.middle, &layer.up, &layer.feed_forward_out}) {
      if (tensor->defined()) bytes += static_cast<int64_t>(tensor->bytes());
    }
  }
  return bytes;
}

class TransformerMemoryOf : public testing::TestWithParam<std::tuple<int, Precision>> {
 protected:
  const ModelConfig config_ = Variant(std::get<0>(GetParam()));
  const Precision precision_ = std::get<1>(GetParam());
  const TransformerMemory memory_{config_, precision_};
};
INSTANTIATE_TEST_SUITE_P(Variants, TransformerMemoryOf,
                         testing::Combine(testing::Range(0, 3),
                                          testing::Values(Precision::kFloat32,
                                                          Precision::kBFloat16)));

TEST_P(TransformerMemoryOf, CountsTheTraceOfAPass) {
  const auto model = MakeTiny(config_, precision_);
  std::vector<int32_t> ids(21, 3), positions(21);
  for (int32_t i = 0; i < 21; ++i) positions[i] = i;
  const std::vector<kernels::AttentionSpan> spans = {{.first_row = 0, .rows = 21, .past = 0}};
  TransformerTrace trace;
  model->Forward({}, {.ids = ids, .positions = positions, .spans = spans}, &trace);
  EXPECT_EQ(memory_.Trace(21, false), Bytes(trace));
  TransformerTrace inputs;
  inputs.recompute = true;
  model->Forward({}, {.ids = ids, .positions = positions, .spans = spans}, &inputs);
  const int64_t layer = memory_.Trace(21, true) - Bytes(inputs);  // one, made again on the way back
  EXPECT_EQ(config_.layers * layer, Bytes(trace) - Bytes(inputs));
}

TEST_P(TransformerMemoryOf, CountsWeightsAdaptersAndPages) {
  const auto model = MakeTiny(config_, precision_);
  const auto elements = [&] {
    int64_t sum = 0;
    for (const NamedParameter& parameter : model->Parameters()) {
      sum += parameter.tensor->stored_elements();
    }
    return sum;
  };
  EXPECT_EQ(memory_.weights(), elements());
  EXPECT_EQ(memory_.Cache(1), model->page_bytes());
  EXPECT_EQ(memory_.Cache(65), 2 * model->page_bytes());
  const std::vector<std::string> targets = {"q_proj", "down_proj"};
  Rng rng(1, Purpose::kInitialise, 1);
  model->AddAdapters(16, 1, targets, rng);
  EXPECT_EQ(memory_.AdapterWeights(16, targets), elements());
}

TEST(LoadedBytes, AreThoseInUseAfterLoading) {
  for (const char* name : {"llama_gqa_untied-q4_0.gguf", "qwen2-q8_0.gguf", "gpt2-f16.gguf"}) {
    const std::string path = ReferencePath(std::string("language/gguf/") + name);
    if (path.empty()) GTEST_SKIP() << "WEFT_REFERENCE is unset";
    const auto file = ModelFile::Open(path);
    for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
      for (const bool master : {false, true}) {
        const LoadOptions options{.precision = precision, .keep_master = master};
        const int64_t before = TensorAllocator().bytes_in_use;
        const auto model = LoadTransformer({}, *file, options);
        const auto taken = static_cast<double>(TensorAllocator().bytes_in_use - before);
        const auto planned = static_cast<double>(LoadedBytes(*file, options));
        EXPECT_GT(taken, 0.98 * planned) << name;
        EXPECT_LT(taken, 1.3 * planned) << name << ": blocks are up to a quarter too large";
      }
    }
  }
}

}  // namespace
}  // namespace weft
