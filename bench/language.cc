#include "bench/language.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/thread_pool.h"
#include "language/generator.h"
#include "language/language_head.h"
#include "language/language_model.h"
#include "language/model_name.h"
#include "nn/optimizer.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The architecture of GPT-2 124M.
ModelConfig Gpt2() {
  ModelConfig config;
  config.family = "gpt2";
  config.vocabulary = 50257 + 1;  // even: products in bf16 go by pairs
  config.hidden = 768;
  config.layers = 12;
  config.heads = config.kv_heads = 12;
  config.head_dimension = 64;
  config.intermediate = 3072;
  config.context = config.learned_positions = 1024;
  config.norm = NormKind::kLayerNorm;
  config.activation = FeedForwardActivation::kGeluTanh;
  config.gated = false;
  config.qkv_bias = config.attention_output_bias = config.feed_forward_bias = true;
  config.tied = true;
  return config;
}

Precision PrecisionOf(const std::string& name) {
  return name.find("f32") < name.find("bf16") ? Precision::kFloat32 : Precision::kBFloat16;
}

// Sequences of made-up tokens.
struct Sequences {
  std::vector<int32_t> ids, positions, targets;
  std::vector<kernels::AttentionSpan> spans;

  Sequences(int64_t count, int64_t length, int64_t vocabulary) {
    for (int64_t b = 0; b < count; ++b) {
      spans.push_back({std::ssize(ids), length, 0, nullptr});
      for (int64_t t = 0; t < length; ++t) {
        ids.push_back(static_cast<int32_t>((b * 131 + t * 17) % vocabulary));
        positions.push_back(static_cast<int32_t>(t));
        targets.push_back(static_cast<int32_t>((b * 31 + t * 7) % vocabulary));
      }
    }
  }
  TokenBatch tokens() const { return {.ids = ids, .positions = positions, .spans = spans}; }
};

// A step of training, forward, loss, backward, AdamW: of all weights or, with a rank, of LoRA
// adapters beside all matrices of attention and feed-forward.
class Trainer {
 public:
  Trainer(const Context& context, std::unique_ptr<Transformer> model, int64_t rank = 0)
      : context_(context), model_(std::move(model)) {
    if (rank > 0) {
      const std::vector<std::string> targets = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                                "gate_proj", "up_proj", "down_proj"};
      Rng rng(1, Purpose::kInitialise);
      model_->AddAdapters(rank, 2.0f, targets, rng);
    } else {
      model_->EnableGradient();
    }
    model_->Refresh(context);
    optimizer_ = std::make_unique<Optimizer>(OptimizerConfig(), model_->Parameters());
  }

  double TokensPerSecond(const Sequences& batch) {
    const auto start = Clock::now();
    const Tensor rows = model_->Forward(context_, batch.tokens(), &trace_);
    const auto tokens = static_cast<float>(batch.ids.size());
    Tensor d_final;
    ScoreTokens(
        context_, *model_, rows, batch.targets, {},
        [&](const HeadBlock& block) { std::ranges::fill(block.d_log_probability, -1 / tokens); },
        &d_final);
    model_->Backward(context_, batch.tokens(), trace_, d_final);
    optimizer_->Step(model_->Gradients(), 1e-6, 1.0);
    model_->ClearGradients();
    model_->Refresh(context_);
    return tokens / Since(start);
  }

 private:
  const Context& context_;
  std::unique_ptr<Transformer> model_;
  std::unique_ptr<Optimizer> optimizer_;
  TransformerTrace trace_;
};

}  // namespace

struct LanguageBench::Impl {
  ThreadPool pool;
  Context context;
  // One model at a time, in one form.
  std::string form;
  std::unique_ptr<Transformer> model;
  std::unique_ptr<Trainer> trainer;

  explicit Impl(int threads) : pool(threads), context{.pool = &pool} {}

