#include "language/generator.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>

#include "language/language_head.h"

namespace weft {

int64_t SharedBeginning(std::span<const int32_t> a, std::span<const int32_t> b) {
  return std::ranges::mismatch(a, b).in1 - a.begin();
}

const char* Name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "none";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

Generator::Generator(const Context& context, const Transformer& model, const Options& options)
    : context_(context), model_(model), options_(options), cache_(model.page_bytes()) {}

int64_t Generator::Add(GenerationRequest request) {
  request.sampling.Check();
  const ModelConfig& config = model_.config();
  const int64_t length = std::ssize(request.prompt);
  if (length == 0) throw Error(ErrorCode::kInvalidArgument, "a prompt needs at least one token");
  WEFT_CHECK(request.samples > 0 && request.max_new_tokens > 0)
      << "samples " << request.samples << ", max_new_tokens " << request.max_new_tokens;
  if (length + request.max_new_tokens > config.context) {
    throw Error(ErrorCode::kInvalidArgument,
                "a prompt of " + std::to_string(length) + " tokens and an answer of up to " +
                    std::to_string(request.max_new_tokens) + " do not fit the model's context of " +
                    std::to_string(config.context) +
                    ": shorten the prompt or lower max_new_tokens");
  }
  for (const int32_t id : request.prompt) {
    if (id < 0 || id >= config.vocabulary) {
      throw Error(ErrorCode::kInvalidArgument, "the prompt has the id " + std::to_string(id) +
                                                   ", the vocabulary has " +
                                                   std::to_string(config.vocabulary));
    }
  }
  waiting_.push_back({.number = next_, .request = std::move(request), .sequence = {}});
  return next_++;
}

void Generator::ReadCommonBeginning() {
  if (waiting_.size() < 2) return;
  std::span<const int32_t> common = waiting_[0].request.prompt;
  for (const Prompt& prompt : waiting_) {
    common = common.first(static_cast<size_t>(SharedBeginning(common, prompt.request.prompt)));
  }
  if (std::ssize(common) < kWorthReadingOnce) return;
  Kept kept{.ids = {common.begin(), common.end()}, .sequence = {}};
  while (kept.sequence.length() < std::ssize(common)) {
    const int64_t past = kept.sequence.length();
    const int64_t rows = std::min(options_.max_prompt_tokens, std::ssize(common) - past);
    std::vector<int32_t> positions(static_cast<size_t>(rows));
    std::iota(positions.begin(), positions.end(), static_cast<int32_t>(past));
    const kernels::AttentionSpan span{
        .first_row = 0, .rows = rows, .past = past, .pages = kept.sequence.Extend(cache_, rows)};
    model_.Forward(context_,
                   {.ids = common.subspan(static_cast<size_t>(past), static_cast<size_t>(rows)),
                    .positions = positions,
                    .spans = {&span, 1}},
                   nullptr);
  }
  kept_.push_back(std::move(kept));
}

void Generator::Cancel(int64_t request) {
  for (Prompt& prompt : waiting_) prompt.cancelled |= prompt.number == request;
  for (Answer& answer : running_) answer.cancelled |= answer.number == request;
}

void Generator::Cancel(int64_t request, int64_t sample) {
  for (Answer& answer : running_) {
    answer.cancelled |= answer.number == request && answer.sample == sample;
  }
}

Generator::Drawn Generator::Draw(const Answer& answer, std::span<float> logits) const {
  const GenerationRequest& request = *answer.request;
  if (request.sampling.penalised()) {
    std::vector<int32_t> all = request.prompt;
    all.insert(all.end(), answer.ids.begin(), answer.ids.end());
    ApplyPenalties(request.sampling, all, answer.ids, logits);
  }
  const Rng rng(request.seed, Purpose::kSampling,
                request.first_sample + static_cast<uint64_t>(answer.sample));
  Rng::State state = rng.state();
  state.position = 2 * (static_cast<uint64_t>(request.drawn) + answer.ids.size());
  const Context context{.isa = context_.isa};
  auto likeliest = Likeliest(context, request.sampling, logits, request.likeliest);
  return {Sample(context, request.sampling, logits, Rng(state).Uniform()), std::move(likeliest)};
}

bool Generator::Continue(Answer& answer, const Drawn& drawn, const EventFunction& event) {
  const GenerationRequest& request = *answer.request;
  const SampledToken& token = drawn.token;
  answer.ids.push_back(token.id);
  FinishReason finish = FinishReason::kNone;
  if (std::ssize(answer.ids) >= request.max_new_tokens) finish = FinishReason::kLength;
  if (std::find(request.stop_ids.begin(), request.stop_ids.end(), token.id) !=
      request.stop_ids.end()) {
    finish = FinishReason::kStop;
  }
  event({.request = answer.number,
         .sample = answer.sample,
         .id = token.id,
         .log_probability = token.log_probability,
         .finish = finish,
         .likeliest = drawn.likeliest});
  return finish != FinishReason::kNone;
}

void Generator::Keep(Answer answer) {
  // The last token was drawn and not read, and an answer may end before any was.
  const int64_t length = answer.sequence.length();
  if (length == 0 || length > options_.kept_tokens) return;
  Kept kept{.ids = answer.request->prompt, .sequence = std::move(answer.sequence)};
  kept.ids.insert(kept.ids.end(), answer.ids.begin(), answer.ids.end());
  kept.ids.resize(static_cast<size_t>(length));
  // What another one begins with is there twice.
  std::erase_if(kept_, [&](const Kept& other) {
    return other.ids.size() <= kept.ids.size() &&
           std::equal(other.ids.begin(), other.ids.end(), kept.ids.begin());
  });
  kept_.push_back(std::move(kept));
  int64_t total = 0;
  for (const Kept& one : kept_) total += std::ssize(one.ids);
  while (total > options_.kept_tokens) {
    total -= std::ssize(kept_.front().ids);
    kept_.erase(kept_.begin());
  }
}

void Generator::Reuse(Prompt& prompt) {
  const std::vector<int32_t>& ids = prompt.request.prompt;
  size_t longest = 0;
  auto best = kept_.end();
  for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
    const auto common = static_cast<size_t>(SharedBeginning(kept->ids, ids));
    if (common >= longest) {
      longest = common;
      best = kept;
    }
  }
  longest = std::min(longest, ids.size() - 1);  // the last token's row gives the answer's first
  if (best == kept_.end() || longest == 0) return;
  prompt.sequence = best->sequence.Fork(cache_, static_cast<int64_t>(longest));
  reused_tokens_ += static_cast<int64_t>(longest);
  std::rotate(best, best + 1, kept_.end());
}

