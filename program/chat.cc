// weft chat: a conversation with a model on the terminal; weft generate: answers to a file of
// prompts; weft perplexity: how well a model foresees a text.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/file.h"
#include "language/chat_model.h"
#include "language/generator.h"
#include "program/commands.h"
#include "program/language_machine.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

std::atomic<bool> interrupted{false};

// Ctrl-C ends the answer; reading a line is interrupted too.
void CatchInterrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  sigaction(SIGINT, &action, nullptr);
}

// What the command line says, then the model's own file, then values that suit small chat models.
SamplingOptions SamplingOf(const SamplingFlags& flags, const GenerationDefaults& defaults) {
  SamplingOptions sampling;
  sampling.temperature = flags.temperature.value_or(defaults.temperature.value_or(0.2));
  sampling.top_p = flags.top_p.value_or(defaults.top_p.value_or(0.9));
  sampling.top_k = flags.top_k.value_or(defaults.top_k.value_or(0));
  sampling.min_p = flags.min_p.value_or(defaults.min_p.value_or(0));
  sampling.repetition_penalty =
      flags.repetition_penalty.value_or(defaults.repetition_penalty.value_or(1));
  if (!flags.temperature && defaults.do_sample == false) sampling.temperature = 0;
  sampling.Check();
  return sampling;
}

JsonValue Message(const std::string& role, const std::string& content) {
  JsonValue message = JsonValue::MakeObject();
  message.Set("role", JsonValue(role));
  message.Set("content", JsonValue(content));
  return message;
}

// One line of standard input without its end; false at the end of input. An interrupt gives an
// empty line.
bool ReadLine(std::string& line) {
  line.clear();
  for (;;) {
    char c = 0;
    const ssize_t got = read(STDIN_FILENO, &c, 1);
    if (got < 0 && errno == EINTR) {
      interrupted = false;
      line.clear();
      return true;
    }
    if (got <= 0) return !line.empty();
    if (c == '\n') return true;
    line += c;
  }
}

class Conversation {
 public:
  Conversation(const ChatOptionsOfCommand& options, const LanguageMachine& machine,
               const ChatModel& chat)
      : options_(options),
        chat_(chat),
        system_(options.system),
        // A turn reads what is new of it.
        generator_(machine.context, *chat.model, {.kept_tokens = chat.model->config().context}) {
    sampling_ = SamplingOf(options.sampling, chat.file->generation());
    Reset();
  }

  void Reset() {
    messages_ = JsonValue::MakeArray();
    if (!system_.empty()) messages_.Append(Message("system", system_));
  }

  // False: the conversation is over.
  bool Command(const std::string& line) {
    if (line == "/exit" || line == "/quit") return false;
    if (line == "/reset") {
      Reset();
      fmt::print("the conversation begins anew\n");
    } else if (line.starts_with("/system ")) {
      system_ = line.substr(8);
      Reset();
      fmt::print("the conversation begins anew with this system prompt\n");
    } else {
      fmt::print(
          "/reset  begin anew\n/system TEXT  begin anew with a system prompt\n"
          "/exit  or Ctrl-D  end; Ctrl-C ends an answer\n");
    }
    return true;
  }

  void Say(const std::string& text) {
    messages_.Append(Message("user", text));
    GenerationRequest request;
    request.prompt = chat_.Encode(messages_);
    request.sampling = sampling_;
    request.seed = options_.sampling.seed;
    request.first_sample = turn_++;
    request.stop_ids = chat_.stop_ids;
    const int64_t room = chat_.model->config().context - std::ssize(request.prompt);
    request.max_new_tokens = std::max<int64_t>(1, std::min(options_.sampling.max_new_tokens, room));
    AnswerText text_of(chat_.tokenizer, options_.sampling.stop);
    std::string answer;
    const auto show = [&](const std::string& piece) {
      answer += piece;
      fmt::print("{}", piece);
      std::fflush(stdout);
    };
    const auto start = Clock::now();
    double first = 0;
    int64_t tokens = 0;
    interrupted = false;
    const int64_t prompt = std::ssize(request.prompt), reused = generator_.reused_tokens();
    const int64_t number = generator_.Add(std::move(request));
    while (!generator_.idle()) {
      generator_.Step([&](const GenerationEvent& event) {
        if (event.id < 0) return;
        if (++tokens == 1) first = Seconds(start);
        if (event.finish != FinishReason::kStop) show(text_of.Add(event.id));
      });
      if (interrupted || text_of.stopped()) generator_.Cancel(number);
    }
    show(text_of.Finish());
    messages_.Append(Message("assistant", answer));
    fmt::print("\n");
    if (interrupted) fmt::print("(stopped)\n");
    interrupted = false;
    if (options_.statistics) {
      const double rest = Seconds(start) - first;
      fmt::print(stderr,
                 "{} prompt tokens, {} of them new, first token after {:.3f} s, {} tokens, {:.1f} "
                 "tokens/s\n",
                 prompt, prompt - (generator_.reused_tokens() - reused), first, tokens,
                 tokens > 1 ? static_cast<double>(tokens - 1) / rest : 0.0);
    }
  }

