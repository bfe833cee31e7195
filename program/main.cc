#include "program/main.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <new>

#include "base/check.h"
#include "base/log.h"
#include "base/text.h"
#include "base/version.h"
#include "program/commands.h"

namespace weft {
namespace {

constexpr int kUsage = 64;  // EX_USAGE of sysexits.h

std::vector<int64_t> ParseSeeds(const std::string& text) {
  std::vector<int64_t> seeds;
  try {
    if (const size_t dots = text.find(".."); dots != std::string::npos) {
      for (int64_t seed = std::stoll(text.substr(0, dots));
           seed <= std::stoll(text.substr(dots + 2)); ++seed) {
        seeds.push_back(seed);
      }
    } else {
      for (const auto& word : CLI::detail::split(text, ',')) seeds.push_back(std::stoll(word));
    }
  } catch (const std::logic_error&) {
    seeds.clear();
  }
  if (seeds.empty()) {
    throw Error(ErrorCode::kConfig,
                "seeds=" + text + " names no seeds; write seeds=1..5 or seeds=1,2,3");
  }
  return seeds;
}

// The whole command line. Each subcommand's callback leaves its exit status in status.
struct CommandLine {
  CLI::App app{"weft: reinforcement learning as graphs of fragments, one native program"};
  int status = 0;
  bool json = false;

  TrainOptions train;
  ResumeOptions resume;
  EvaluateOptions evaluate;
  PlayOptions play;
  BenchOptions bench;
  VerifyOptions verify;
  ChatOptionsOfCommand chat;
  GenerateOptions generate;
  ServeOptions serve;
  PerplexityOptions perplexity;
  VerifyLanguageOptions verify_language;
  TokenizeOptions tokenize;
  InspectDataOptions inspect_data;
  VerifyTextOptions verify_text;
  ReproOptions repro;
  PlotOptions plot;
  ConvertOptions convert;
  std::string what, config, address, run, file;
  std::vector<std::string> overrides, repro_arguments;
  int process = 0;
  bool dot = false, keys = false, fields = false, mujoco = false;

  CommandLine() {
    app.set_version_flag("--version", fmt::format("weft {} ({})", kVersion, kGitHash));
    app.name("weft");
    app.require_subcommand(1);
    app.fallthrough();
    AddRuns();
    AddInspection();
    AddMeasurement();
    AddModels();
    AddLanguage();
    AddTexts();
  }

  CLI::App* Command(const char* name, const char* help) {
    CLI::App* command = app.add_subcommand(name, help);
    command->add_flag("--json", json, "the last line is one JSON object");
    return command;
  }

  // What is wrong with the first word, if it is meant as a command and none has that name.
  std::string CommandFault(const std::string& word) const {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(command->get_name());
    if (word.starts_with('-') || std::ranges::find(names, word) != names.end()) return "";
    return "there is no command \"" + word + "\"" + DidYouMean(word, names) +
           "; weft --help lists them";
  }

  // "seeds=1..5", "seeds=1,2,3", other key=value, and files.
  void ReadReproArguments() {
    for (const std::string& argument : repro_arguments) {
      const size_t equals = argument.find('=');
      if (equals == std::string::npos) {
        repro.configs.push_back(argument);
      } else if (argument.starts_with("seeds=")) {
        repro.seeds = ParseSeeds(argument.substr(6));
      } else {
        repro.overrides.push_back(argument);
      }
    }
  }