void Generator::Step(const EventFunction& event) {
  const auto cancelled = [&](int64_t number, int64_t sample) {
    event({.request = number,
           .sample = sample,
           .id = -1,
           .log_probability = 0,
           .finish = FinishReason::kCancelled});
  };
  for (const Prompt& prompt : waiting_) {
    for (int64_t i = 0; prompt.cancelled && i < prompt.request.samples; ++i) {
      cancelled(prompt.number, i);
    }
  }
  std::erase_if(waiting_, [](const Prompt& prompt) { return prompt.cancelled; });
  for (Answer& answer : running_) {
    if (!answer.cancelled) continue;
    cancelled(answer.number, answer.sample);
    Keep(std::move(answer));
  }
  std::erase_if(running_, [](const Answer& answer) { return answer.cancelled; });

  std::vector<int32_t> ids, positions, last_rows;  // last_rows: whose logits are wanted
  std::vector<kernels::AttentionSpan> spans;
  const auto add = [&](KeyValueCache::Sequence& sequence, std::span<const int32_t> tokens) {
    const int64_t past = sequence.length();
    spans.push_back({.first_row = std::ssize(ids),
                     .rows = std::ssize(tokens),
                     .past = past,
                     .pages = sequence.Extend(cache_, std::ssize(tokens))});
    for (int64_t i = 0; i < std::ssize(tokens); ++i) {
      ids.push_back(tokens[i]);
      positions.push_back(static_cast<int32_t>(past + i));
    }
  };
  for (Answer& answer : running_) {
    add(answer.sequence, std::span(answer.ids).last(1));
    last_rows.push_back(static_cast<int32_t>(ids.size()) - 1);
  }
  const int64_t decoding = std::ssize(running_);
  int64_t rows = decoding, budget = options_.max_prompt_tokens;
  size_t read = 0;  // prompts that end in this step
  for (Prompt& prompt : waiting_) {
    // A request with more samples than there are rows runs alone.
    if (budget == 0 || (rows > 0 && rows + prompt.request.samples > options_.max_rows)) break;
    if (prompt.sequence.length() == 0) Reuse(prompt);
    const auto left = std::span<const int32_t>(prompt.request.prompt)
                          .subspan(static_cast<size_t>(prompt.sequence.length()));
    const int64_t count = std::min(budget, std::ssize(left));
    add(prompt.sequence, left.first(static_cast<size_t>(count)));
    budget -= count;
    if (count < std::ssize(left)) break;
    last_rows.push_back(static_cast<int32_t>(ids.size()) - 1);
    rows += prompt.request.samples;
    ++read;
  }
  if (ids.empty()) return;

  const Tensor final_rows =
      model_.Forward(context_, {.ids = ids, .positions = positions, .spans = spans}, nullptr);
  if (last_rows.empty()) return;
  const int64_t hidden = model_.config().hidden, count = std::ssize(last_rows);
  Tensor wanted = Operand(model_.precision(), count, hidden);
  const size_t bytes = wanted.bytes() / static_cast<size_t>(count);
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(wanted.raw() + i * bytes, final_rows.raw() + last_rows[i] * bytes, bytes);
  }
  Tensor logits = Logits(context_, model_, wanted);
  const int64_t vocabulary = logits.dim(1);

  // Answers that begin join those in progress; their first tokens come from the same logits.
  std::vector<int64_t> row_of;
  for (int64_t i = 0; i < decoding; ++i) row_of.push_back(i);
  for (size_t i = 0; i < read; ++i) {
    Prompt& prompt = waiting_[i];
    const auto request = std::make_shared<const GenerationRequest>(std::move(prompt.request));
    for (int64_t sample = 0; sample < request->samples; ++sample) {
      const bool last = sample + 1 == request->samples;
      running_.push_back(
          {.number = prompt.number,
           .sample = sample,
           .request = request,
           .sequence = last ? std::move(prompt.sequence) : prompt.sequence.Fork(cache_),
           .ids = {}});
      row_of.push_back(decoding + static_cast<int64_t>(i));
    }
  }
  std::vector<Drawn> tokens(running_.size());
  auto draw = [&](int64_t begin, int64_t end) {
    std::vector<float> row(static_cast<size_t>(vocabulary));  // used up by a draw
    for (int64_t i = begin; i < end; ++i) {
      const float* const from = logits.data<float>().data() + row_of[i] * vocabulary;
      std::copy(from, from + vocabulary, row.begin());
      tokens[i] = Draw(running_[i], row);
    }
  };
  if (context_.pool != nullptr && running_.size() > 1) {
    context_.pool->ParallelForDynamic(std::ssize(running_), 1, draw);
  } else {
    draw(0, std::ssize(running_));
  }
  std::vector<Answer> next;
  for (size_t i = 0; i < running_.size(); ++i) {
    if (!Continue(running_[i], tokens[i], event)) {
      next.push_back(std::move(running_[i]));
    } else {
      Keep(std::move(running_[i]));
    }
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(read));
  running_ = std::move(next);
}

std::vector<std::vector<GeneratedAnswer>> Generate(const Context& context, const Transformer& model,
                                                   std::span<const GenerationRequest> requests,
                                                   const Generator::Options& options) {
  Generator generator(context, model, options);
  std::vector<std::vector<GeneratedAnswer>> answers;
  for (const GenerationRequest& request : requests) {
    generator.Add(request);
    answers.emplace_back(static_cast<size_t>(request.samples));
  }
  generator.ReadCommonBeginning();
  while (!generator.idle()) {
    generator.Step([&](const GenerationEvent& event) {
      GeneratedAnswer& answer = answers[event.request][event.sample];
      answer.ids.push_back(event.id);
      answer.log_probabilities.push_back(event.log_probability);
      answer.finish = event.finish;
    });
  }
  return answers;
}

}  // namespace weft
