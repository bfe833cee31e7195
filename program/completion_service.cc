#include "program/completion_service.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/log.h"

namespace weft {

using std::chrono::milliseconds;

namespace {

// Keys of the latest conversations are kept, so that a next turn reads only what is new of it: for
// a model of 135M parameters 94 MB.
constexpr Generator::Options kGeneration{.kept_tokens = 4096};

size_t Bytes(const AnswerPiece& piece) {
  size_t bytes = piece.text.size();
  for (const AnswerToken& token : piece.tokens) {
    bytes += sizeof(token) + token.likeliest.size() * sizeof(ScoredText);
  }
  return bytes;
}

}  // namespace

struct CompletionStream::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<int64_t, AnswerPiece> pieces;  // not yet taken, by the index of their answer
  int64_t last = -1;                      // index that was taken
  size_t backlog = 0;                     // bytes of pieces
  bool cancelled = false;                 // by the client's end
  bool ended = false;
  std::string error;
  Usage usage;

  void End(std::string why) {
    const std::lock_guard lock(mutex);
    ended = true;
    error = std::move(why);
    changed.notify_all();
  }
};

CompletionStream::~CompletionStream() {
  const std::lock_guard lock(state_->mutex);
  state_->cancelled = true;
  state_->pieces.clear();
}

CompletionStream::Status CompletionStream::Next(milliseconds wait, AnswerPiece& piece) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, wait, [&] { return state_->ended || !state_->pieces.empty(); });
  if (!state_->error.empty()) return Status::kFailed;
  if (!state_->pieces.empty()) {
    auto next = state_->pieces.upper_bound(state_->last);  // each answer in its turn
    if (next == state_->pieces.end()) next = state_->pieces.begin();
    state_->last = next->first;
    piece = std::move(next->second);
    state_->pieces.erase(next);
    state_->backlog -= Bytes(piece);
    return Status::kPiece;
  }
  return state_->ended ? Status::kEnd : Status::kNothing;
}

Usage CompletionStream::usage() const {
  const std::lock_guard lock(state_->mutex);
  return state_->usage;
}

std::string CompletionStream::error() const {
  const std::lock_guard lock(state_->mutex);
  return state_->error;
}

namespace {

// An answer in progress.
struct Answer {
  Answer(const Tokenizer& tokenizer, const std::vector<std::string>& stop)
      : text(tokenizer, stop) {}
  AnswerText text;
  std::string held;  // text and tokens since the last piece
  std::vector<AnswerToken> tokens;
  int64_t code_points = 0;  // given out
  bool ended = false;
};

struct Job {
  std::shared_ptr<CompletionStream::State> state;
  CompletionJob job;
  std::vector<Answer> answers;  // of all prompts
  int64_t prompts_left = 0;
};

// A prompt in the generator.
struct Prompt {
  std::shared_ptr<Job> job;
  int64_t first = 0;  // of its answers
  int64_t left = 0;   // answers in progress
  bool cancelled = false;
};

int64_t CodePoints(std::string_view text) {
  return std::ranges::count_if(text, [](char byte) { return (byte & 0xC0) != 0x80; });
}

}  // namespace

class CompletionService::Loop {
 public:
  Loop(const Context& context, const ChatModel& chat, const Options& options)
      : context_(context),
        chat_(chat),
        options_(options),
        generator_(std::in_place, context, *chat.model, kGeneration),
        thread_([this] { Run(); }) {}