  std::unique_ptr<Transformer> Load(const LoadOptions& options) {
    const auto file = ModelFile::Open(ResolveModel("smollm2-135m-instruct"));
    return LoadTransformer(context, *file, options);
  }
  void Use(const std::string& wanted) {
    if (form == wanted) return;
    model.reset();
    trainer.reset();
    form = wanted;
    if (wanted == "q4_1" || wanted == "q4_1_int8") {
      model = Load({.round_rows = wanted == "q4_1_int8"});
    } else if (wanted == "bf16" || wanted == "f32") {
      model = Load({.precision = PrecisionOf(wanted), .keep_quantised = false});
    } else if (wanted.starts_with("lora_") || wanted.starts_with("finetune_")) {
      const int64_t rank = wanted.starts_with("lora_") ? 16 : 0;
      trainer = std::make_unique<Trainer>(context,
                                          Load({.precision = PrecisionOf(wanted),
                                                .keep_quantised = false,
                                                .keep_master = rank == 0}),
                                          rank);
    } else {
      auto gpt2 = std::make_unique<Transformer>(Gpt2(), PrecisionOf(wanted));
      uint64_t state = 1;
      for (const Transformer::WeightSlot& slot : gpt2->Weights()) {
        std::vector<float> values(slot.rows * slot.columns);
        for (float& value : values) {
          state = state * 6364136223846793005ULL + 1442695040888963407ULL;
          value = (static_cast<float>(state >> 40) / 8388608.0f - 1) * 0.03f;
        }
        slot.set(0, values);
      }
      trainer = std::make_unique<Trainer>(context, std::move(gpt2));
    }
  }

  // Over 48 tokens that follow a prompt of 16, reading it not counted.
  double Decode(int64_t rows) {
    constexpr int64_t kTokens = 48;
    Generator generator(context, *model, {.max_rows = rows, .max_prompt_tokens = 16 * rows});
    for (int64_t row = 0; row < rows; ++row) {
      GenerationRequest request;
      for (int32_t i = 0; i < 16; ++i) {
        request.prompt.push_back(static_cast<int32_t>(100 + 37 * i + 11 * row));
      }
      request.max_new_tokens = kTokens + 1;
      request.sampling.temperature = 0;
      generator.Add(std::move(request));
    }
    const auto ignore = [](const GenerationEvent&) {};
    generator.Step(ignore);
    const auto start = Clock::now();
    while (!generator.idle()) generator.Step(ignore);
    return static_cast<double>(rows * kTokens) / Since(start);
  }

  double Prefill() {
    const Sequences batch(1, 512, 49152);
    const auto start = Clock::now();
    const Tensor rows = model->Forward(context, batch.tokens(), nullptr);
    Logits(context, *model, rows.Slice(511, 512));
    return 512 / Since(start);
  }

  // From nothing to the first token after a prompt of 32.
  double FirstToken() {
    form.clear();
    model.reset();
    trainer.reset();
    const auto start = Clock::now();
    const auto fresh = Load({});
    GenerationRequest request;
    request.prompt.assign(32, 1000);
    request.max_new_tokens = 1;
    request.sampling.temperature = 0;
    Generate(context, *fresh, {&request, 1});
    return Since(start);
  }
};

LanguageBench::LanguageBench(int threads) : impl_(std::make_unique<Impl>(threads)) {}
LanguageBench::~LanguageBench() = default;

double LanguageBench::Measure(const std::string& name) {
  Impl& impl = *impl_;
  if (name == "first_token") return impl.FirstToken();
  // KIND_FORM_SIZE
  const size_t begin = name.find('_'), end = name.rfind('_');
  const std::string kind = name.substr(0, begin), form = name.substr(begin + 1, end - begin - 1);
  if (kind == "decode" || kind == "prefill") {
    impl.Use(form);
    return kind == "prefill" ? impl.Prefill() : impl.Decode(std::stoll(name.substr(end + 1)));
  }
  impl.Use(kind + "_" + form);
  return impl.trainer->TokensPerSecond(kind == "gpt2" ? Sequences(4, 64, 50257)
                                                      : Sequences(4, 256, 49152));
}

}  // namespace weft
