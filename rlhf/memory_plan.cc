#include "rlhf/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/text.h"
#include "language/model_name.h"
#include "language/transformer_memory.h"
#include "rlhf/offline.h"
#include "rlhf/online.h"

namespace weft {
namespace {

constexpr int64_t kFloat = 4, kHalf = 2;
// The program, its libraries, tokenizers and data; measured with SmolLM2's vocabulary.
constexpr int64_t kProgram = int64_t{64} << 20;
// The allocator of tensors keeps blocks of sizes that are not asked for at the moment, up to a
// sixteenth of what is in use (tensor/storage.cc).
constexpr int64_t kKeptShare = 32;

using Parts = std::vector<MemoryPart>;

int64_t Sum(const Parts& parts) {
  return std::accumulate(parts.begin(), parts.end(), int64_t{0},
                         [](int64_t sum, const MemoryPart& part) { return sum + part.bytes; });
}

Parts Together(std::initializer_list<Parts> lists) {
  Parts all;
  for (const Parts& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// The tensors that an optimiser keeps for each parameter.
int64_t Moments(const OptimizerConfig& optimizer) {
  const int64_t momentum = optimizer.momentum > 0 ? 1 : 0;
  if (optimizer.name == "sgd") return momentum;
  return optimizer.name == "rmsprop" ? 1 + momentum : 2;
}

struct Sizes {
  const LanguageTraining& training;
  const TransformerMemory model;
  const bool bf16;

  explicit Sizes(const LanguageTraining& t)
      : training(t),
        model(t.Description().config, t.precision_in_use()),
        bf16(t.precision_in_use() == Precision::kBFloat16) {}

  int64_t trained() const {
    return training.lora.rank > 0 ? model.AdapterWeights(training.lora.rank, training.lora.targets)
                                  : model.weights();
  }
  // What products read beside the f32 weights.
  int64_t pairs() const { return bf16 ? model.matrices() * kHalf : 0; }

  // LanguageLearner, from its first step on.
  Parts Learner() const {
    Parts parts;
    if (training.lora.rank > 0) {
      parts = {{"frozen weights", start(false)},
               {"adapters", trained() * (kFloat + (bf16 ? kHalf : 0)), "lora.rank"}};
    } else {
      parts = {{"weights", model.weights() * kFloat}, {"weights in bf16", pairs()}};
    }
    const std::string keys = training.lora.rank > 0 ? "lora.rank" : "lora: {rank: 16}";
    parts.push_back({"gradients", trained() * kFloat, keys});
    parts.push_back({"moments", trained() * kFloat * Moments(training.optimizer), keys});
    if (training.ema.decay > 0) {
      parts.push_back({"mean of the weights", trained() * kFloat, "ema: {decay: 0}"});
    }
    return parts;
  }
  // Of a micro-batch that learns.
  Parts Step(int64_t tokens) const {
    return {
        {"activations of " + std::to_string(tokens) + " tokens",
         model.Trace(tokens, training.recompute), "micro_batch_tokens, recompute: true"},
        {"work space", model.Layer(tokens, true) + model.Head(tokens, true), "micro_batch_tokens"}};
  }
  // LanguageTraining::WriteModel, of weights that somebody else holds: a matrix's rows in f32 and
  // as they are written, and the written folder, mapped to make a .gguf of it.
  Parts Files() const {
    int64_t bytes = model.largest() * (kFloat + kHalf);
    if (training.gguf != "none") bytes += model.weights() * kHalf;
    if (training.lora.rank > 0) bytes += model.weights() * kFloat;
    return {{"files of the model", bytes, "gguf: none"}};
  }
  // LanguageTraining::Trained beside the policy's tensors, which it takes over.
  Parts Trained() const {
    if (training.lora.rank == 0) {
      return {{"weights", model.weights() * kFloat}, {"trained model", pairs()}};
    }
    return {{"adapters", trained() * kFloat},
            {"trained model", model.weights() * kFloat + pairs()}};
  }
  Parts Pass(int64_t tokens) const {
    return {{"work space", model.Layer(tokens, false) + model.Head(tokens, false),
             "micro_batch_tokens"}};
  }
  int64_t start(bool quantised) const {
    if (training.model.empty()) return model.weights() * kFloat;
    return LoadedBytes(*ModelFile::Open(ResolveModel(training.model)),
                       {.precision = training.precision_in_use(), .keep_quantised = quantised});
  }
};

std::vector<MemoryPhase> Phases(const OfflineTraining& method, bool reference) {
  const Sizes sizes(method);
  const int64_t tokens = method.LargestMicroBatch();
  Parts held = sizes.Learner();
  if (reference && !method.shares_base()) {
    held.push_back({"reference model", sizes.start(true)});
  }
  std::vector<MemoryPhase> phases = {{"learning", Together({held, sizes.Step(tokens)})}};
  if (method.evaluate_every > 0) {
    phases.push_back({"writing the best model", Together({held, sizes.Files()})});
  }
  phases.push_back(
      {"judging the result", Together({sizes.Trained(),
                                       {{"model of the beginning", sizes.start(false)}},
                                       sizes.Pass(method.micro_batch_tokens)})});
  phases.push_back(
      {"writing the result", Together({{{"weights", sizes.trained() * kFloat}}, sizes.Files()})});
  return phases;
}

// Keys and values of `prompts` prompts of p tokens with `group` answers of a tokens to each, which
// share the full pages of their prompt.
int64_t CacheOf(const TransformerMemory& model, int64_t prompts, int64_t group, int64_t p,
                int64_t a) {
  const int64_t shared = p / kernels::kPagePositions * kernels::kPagePositions;
  return prompts * (group * model.Cache(p + a) - (group - 1) * model.Cache(shared));
}

std::vector<MemoryPhase> Phases(const OnlineTraining& method, bool reference) {
  constexpr int64_t kLooks = 256;  // prompts whose lengths are read
  const Sizes sizes(method);
  const TransformerMemory& model = sizes.model;
  PromptStream stream(method.prompts_from, ResolveModel(method.model), method.seed);
  int64_t prompt = 0, held_out = 0;
  for (const Prompt& p : stream.Next(std::min(kLooks, method.prompts * method.total_steps))) {
    prompt = std::max(prompt, std::ssize(p.ids));
  }
  for (const Prompt& p : stream.held_out()) held_out = std::max(held_out, std::ssize(p.ids));
  const int64_t answer = method.AnswerTokens();
  const int64_t each = prompt + method.group * answer;  // tokens of a prompt with its answers
  const int64_t tokens = std::max(
      each, std::min(method.micro_batch_tokens, method.prompts / method.minibatches * each));

  Parts held = sizes.Learner();
  // In lockstep the generator reads the learner's own weights; what is behind them is a copy.
  held.push_back({"generator's weights",
                  method.max_lag * (sizes.bf16 ? sizes.pairs() : model.weights() * kFloat),
                  "max_lag: 0"});
  if (reference && !method.shares_base()) {
    held.push_back({"reference model", sizes.start(true), "beta: 0"});
  }
  const RewardSetting setting{.policy = ResolveModel(method.model),
                              .precision = method.precision_in_use()};
  const int64_t rewards = method.rewards.ModelBytes(setting);
  if (rewards > 0) held.push_back({"reward models", rewards});

  constexpr int64_t kReadTogether = 4096;  // prompt tokens of a step of the generator
  const auto answering = [&](int64_t prompts, int64_t group, int64_t length) {
    const int64_t logits = prompts * group * model.config().vocabulary * kFloat;
    return Parts{
        {"keys and values", CacheOf(model, prompts, group, length, answer),
         "prompts, group, max_new_tokens"},
        {"work space", model.Layer(std::min(kReadTogether, prompts * length), false) + logits,
         "prompts, group"}};
  };
  std::vector<MemoryPhase> phases = {
      {"answering", Together({held, answering(method.prompts, method.group, prompt)})},
      {"learning", Together({held, sizes.Step(tokens)})}};
  if (method.evaluate_every > 0) {
    phases.push_back({"writing the best model", Together({held, sizes.Files()})});
  }
  if (method.evaluation_samples > 0) {
    constexpr int64_t kRows = 128;
    const int64_t prompts =
        std::min<int64_t>(kRows / method.evaluation_samples, std::ssize(stream.held_out()));
    phases.push_back(
        {"judging the result",
         Together({sizes.Trained(),
                   {{"model of the beginning", sizes.start(true)}, {"reward models", rewards}},
                   answering(prompts, method.evaluation_samples, held_out)})});
  }
  phases.push_back(
      {"writing the result", Together({{{"weights", sizes.trained() * kFloat}}, sizes.Files()})});
  return phases;
}

}  // namespace

int64_t MemoryPhase::bytes() const {
  return Sum(parts);
}

MemoryPlan::MemoryPlan(std::vector<MemoryPhase> phases) : phases_(std::move(phases)) {
  for (size_t i = 0; i < phases_.size(); ++i) {
    MemoryPhase& phase = phases_[i];
    phase.parts.push_back({"kept for reuse", phase.bytes() / kKeptShare});
    phase.parts.push_back({"program", kProgram});
    if (phase.bytes() > phases_[largest_].bytes()) largest_ = i;
  }
}

int64_t MemoryPlan::peak_bytes() const {
  return largest().bytes();
}

std::string MemoryPlan::ToText() const {
  std::vector<std::string> parts;
  for (const MemoryPart& part : largest().parts) {
    if (part.bytes > 0) {
      parts.push_back(part.name + " " + HumanBytes(static_cast<double>(part.bytes)));
    }
  }
  return HumanBytes(static_cast<double>(peak_bytes())) + " at most, while " + largest().name +
         ": " + Join(parts, ", ");
}

std::string MemoryPlan::Advice() const {
  Parts parts = largest().parts;
  std::ranges::stable_sort(parts, std::greater<>(), &MemoryPart::bytes);
  std::vector<std::string> advice;
  for (const MemoryPart& part : parts) {
    if (part.keys.empty() || part.bytes < peak_bytes() / 50) continue;
    advice.push_back(part.keys + " (" + part.name + ", " +
                     HumanBytes(static_cast<double>(part.bytes)) + ")");
  }
  return Join(advice, "; ");
}

MemoryPlan PlanMemory(const LanguageMethod& method, const FragmentGraph& graph) {
  const bool reference = graph.NodeIndex("reference") >= 0;
  if (const auto* offline = dynamic_cast<const OfflineTraining*>(&method)) {
    return MemoryPlan(Phases(*offline, reference));
  }
  const auto* online = dynamic_cast<const OnlineTraining*>(&method);
  WEFT_CHECK(online != nullptr) << "a method that is neither from data nor from answers";
  return MemoryPlan(Phases(*online, reference));
}

}  // namespace weft