  ~Loop() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
      wake_.notify_all();
    }
    thread_.join();
  }

  std::unique_ptr<CompletionStream> Begin(CompletionJob job) {
    const int64_t prompts = std::ssize(job.requests);
    auto state = std::make_shared<CompletionStream::State>();
    const std::lock_guard lock(mutex_);
    if (stop_ || counts_.in_progress + prompts > options_.max_requests) return nullptr;
    counts_.in_progress += prompts;
    inbox_.push_back(std::make_shared<Job>(
        Job{.state = state, .job = std::move(job), .answers = {}, .prompts_left = prompts}));
    wake_.notify_all();
    return std::make_unique<CompletionStream>(std::move(state));
  }

  Counts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

  bool Drain(milliseconds wait) {
    std::unique_lock lock(mutex_);
    return idle_.wait_for(lock, wait, [&] { return counts_.in_progress == 0; });
  }

  bool Stop(milliseconds wait) {
    std::unique_lock lock(mutex_);
    stop_ = true;
    wake_.notify_all();
    return idle_.wait_for(lock, wait, [&] { return stopped_; });
  }

 private:
  void Run() {
    while (TakeArrived()) {
      try {
        for (; !arrived_.empty(); arrived_.pop_front()) Start(arrived_.front());
        CancelWhatClientsLeft();
        Step();
      } catch (const std::exception& error) {  // such as memory that is short
        LogError(std::string("a step failed, its requests are given up: ") + error.what());
        FailAll(std::string("the model failed: ") + error.what());
        generator_.emplace(context_, *chat_.model, kGeneration);
      }
    }
    FailAll("the server is shutting down");
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    idle_.notify_all();
  }

  // Waits until there is something to do; false: the end.
  bool TakeArrived() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return stop_ || !inbox_.empty() || !prompts_.empty(); });
    arrived_.swap(inbox_);
    return !stop_;
  }

  void Start(const std::shared_ptr<Job>& job) {
    std::vector<std::pair<int64_t, Prompt>> prompts;
    int64_t first = 0, tokens = 0;
    for (GenerationRequest& request : job->job.requests) {
      const int64_t samples = request.samples;
      tokens += std::ssize(request.prompt);
      for (int64_t i = 0; i < samples; ++i) {
        job->answers.emplace_back(chat_.tokenizer, job->job.stop);
      }
      prompts.emplace_back(generator_->Add(std::move(request)),
                           Prompt{.job = job, .first = first, .left = samples});
      first += samples;
    }
    prompts_.insert(prompts.begin(), prompts.end());
    const std::lock_guard lock(mutex_);
    counts_.prompt_tokens += tokens;
    const std::lock_guard state_lock(job->state->mutex);
    job->state->usage.prompt_tokens = tokens;
  }

  void CancelWhatClientsLeft() {
    for (auto& [number, prompt] : prompts_) {
      if (prompt.cancelled) continue;
      const std::lock_guard lock(prompt.job->state->mutex);
      if (!prompt.job->state->cancelled) continue;
      prompt.cancelled = true;
      generator_->Cancel(number);
    }
  }

  void Step() {
    std::vector<std::pair<int64_t, int64_t>> stopped;  // answers that a stop string ended
    generator_->Step([&](const GenerationEvent& event) { Take(event, stopped); });
    for (const auto& [request, sample] : stopped) generator_->Cancel(request, sample);
  }

  void Take(const GenerationEvent& event, std::vector<std::pair<int64_t, int64_t>>& stopped) {
    const auto found = prompts_.find(event.request);
    if (found == prompts_.end()) return;
    Prompt& prompt = found->second;
    Job& job = *prompt.job;
    const int64_t index = prompt.first + event.sample;
    Answer& answer = job.answers[index];
    if (answer.ended) return;
    AnswerPiece piece{.index = index, .text = "", .tokens = {}, .finish = event.finish};
    if (event.id >= 0 && !prompt.cancelled) {
      // A token of the end is no part of the text.
      const bool shown = event.finish != FinishReason::kStop;
      if (shown && job.job.log_probabilities) answer.tokens.push_back(Score(event, answer));
      if (shown) piece.text = answer.text.Add(event.id);
      if (event.finish != FinishReason::kNone) piece.text += answer.text.Finish();
      if (answer.text.stopped()) {
        if (event.finish == FinishReason::kNone) stopped.emplace_back(event.request, event.sample);
        piece.finish = FinishReason::kStop;
      }
      answer.code_points += CodePoints(piece.text);
    }
    answer.ended = piece.finish != FinishReason::kNone;
    answer.held += piece.text;
    if (answer.ended || (!job.job.whole && !answer.held.empty())) {
      piece.text = std::exchange(answer.held, "");
      piece.tokens = std::exchange(answer.tokens, {});
      Give(job, std::move(piece));
    }
    if (event.id >= 0) CountToken(job);
    if (answer.ended && --prompt.left == 0) EndPrompt(found);
  }

  AnswerToken Score(const GenerationEvent& event, const Answer& answer) const {
    const auto text = [&](int32_t id, float log_probability) {
      return ScoredText{chat_.tokenizer.Decode({&id, 1}), log_probability};
    };
    AnswerToken token{.drawn = text(event.id, event.log_probability),
                      .likeliest = {},
                      .offset = answer.code_points};
    for (const SampledToken& other : event.likeliest) {
      token.likeliest.push_back(text(other.id, other.log_probability));
    }
    return token;
  }

  // Never waits for the client: pieces that it has not taken grow.
  void Give(Job& job, AnswerPiece piece) {
    CompletionStream::State& state = *job.state;
    const std::lock_guard lock(state.mutex);
    if (state.cancelled) return;
    state.backlog += Bytes(piece);
    if (!job.job.whole && state.backlog > options_.max_backlog) {
      state.cancelled = true;
      state.error = "the client reads too slowly";
      state.pieces.clear();
    } else {
      AnswerPiece& pending = state.pieces[piece.index];
      pending.index = piece.index;
      pending.text += piece.text;
      std::ranges::move(piece.tokens, std::back_inserter(pending.tokens));
      pending.finish = piece.finish;
    }
    state.changed.notify_all();
  }

  void CountToken(Job& job) {
    {
      const std::lock_guard lock(mutex_);
      ++counts_.completion_tokens;
    }
    const std::lock_guard lock(job.state->mutex);
    ++job.state->usage.completion_tokens;
  }

  void EndPrompt(std::map<int64_t, Prompt>::iterator prompt) {
    const std::shared_ptr<Job> job = prompt->second.job;
    const bool cancelled = prompt->second.cancelled;
    prompts_.erase(prompt);
    // First: whoever has its answer finds the place free that it took.
    Count(cancelled ? &Counts::cancelled : &Counts::completed);
    if (--job->prompts_left == 0) {
      const std::lock_guard lock(job->state->mutex);
      job->state->ended = true;
      job->state->changed.notify_all();
    }
  }

  void Count(int64_t Counts::*outcome) {
    const std::lock_guard lock(mutex_);
    --counts_.in_progress;
    ++(counts_.*outcome);
    if (counts_.in_progress == 0) idle_.notify_all();
  }

  void FailAll(const std::string& why) {
    for (const auto& [number, prompt] : prompts_) {
      Count(&Counts::failed);
      prompt.job->state->End(why);
    }
    prompts_.clear();
    for (const auto& job : arrived_) {
      for (int64_t i = 0; i < job->prompts_left; ++i) Count(&Counts::failed);
      job->state->End(why);
    }
    arrived_.clear();
  }

  const Context& context_;
  const ChatModel& chat_;
  const Options options_;

  // The thread's own.
  std::optional<Generator> generator_;
  std::map<int64_t, Prompt> prompts_;  // by the generator's number
  std::deque<std::shared_ptr<Job>> arrived_;

  mutable std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::deque<std::shared_ptr<Job>> inbox_;
  Counts counts_;
  bool stop_ = false, stopped_ = false;

  std::thread thread_;  // last: it uses all above
};

CompletionService::CompletionService(const Context& context, const ChatModel& chat,
                                     const Options& options)
    : loop_(std::make_unique<Loop>(context, chat, options)) {}
CompletionService::~CompletionService() = default;

std::unique_ptr<CompletionStream> CompletionService::Begin(CompletionJob job) {
  return loop_->Begin(std::move(job));
}
CompletionService::Counts CompletionService::counts() const {
  return loop_->counts();
}
bool CompletionService::Drain(milliseconds wait) {
  return loop_->Drain(wait);
}
bool CompletionService::Stop(milliseconds wait) {
  return loop_->Stop(wait);
}

}  // namespace weft
