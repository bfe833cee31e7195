// Continuing prompts, many at a time: each step takes pieces of prompts that are not yet read and
// one token of every answer in progress through the model together. What is said to a prompt
// depends on the prompt, its options and its seed alone, never on what else is in the batch.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "language/key_value_cache.h"
#include "language/sampling.h"
#include "language/transformer.h"

namespace weft {

struct GenerationRequest {
  std::vector<int32_t> prompt;  // at least one token
  int64_t samples = 1;          // answers to it
  int64_t max_new_tokens = 256;
  std::vector<int32_t> stop_ids;  // an answer ends with the first of them (which belongs to it)
  SamplingOptions sampling;
  uint64_t seed = 0;
  uint64_t first_sample = 0;  // sample i draws from the stream first_sample + i of the seed
  int64_t drawn = 0;          // tokens that were drawn from these streams before
  int64_t likeliest = 0;      // so many tokens are reported beside each that is drawn
};

// Tokens that two sequences begin with alike, and how many are worth reading once for both.
int64_t SharedBeginning(std::span<const int32_t> a, std::span<const int32_t> b);
constexpr int64_t kWorthReadingOnce = 16;

enum class FinishReason : uint8_t { kNone, kStop, kLength, kCancelled };
const char* Name(FinishReason reason);

struct GenerationEvent {
  int64_t request;  // as Add returned
  int64_t sample;   // in [0, samples)
  int32_t id;       // -1 when cancelled
  float log_probability;
  FinishReason finish;  // kNone: the answer goes on
  // Of the distribution that `id` was drawn from, in falling order; until the function returns.
  std::span<const SampledToken> likeliest = {};
};

class Generator {
 public:
  using EventFunction = std::function<void(const GenerationEvent&)>;
  struct Options {
    int64_t max_rows = 64;            // answers in progress
    int64_t max_prompt_tokens = 512;  // read in a step
    // Keys and values of so many tokens of ended answers and their prompts are kept, the latest
    // used. A prompt that begins as one of them, as a conversation's next turn does, reads the rest
    // alone; what is said has the same bits. 0: none.
    int64_t kept_tokens = 0;
  };
  // The model and the context must outlive this.
  Generator(const Context& context, const Transformer& model, const Options& options);
  Generator(const Context& context, const Transformer& model)
      : Generator(context, model, Options()) {}

  // Throws Error(kInvalidArgument): an empty prompt, ids outside the vocabulary, a prompt that with
  // its answer would not fit the model's context (both lengths are named), bad options.
  int64_t Add(GenerationRequest request);
  // Reads once what all requests that wait begin with, if it is worth it: for batches that share a
  // system message or worked examples. What is said has the same bits.
  void ReadCommonBeginning();
  // Ends what is left of a request; the next step reports it.
  void Cancel(int64_t request);
  // The same for an answer of which a token was reported.
  void Cancel(int64_t request, int64_t sample);
  bool idle() const { return waiting_.empty() && running_.empty(); }
  // One pass through the model; events in the order of requests and samples.
  void Step(const EventFunction& event);

  int64_t cache_bytes() const { return cache_.bytes(); }
  // Prompt tokens that did not have to be read, over all requests.
  int64_t reused_tokens() const { return reused_tokens_; }

 private:
  struct Prompt {  // being read, or waiting for it
    int64_t number;
    GenerationRequest request;
    KeyValueCache::Sequence sequence;
    bool cancelled = false;
  };
  struct Answer {
    int64_t number, sample;
    std::shared_ptr<const GenerationRequest> request;
    KeyValueCache::Sequence sequence;
    std::vector<int32_t> ids;
    bool cancelled = false;
  };

  struct Kept {
    std::vector<int32_t> ids;  // of the filled positions
    KeyValueCache::Sequence sequence;
  };

  struct Drawn {
    SampledToken token;
    std::vector<SampledToken> likeliest;
  };

  // The next token of an answer; logits [V] are used up.
  Drawn Draw(const Answer& answer, std::span<float> logits) const;
  // Keeps the keys of an answer that has ended, as far as options allow.
  void Keep(Answer answer);
  // A prompt that is not read yet goes on from what is kept.
  void Reuse(Prompt& prompt);
  // Appends and reports it; whether the answer has ended.
  bool Continue(Answer& answer, const Drawn& drawn, const EventFunction& event);

  const Context& context_;
  const Transformer& model_;
  Options options_;
  KeyValueCache cache_;
  std::vector<Prompt> waiting_;
  std::vector<Answer> running_;
  std::vector<Kept> kept_;  // the latest used last
  int64_t next_ = 0, reused_tokens_ = 0;
};

// All answers to all requests, in order: what a batch job wants.
struct GeneratedAnswer {
  std::vector<int32_t> ids;
  std::vector<float> log_probabilities;
  FinishReason finish = FinishReason::kNone;
};
std::vector<std::vector<GeneratedAnswer>> Generate(const Context& context, const Transformer& model,
                                                   std::span<const GenerationRequest> requests,
                                                   const Generator::Options& options = {});

}  // namespace weft
