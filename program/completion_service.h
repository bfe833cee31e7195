// One generator for all clients: a thread of its own takes every request in progress through the
// model together, one token of each answer at a time. Requests join and leave between steps. What
// an answer says depends on its request alone (generator.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "language/chat_model.h"
#include "language/generator.h"
#include "program/completion_response.h"

namespace weft {

// A client's request on its way through the service.
struct CompletionJob {
  std::vector<GenerationRequest> requests;  // one for each prompt
  std::vector<std::string> stop;
  bool log_probabilities = false;
  bool whole = false;  // one piece for each answer, however long
};

// The client's end of a job. Destroying it cancels what is left.
class CompletionStream {
 public:
  struct State;
  explicit CompletionStream(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~CompletionStream();
  CompletionStream(const CompletionStream&) = delete;
  CompletionStream& operator=(const CompletionStream&) = delete;

  enum class Status {
    kPiece,
    kNothing,  // within this time
    kEnd,      // all answers are whole
    kFailed,   // see error()
  };
  // What one of the answers has grown by since its last piece: it has text, or ends the answer.
  Status Next(std::chrono::milliseconds wait, AnswerPiece& piece);
  // After kEnd or kFailed.
  Usage usage() const;
  std::string error() const;

 private:
  std::shared_ptr<State> state_;
};

class CompletionService {
 public:
  struct Options {
    int64_t max_requests = 64;  // prompts accepted and not yet answered
    // Bytes that a client has not yet taken; beyond, its job is cancelled.
    size_t max_backlog = 64 << 10;
  };
  struct Counts {
    int64_t in_progress = 0, completed = 0, cancelled = 0, failed = 0;  // prompts
    int64_t prompt_tokens = 0, completion_tokens = 0;
  };

  // context (with its pool, which the service's thread alone then uses) and chat must outlive this.
  CompletionService(const Context& context, const ChatModel& chat, const Options& options);
  // Waits for the step in progress.
  ~CompletionService();

  // Null when the service is full or stops. Thread-safe, as all below.
  std::unique_ptr<CompletionStream> Begin(CompletionJob job);
  Counts counts() const;

  // Whether everything in progress was answered in this time.
  bool Drain(std::chrono::milliseconds wait);
  // Ends the thread; jobs in progress fail. False: a step still runs after this time.
  bool Stop(std::chrono::milliseconds wait);

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace weft