  void AddRuns() {
    auto* command = Command("train", "train an agent from a config");
    command->add_option("config", train.config, "YAML file, see configs/")->required();
    command->add_option("overrides", train.overrides,
                        "key=value, any key of the config, dotted for sections");
    command->set_help_flag();  // --help also lists the keys of the config's algorithm
    command->add_flag("-h,--help", keys, "this text and every key of the config");
    command->callback([this] {
      train.json = json;
      status = weft::Train(train);
    });

    command = Command("resume", "go on with a run from its newest checkpoint");
    command->add_option("run", resume.run, "folder or name under runs/")->required();
    command->add_option("overrides", resume.overrides,
                        "key=value to change, such as total_steps=2e6");
    command->callback([this] {
      resume.json = json;
      status = weft::Resume(resume);
    });

    command = Command("evaluate", "run episodes with the policy of a run");
    command->add_option("run", evaluate.run, "run, or one of its checkpoint folders")->required();
    command->add_option("--episodes", evaluate.episodes, "episodes to run")
        ->check(CLI::PositiveNumber);
    command->add_option("--seed", evaluate.seed, "seed of the environments; default: the run's");
    command->add_flag("--explore", evaluate.explore,
                      "sample actions instead of taking the policy's mode");
    command->callback([this] {
      evaluate.json = json;
      status = weft::EvaluateRun(evaluate);
    });

    command = Command("play", "show episodes as a GIF, an MP4, PNGs or text");
    command->add_option("what", play.what, "run, one of its checkpoint folders, or random")
        ->required();
    command->add_option("arguments", play.arguments,
                        "with random: the environment, and key=value of its arguments");
    command->add_option("--output,-o", play.output,
                        "FILE.gif, FILE.mp4, FILE.png (the last frame) or FOLDER (a PNG each "
                        "frame); default: text");
    command
        ->add_option("--episodes", play.episodes,
                     "episodes to show; default: 1, or what fits into --steps or --seconds")
        ->check(CLI::PositiveNumber);
    command->add_option("--steps", play.steps, "steps to show at most; default: 1000 an episode")
        ->check(CLI::PositiveNumber);
    command->add_option("--seconds", play.seconds, "the same in the environment's own time")
        ->check(CLI::PositiveNumber)
        ->excludes("--steps");
    command->add_option("--seed", play.seed, "seed of the environment; default: the run's");
    command->add_flag("--explore", play.explore,
                      "sample actions instead of taking the policy's mode");
    command->add_option("--width", play.width, "of the pictures, in pixels")
        ->check(CLI::PositiveNumber);
    command->add_option("--height", play.height, "of the pictures, in pixels")
        ->check(CLI::PositiveNumber);
    command
        ->add_option("--fps", play.frames_per_second,
                     "frames per second at most; steps are left out to keep the environment's "
                     "own time; default: 30")
        ->check(CLI::PositiveNumber);
    command->add_option("--camera", play.camera, "name or number of one of the model's cameras");
    command->callback([this] {
      play.json = json;
      status = weft::Play(play);
    });

    command =
        Command("export", "write the policy of a run as ONNX, normaliser and action map inside");
    command->add_option("run", run, "run, or one of its checkpoint folders")->required();
    command->add_option("file", file, "the .onnx file to write")->required();
    command->callback([this] { status = weft::Export(run, file, json); });

    command = app.add_subcommand("worker", "a process of a run (started by weft itself)");
    command->group("");
    command->add_option("config", config)->required();
    command->add_option("process", process)->required();
    command->add_option("address", address)->required();
    command->callback([this] { status = weft::Worker(config, process, address); });
  }