 private:
  const ChatOptionsOfCommand& options_;
  const ChatModel& chat_;
  std::string system_;
  Generator generator_;
  SamplingOptions sampling_;
  JsonValue messages_;
  uint64_t turn_ = 0;
};

}  // namespace

int Chat(const ChatOptionsOfCommand& options) {
  const auto start = Clock::now();
  const LanguageMachine machine(options.threads);
  const ChatModel chat = LoadChatModel(machine.context, options.model,
                                       LoadOptionsOf(options.precision, options.adapter));
  if (options.statistics) fmt::print(stderr, "loaded in {:.3f} s\n", Seconds(start));
  Conversation conversation(options, machine, chat);
  if (!options.message.empty()) {
    conversation.Say(options.message);
    return 0;
  }
  CatchInterrupts();
  const bool terminal = isatty(STDIN_FILENO) == 1;
  if (terminal) {
    fmt::print("{}: /help lists commands, Ctrl-D ends\n", options.model);
  }
  for (std::string line;;) {
    if (terminal) {
      fmt::print("> ");
      std::fflush(stdout);
    }
    if (!ReadLine(line)) break;
    if (line.empty()) continue;
    if (line.starts_with('/')) {
      if (!conversation.Command(line)) break;
      continue;
    }
    try {
      conversation.Say(line);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidArgument) throw;
      fmt::print("{}; /reset begins anew\n", error.what());
    }
  }
  if (terminal) fmt::print("\n");
  return 0;
}

int GenerateAnswers(const GenerateOptions& options) {
  const LanguageMachine machine(options.threads);
  const ChatModel chat = LoadChatModel(machine.context, options.model,
                                       LoadOptionsOf(options.precision, options.adapter));
  const SamplingOptions sampling = SamplingOf(options.sampling, chat.file->generation());
  std::vector<GenerationRequest> requests;
  const auto add = [&](std::vector<int32_t> prompt) {
    requests.push_back({.prompt = std::move(prompt),
                        .samples = options.samples,
                        .max_new_tokens = options.sampling.max_new_tokens,
                        .stop_ids = chat.stop_ids,
                        .sampling = sampling,
                        .seed = options.sampling.seed,
                        .first_sample = requests.size() * static_cast<uint64_t>(options.samples)});
  };
  const EncodeOptions plain{.add_special = true};
  for (const std::string& prompt : options.prompts) add(chat.tokenizer.Encode(prompt, plain));
  if (!options.file.empty()) {
    const std::string text = ReadFile(options.file);
    int64_t number = 0;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      const std::string line = text.substr(begin, end - begin);
      begin = end + 1;
      ++number;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      const std::string place = fmt::format("{}:{}", options.file, number);
      const JsonValue row = ParseJson(line, place);
      const JsonValue* prompt = row.IsObject() ? row.Find("prompt") : nullptr;
      const JsonValue* messages = row.IsObject() ? row.Find("messages") : nullptr;
      if (prompt != nullptr && prompt->IsArray()) messages = prompt;
      if (messages != nullptr) {
        add(chat.Encode(*messages));
      } else if (prompt != nullptr && prompt->IsString()) {
        add(chat.tokenizer.Encode(prompt->AsString(), plain));
      } else {
        throw Error(ErrorCode::kInvalidArgument,
                    place + ": a line needs \"prompt\", a text, or \"messages\"");
      }
    }
  }
  if (requests.empty()) {
    throw Error(ErrorCode::kConfig,
                "there is nothing to continue: give --prompts FILE or --prompt");
  }
  const auto start = Clock::now();
  const auto answers = Generate(machine.context, *chat.model, requests,
                                {.max_rows = options.batch, .max_prompt_tokens = 512});
  int64_t tokens = 0;
  std::string output;
  for (size_t i = 0; i < answers.size(); ++i) {
    for (size_t sample = 0; sample < answers[i].size(); ++sample) {
      const GeneratedAnswer& answer = answers[i][sample];
      tokens += std::ssize(answer.ids);
      AnswerText text(chat.tokenizer, options.sampling.stop);
      std::string shown;
      const bool ended = answer.finish == FinishReason::kStop;
      for (size_t t = 0; t + (ended ? 1 : 0) < answer.ids.size(); ++t) {
        shown += text.Add(answer.ids[t]);
      }
      shown += text.Finish();
      output += Json{{"prompt", i},       {"sample", sample},
                     {"text", shown},     {"finish", text.stopped() ? "stop" : Name(answer.finish)},
                     {"ids", answer.ids}, {"log_probabilities", answer.log_probabilities}}
                    .dump(-1, ' ', false, Json::error_handler_t::replace) +
                "\n";
    }
  }
  if (options.output.empty()) {
    fmt::print("{}", output);
  } else {
    WriteFileAtomic(options.output, output);
  }
  fmt::print(stderr, "{} prompts, {} tokens, {:.1f} tokens/s\n", requests.size(), tokens,
             static_cast<double>(tokens) / Seconds(start));
  return 0;
}

}  // namespace weft
