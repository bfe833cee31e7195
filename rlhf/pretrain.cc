// A language model from scratch: a small transformer that the config describes, with weights drawn
// as GPT-2's (Radford et al. 2019), learns the next token of text files. Or an existing model goes
// on learning from them.
//
//   data ==batch==> learner
#include <algorithm>
#include <cmath>
#include <mutex>

#include "language/hf_config.h"
#include "language/model_family.h"
#include "language/model_name.h"
#include "rlhf/next_token.h"
#include "rlhf/text_data.h"

namespace weft {
namespace {

struct Architecture : Config {
  std::string family = "llama";
  int64_t layers = 4, heads = 4, kv_heads = 0, width = 128, intermediate = 0, context = 0;

  void Fields(FieldVisitor& v) override {
    v.Choice("family", family, {"llama", "gpt2"},
             "llama: RMS norms, rotary positions, gated; gpt2");
    v.Field("layers", layers, "blocks", Range::Between(1, 1024));
    v.Field("heads", heads, "of attention", Range::Between(1, 1024));
    v.Field("kv_heads", kv_heads, "llama: heads of keys and values; 0: as many",
            Range::Between(0, 1024));
    v.Field("width", width, "of the residual stream", Range::Between(8, 1 << 16));
    v.Field("intermediate", intermediate, "of the feed-forward part; 0: 4 x width, gated 8/3",
            Range::AtLeast(0));
    v.Field("context", context, "positions; 0: the window", Range::AtLeast(0));
  }
  void Check() const override {
    if (width % heads != 0) throw ConfigProblem("heads", "must divide the width");
    if (kv_heads > 0 && heads % kv_heads != 0) {
      throw ConfigProblem("kv_heads", "must divide the heads");
    }
  }

  ModelDescription Describe(int64_t vocabulary, int64_t window) const {
    JsonValue json = JsonValue::MakeObject({{"model_type", JsonValue(family)},
                                            {"vocab_size", JsonValue(vocabulary)},
                                            {"tie_word_embeddings", JsonValue(true)}});
    const auto set = [&](const char* llama, const char* gpt2, int64_t value) {
      json.Set(family == "llama" ? llama : gpt2, JsonValue(value));
    };
    set("hidden_size", "n_embd", width);
    set("num_hidden_layers", "n_layer", layers);
    set("num_attention_heads", "n_head", heads);
    set("max_position_embeddings", "n_positions", context > 0 ? context : window);
    const int64_t gated = (width * 8 / 3 + 31) / 32 * 32;
    set("intermediate_size", "n_inner",
        intermediate > 0    ? intermediate
        : family == "llama" ? gated
                            : 4 * width);
    if (family == "llama") {
      json.Set("num_key_value_heads", JsonValue(kv_heads > 0 ? kv_heads : heads));
    }
    return ReadHfConfig(json, "architecture");
  }
};

class Pretrain final : public OfflineTraining {
 public:
  TextDataConfig text;
  Architecture architecture;

  Pretrain() {
    total_steps = 2000;
    learning_rate = 1e-3;
    final_learning_rate = 1e-4;
    schedule = "cosine";
    warmup_steps = 100;
    batch = 12;
    optimizer.name = "adamw";
    optimizer.beta2 = 0.99;
    optimizer.weight_decay = 0.1;
  }
  void Fields(FieldVisitor& v) override {
    OfflineTraining::Fields(v);
    v.Section("architecture", architecture, "of the model, where none is named to go on from");
  }
  void DataFields(FieldVisitor& v) override { v.Section("data", text, "what is learnt from"); }
  void Check() const override {}
  std::string Subject() const override {
    return text.files.empty() ? "text" : text.files[0].substr(text.files[0].find_last_of('/') + 1);
  }
  std::vector<Figure> Judge(const Context& context, Transformer& judged,
                            const Examples& examples) const override {
    return JudgeNextToken(context, judged, examples, micro_batch_tokens);
  }
  int64_t LargestMicroBatch() const override {  // a window of n + 1 tokens has n rows
    return std::clamp<int64_t>(micro_batch_tokens / (text.window + 1), 1, batch) * text.window;
  }
  Examples HeldOut() const override {
    return TextData(text, Tokenizer::FromJson(TokenizerFiles().front().second, "tokenizer.json"))
        .HeldOut();
  }

 protected:
  std::unique_ptr<OfflineLearner> MakeLearner(const Replica& replica) const override {
    return std::make_unique<NextTokenLearner>(*this, replica);
  }
  ExampleOptions ExamplesWanted() const override { return {}; }
  FragmentFactory MakeData() const override {
    return TextFragment({.data = text,
                         .tokenizer = TokenizerFiles(),
                         .seed = seed,
                         .batch = batch,
                         .total_steps = total_steps,
                         .evaluate_every = evaluate_every});
  }
  TextFiles TokenizerFiles() const override {
    if (!model.empty()) return OfflineTraining::TokenizerFiles();
    const std::lock_guard lock(mutex_);
    if (made_.empty()) made_ = MakeTokenizer(text);
    return made_;
  }
  ModelDescription Description() const override {
    if (!model.empty()) return OfflineTraining::Description();
    const Tokenizer tokenizer =
        Tokenizer::FromJson(TokenizerFiles().front().second, "tokenizer.json");
    const int64_t vocabulary = (tokenizer.size() + 31) / 32 * 32;  // products go by blocks
    ModelDescription description = architecture.Describe(vocabulary, text.window);
    const int32_t end = tokenizer.Find("<|endoftext|>");
    description.config.eos.clear();
    if (end >= 0) description.config.eos.push_back(end);
    description.config.bos = end;
    return description;
  }

  std::unique_ptr<Transformer> LoadStart(const Context& context,
                                         const LoadOptions& options) const override {
    if (!model.empty()) return OfflineTraining::LoadStart(context, options);
    const ModelConfig config = Description().config;
    CheckModelSizes(config, "architecture");
    auto made = std::make_unique<Transformer>(config, options.precision);
    const double residual = 0.02 / std::sqrt(2.0 * static_cast<double>(config.layers));
    uint64_t index = 1;
    for (const Transformer::WeightSlot& slot : made->Weights()) {
      std::vector<float> values(static_cast<size_t>(slot.rows * slot.columns));
      const bool matrix = slot.columns > 1;
      const bool onto_stream =
          slot.name.ends_with("o_proj.weight") || slot.name.ends_with("down_proj.weight");
      Rng rng(seed, Purpose::kInitialise, index++);
      for (float& value : values) {
        value = matrix ? static_cast<float>((onto_stream ? residual : 0.02) * rng.Normal())
                       : (slot.name.ends_with(".weight") ? 1.0f : 0.0f);
      }
      slot.set(0, values);
    }
    made->Refresh(context);
    return made;
  }

 private:
  mutable std::mutex mutex_;  // fragments are made on threads of their own
  mutable TextFiles made_;
};

WEFT_REGISTER_LANGUAGE_METHOD(Pretrain, "pretrain",
                              "the next token of text files: a small model from scratch, or an "
                              "existing one");

}  // namespace
}  // namespace weft