  static void AddModel(CLI::App* command, std::string& model, std::string& precision,
                       std::string& adapter, int& threads) {
    command->add_option("model", model, "folder, .gguf file or name (smollm2-135m-instruct)")
        ->required();
    command->add_option("--precision", precision,
                        "auto (as the file is quantised, else bf16), bf16 or f32");
    command->add_option("--adapter", adapter, "folder of a LoRA adapter in PEFT's format");
    command->add_option("--threads", threads, "default: all")->check(CLI::PositiveNumber);
  }
  static void AddSampling(CLI::App* command, SamplingFlags& flags) {
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

  void AddLanguage() {
    auto* command = Command("chat", "talk to a language model");
    AddModel(command, chat.model, chat.precision, chat.adapter, chat.threads);
    AddSampling(command, chat.sampling);
    command->add_option("--system", chat.system, "system prompt");
    command->add_option("--message", chat.message, "say this, print the answer and end");
    command->add_flag("--statistics", chat.statistics, "times and speeds on standard error");
    command->callback([this] { status = weft::Chat(chat); });

    command = Command("generate", "continue prompts, as JSON lines");
    AddModel(command, generate.model, generate.precision, generate.adapter, generate.threads);
    AddSampling(command, generate.sampling);
    command->add_option("--prompts", generate.file,
                        "JSON lines with \"prompt\", a text, or \"messages\"");
    command->add_option("--prompt", generate.prompts, "a text; may be repeated");
    command->add_option("--samples", generate.samples, "answers to each")
        ->check(CLI::PositiveNumber);
    command->add_option("--batch", generate.batch, "answers at a time")->check(CLI::PositiveNumber);
    command->add_option("--output,-o", generate.output, "file to write; default: standard output");
    command->callback([this] { status = weft::GenerateAnswers(generate); });

    command = Command("serve", "answer clients of OpenAI's API over HTTP");
    AddModel(command, serve.model, serve.precision, serve.adapter, serve.threads);
    command->add_option("--host", serve.host, "address to listen on; default: 127.0.0.1");
    command->add_option("--port", serve.port, "default: 8000; 0: any that is free")
        ->check(CLI::Range(0, 65535));
    command->add_option("--token", serve.token, "that clients must send; any when left out")
        ->envname("WEFT_SERVE_TOKEN");
    command->add_option("--max-requests", serve.max_requests, "at a time; more are told to retry")
        ->check(CLI::Range(1, 4096));
    command->add_option("--max-body", serve.max_body, "bytes of a request; default: 4 MiB")
        ->check(CLI::Range(1 << 10, 1 << 30));
    command->callback([this] {
      serve.json = json;
      status = weft::Serve(serve);
    });

    command = Command("perplexity", "how well a language model foresees a text");
    AddModel(command, perplexity.model, perplexity.precision, perplexity.adapter,
             perplexity.threads);
    command->add_option("file", perplexity.file, "text file")->required();
    command->add_option("--context", perplexity.context, "tokens seen at a time")
        ->check(CLI::Range(2, 1 << 20));
    command->add_option("--stride", perplexity.stride, "tokens from one window to the next")
        ->check(CLI::PositiveNumber);
    command->callback([this] {
      perplexity.json = json;
      status = weft::Perplexity(perplexity);
    });
  }

  void VerifyLanguageCommand() {
    verify_language.json = json;
    status = VerifyLanguage(verify_language);
  }

  void AddInspection() {
    auto* command = Command("list", "what can be named in a config");
    command->add_option("what", what, "algorithms or environments")
        ->required()
        ->check(CLI::IsMember({"algorithms", "environments"}));
    command->add_option("id", file, "this environment alone");
    command->add_flag("--fields", fields, "what each number of an observation is");
    command->callback([this] { status = weft::List(what, file, fields, json); });

    command = Command("new", "write the files of a new environment that works");
    command->add_option("what", what, "environment")
        ->required()
        ->check(CLI::IsMember({"environment"}));
    command->add_option("name", file, "such as MyLamp")->required();
    command->add_flag("--mujoco", mujoco, "a MuJoCo model and a task in YAML, without C++");
    command->callback([this] { status = weft::NewEnvironment(file, mujoco, json); });

    command = Command("graph", "print the fragment graph of a config");
    command->add_option("config", config, "YAML file")->required();
    command->add_option("overrides", overrides, "key=value");
    command->add_flag("--dot", dot, "as Graphviz DOT instead of text");
    command->callback([this] { status = weft::Graph(config, overrides, dot, json); });

    command = Command("plot", "plot a metric of one or more runs");
    command->add_option("runs", plot.runs, "folders or names under runs/")->required();
    command->add_option("--metric", plot.metric, "a key of metrics.jsonl");
    command->add_option("--output,-o", plot.output,
                        ".png or .svg; default: METRIC.png in the first run");
    command->callback([this] {
      plot.json = json;
      status = weft::Plot(plot);
    });
  }

  void AddModels() {
    auto* command =
        Command("convert", "write a language model as a Hugging Face folder or as GGUF");
    command->add_option("from", convert.from, "folder, .gguf file or name of a model")->required();
    command->add_option("to", convert.to, ".gguf file, or folder to make")->required();
    command->add_option(
        "--type", convert.type,
        "of the weights: f32, f16, bf16 and, for GGUF, q8_0, q4_0, q4_1, q5_0, q5_1; "
        "default: as they are");
    command->add_option("--adapter", convert.adapter,
                        "folder of a LoRA adapter in PEFT's format, added to the weights");
    command->callback([this] {
      convert.json = json;
      status = weft::Convert(convert);
    });
  }

  void AddTexts() {
    auto* command = Command("tokenize", "show the tokens of a text");
    command->add_option("model", tokenize.model, "name, folder, tokenizer.json or .gguf file")
        ->required();
    command->add_option("text", tokenize.text, "the text; default: standard input");
    command->add_option("--file", tokenize.file, "a file with the text");
    command->add_flag("--special", tokenize.special, "with the tokens put around a text, as BOS");
    command->add_flag("--plain", tokenize.plain, "read control tokens in the text as plain text");
    command->add_flag("--ids", tokenize.ids, "only the ids, on one line");
    command->add_flag("--pieces", tokenize.pieces, "only the tokens as the vocabulary spells them");
    command->callback([this] {
      tokenize.json = json;
      status = weft::Tokenize(tokenize);
    });

    command = Command("data", "look at a file of data as a model will see it");
    command->require_subcommand(1);
    command = command->add_subcommand(
        "inspect", "show rows with what is learnt marked, and count rows, tokens and faults");
    command->add_flag("--json", json, "the last line is one JSON object");
    command->add_option("file", inspect_data.file, "JSONL file")->required();
    command->add_option("--model", inspect_data.model, "name, folder or .gguf file")->required();
    command->add_option("--rows", inspect_data.rows, "to show; default: 3")
        ->check(CLI::NonNegativeNumber);
    command
        ->add_option("--learn", inspect_data.learn,
                     "what is learnt of chats: answers (default) or all")
        ->check(CLI::IsMember({"answers", "all"}));
    command->callback([this] {
      inspect_data.json = json;
      status = weft::InspectData(inspect_data);
    });
  }

  // weft verify tokenizer and template.
  void AddVerifyTexts(CLI::App* verify_command) {
    const auto add = [&](const char* name, const char* help, const char* reference_help) {
      auto* command = verify_command->add_subcommand(name, help);
      command->add_flag("--json", json, "the last line is one JSON object");
      command->add_option("path", verify_text.path, "name, folder or file")->required();
      command->add_option("reference", verify_text.reference, reference_help);
      return command;
    };
    add("tokenizer", "compare ids, offsets and decoded text with recorded ones",
        "folder with cases.jsonl and decode_cases.jsonl, or such a file")
        ->callback([this] {
          verify_text.json = json;
          status = VerifyTokenizerFile(verify_text);
        });
    add("template", "compare rendered conversations with recorded ones",
        "expected.json; default: PATH holds templates and their results")
        ->callback([this] {
          verify_text.json = json;
          status = VerifyTemplateFile(verify_text);
        });
  }

  void AddMeasurement() {
    auto* command = Command("bench", "measure speed beside recorded peers");
    command->add_option("what", bench.what, "machine, learn or environments")
        ->required()
        ->check(CLI::IsMember({"machine", "learn", "environments", "language"}));
    command->add_option("--only", bench.only, "one row by name");
    command->add_option("--threads", bench.threads, "threads; 0: one per core");
    command->add_option("--repeats", bench.repeats, "runs of each row; the median counts")
        ->check(CLI::PositiveNumber);
    command->add_option("--write", bench.write, "replace this bench's section of a Markdown file");
    command->callback([this] {
      bench.json = json;
      status = weft::Bench(bench);
    });

    command = Command("verify", "compare with recorded reference data");
    auto* environment =
        command->add_subcommand("environment", "check an environment, or replay its recording");
    command->require_subcommand(1);
    AddVerifyTexts(command);
    environment->add_flag("--json", json, "the last line is one JSON object");
    environment->add_option("id", verify.id,
                            "such as HalfCheetah-v5, python:MODULE:NAME, TASK.yaml");
    environment->add_option("file", verify.file,
                            "its recording, a .safetensors file; without: the contract is checked");
    environment->add_flag("--all", verify.all, "every recording of a folder");
    environment->add_option("--reference", verify.reference, "the folder, with --all");
    environment->callback([this] {
      verify.json = json;
      status = weft::VerifyEnvironment(verify);
    });
    auto* model = command->add_subcommand("model", "a language model against its recording");
    model->add_option("model", verify_language.model, "folder or .gguf file")->required();
    model->add_option("expected", verify_language.expected,
                      "recording; default: expected.safetensors beside it");
    model->callback([this] { VerifyLanguageCommand(); });
    auto* language = command->add_subcommand("language", "every recording of language models");
    language->add_option("--reference", verify_language.reference, "the folder")->required();
    language->callback([this] { VerifyLanguageCommand(); });

    auto* hostile = command->add_subcommand(
        "hostile", "load damaged files in a child process and see that they are refused");
    hostile->add_flag("--json", json, "the last line is one JSON object");
    hostile->add_option("--reference", verify.reference, "folder with the files and manifest.json")
        ->required();
    hostile->callback([this] {
      verify.json = json;
      status = weft::VerifyHostile(verify);
    });

    command =
        Command("repro", "train a config for several seeds and print its row of the results table");
    command
        ->add_option("arguments", repro_arguments,
                     "YAML files, seeds=1..5 or seeds=1,2,3, and key=value")
        ->required();
    command->add_option("--parallel", repro.parallel, "runs at a time")->check(CLI::PositiveNumber);
    command->add_option("--write", repro.write, "replace these rows of a Markdown file");
    command->callback([this] {
      repro.json = json;
      ReadReproArguments();
      status = weft::Repro(repro);
    });
  }
};

int Fail(const std::string& message, int status) {
  std::fflush(stdout);
  LogError(message);
  return status;
}

}  // namespace

int Main(int argc, char** argv, int64_t (*allocations)()) {
  // --json and --help of train are wanted before the rest is valid.
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const bool help =
      std::ranges::any_of(words, [](const auto& word) { return word == "--help" || word == "-h"; });
  try {
    if (help && !words.empty() && words[0] == "train") {
      const auto config = std::ranges::find_if(
          words.begin() + 1, words.end(), [](const auto& word) { return word.ends_with(".yaml"); });
      fmt::print("{}", TrainHelp(config == words.end() ? "" : *config));
      return 0;
    }
    SetLogQuiet(std::ranges::find(words, "--json") != words.end());
    CommandLine line;
    line.verify.allocations = allocations;
    if (words.empty()) {
      fmt::print(stderr, "{}", line.app.help());
      return kUsage;
    }
    if (const auto fault = line.CommandFault(words[0]); !fault.empty()) return Fail(fault, kUsage);
    try {
      line.app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return line.app.exit(error) == 0 ? 0 : kUsage;
    }
    return line.status;
  } catch (const Error& error) {
    return Fail(error.what(), ExitCode(error.code()));
  } catch (const std::bad_alloc&) {
    return Fail("out of memory: a smaller buffer or batch, or fewer rows, would fit", 70);
  } catch (const std::exception& error) {
    return Fail(std::string("internal error: ") + error.what(), 70);
  }
}

}  // namespace weft
