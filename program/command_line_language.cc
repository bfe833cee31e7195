// Commands that use language models.
#include "program/command_line.h"
#include "program/commands.h"

namespace weft {
namespace {

void AddModel(CLI::App* command, std::string& model, std::string& precision, std::string& adapter,
              int& threads) {
  command->add_option("model", model, "folder, .gguf file or name (smollm2-135m-instruct)")
      ->required();
  command->add_option(
      "--precision", precision,
      "auto (as the file is quantised, else bf16), bf16, f32, or int8: as auto, but "
      "activations are rounded to 8 bits before they meet quantised weights, which "
      "is faster and less exact (perplexity says by how much)");
  command->add_option("--adapter", adapter, "folder of a LoRA adapter in PEFT's format");
  command->add_option("--threads", threads, "default: all")->check(CLI::PositiveNumber);
}
void AddSampling(CLI::App* command, SamplingFlags& flags) {
  command->add_option("--temperature", flags.temperature, "0: always the likeliest token");
  command->add_option("--top-k", flags.top_k, "of the k likeliest tokens; 0: all");
  command->add_option("--top-p", flags.top_p, "of the likeliest tokens with this share");
  command->add_option("--min-p", flags.min_p, "of those with this share of the likeliest's");
  command->add_option("--repetition-penalty", flags.repetition_penalty,
                      "above 1: less of what was said");
  command->add_option("--max-new-tokens", flags.max_new_tokens, "longest answer")
      ->check(CLI::PositiveNumber);
  command->add_option("--seed", flags.seed, "of the draws");
  command->add_option("--stop", flags.stop, "text that ends an answer; may be repeated");
}

}  // namespace

void CommandLine::AddLanguage() {
  const auto chat = std::make_shared<ChatOptionsOfCommand>();
  auto* command = Command("chat", "talk to a language model");
  AddModel(command, chat->model, chat->precision, chat->adapter, chat->threads);
  AddSampling(command, chat->sampling);
  command->add_option("--system", chat->system, "system prompt");
  command->add_option("--message", chat->message, "say this, print the answer and end");
  command->add_flag("--statistics", chat->statistics, "times and speeds on standard error");
  Call(command, chat, weft::Chat);

  const auto generate = std::make_shared<GenerateOptions>();
  command = Command("generate", "continue prompts, as JSON lines");
  AddModel(command, generate->model, generate->precision, generate->adapter, generate->threads);
  AddSampling(command, generate->sampling);
  command->add_option("--prompts", generate->file,
                      "JSON lines with \"prompt\", a text, or \"messages\"");
  command->add_option("--prompt", generate->prompts, "a text; may be repeated");
  command->add_option("--samples", generate->samples, "answers to each")
      ->check(CLI::PositiveNumber);
  command->add_option("--batch", generate->batch, "answers at a time")->check(CLI::PositiveNumber);
  command->add_option("--output,-o", generate->output, "file to write; default: standard output");
  Call(command, generate, weft::GenerateAnswers);

  const auto serve = std::make_shared<ServeOptions>();
  command = Command("serve", "answer clients of OpenAI's API over HTTP");
  AddModel(command, serve->model, serve->precision, serve->adapter, serve->threads);
  command->add_option("--host", serve->host, "address to listen on; default: 127.0.0.1");
  command->add_option("--port", serve->port, "default: 8000; 0: any that is free")
      ->check(CLI::Range(0, 65535));
  command->add_option("--token", serve->token, "that clients must send; any when left out")
      ->envname("WEFT_SERVE_TOKEN");
  command->add_option("--max-requests", serve->max_requests, "at a time; more are told to retry")
      ->check(CLI::Range(1, 4096));
  command->add_option("--max-body", serve->max_body, "bytes of a request; default: 4 MiB")
      ->check(CLI::Range(1 << 10, 1 << 30));
  Call(command, serve, weft::Serve);

  const auto serve_reward = std::make_shared<ServeRewardOptions>();
  command = Command("serve-reward", "score texts for other trainers by OpenRLHF's /get_reward");
  command->add_option("model", serve_reward->model, "a reward model: folder or run's model")
      ->required();
  command->add_option("--precision", serve_reward->precision, "auto, bf16 or f32");
  command->add_option("--threads", serve_reward->threads, "threads; 0: one per core");
  command->add_option("--host", serve_reward->host, "address to listen on; default: 127.0.0.1");
  command->add_option("--port", serve_reward->port, "default: 5000; 0: any that is free")
      ->check(CLI::Range(0, 65535));
  Call(command, serve_reward, weft::ServeReward);

  const auto perplexity = std::make_shared<PerplexityOptions>();
  command = Command("perplexity", "how well a language model foresees a text");
  AddModel(command, perplexity->model, perplexity->precision, perplexity->adapter,
           perplexity->threads);
  command->add_option("file", perplexity->file, "text file")->required();
  command->add_option("--context", perplexity->context, "tokens seen at a time")
      ->check(CLI::Range(2, 1 << 20));
  command->add_option("--stride", perplexity->stride, "tokens from one window to the next")
      ->check(CLI::PositiveNumber);
  Call(command, perplexity, weft::Perplexity);
}

}  // namespace weft
