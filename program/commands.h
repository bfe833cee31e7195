// The subcommands as functions. program/main.cc parses the command line into these options; each
// command prints for people and, with json, ends with one machine-readable line. They return the
// exit status and throw Error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft {

class ConfigSource;

struct TrainOptions {
  std::string config;                  // a file
  std::vector<std::string> overrides;  // key=value
  bool json = false;
};
int Train(const TrainOptions& options);

struct ResumeOptions {
  std::string run;
  std::vector<std::string> overrides;
  bool json = false;
};
int Resume(const ResumeOptions& options);

// A process of a run, started by the main one.
int Worker(const std::string& config, int process, const std::string& address);

struct EvaluateOptions {
  std::string run;  // a run or one of its checkpoint folders
  int64_t episodes = 100;
  int64_t seed = -1;  // -1: the run's
  bool explore = false;
  bool json = false;
};
int EvaluateRun(const EvaluateOptions& options);

struct PlayOptions {
  std::string what;                    // a run, one of its checkpoint folders, or "random"
  std::vector<std::string> arguments;  // with random: the environment and its key=value
  int64_t episodes = 0;                // 0: one or, with steps or seconds, as many as fit
  int64_t steps = 0;                   // at most, in all; 0: 1000 an episode
  double seconds = 0;                  // the same in the environment's own time
  int64_t seed = -1;                   // -1: the run's
  bool explore = false;
  std::string output;  // FILE.gif, FILE.mp4, FILE.png or FOLDER; "": text on standard output
  int64_t width = 0, height = 0;  // 0: the environment's usual size
  double frames_per_second = 30;  // at most
  std::string camera;
  bool json = false;
};
int Play(const PlayOptions& options);

// fields: says what each number of an observation is, where that is known. only: this id alone.
int List(const std::string& what, const std::string& only, bool fields, bool json);
struct GraphText {
  std::string dot, text, plan;
};
GraphText DescribeGraph(const std::string& config, const std::vector<std::string>& overrides);
// Of each step; of one that needs what an earlier step has yet to leave, why there is none.
int GraphOfPipeline(const ConfigSource& source, bool dot, bool json);
int Graph(const std::string& config, const std::vector<std::string>& overrides, bool dot,
          bool json);
// The keys of an algorithm, for `weft train CONFIG --help`; those that all algorithms share when
// config is "".
std::string TrainHelp(const std::string& config);

struct BenchOptions {
  std::string what;  // machine, learn, environments, language, rlhf
  std::string only;
  int threads = 0;
  int repeats = 5;
  bool peers = false;
  std::string write;  // a Markdown file whose section of this bench is replaced
  bool json = false;
};
int Bench(const BenchOptions& options);

struct VerifyOptions {
  std::string id, file;   // one file
  std::string reference;  // a folder, with all
  bool all = false;
  bool json = false;
  int64_t (*allocations)() = nullptr;  // see main.h
};
int VerifyEnvironment(const VerifyOptions& options);
int VerifyHostile(const VerifyOptions& options);

struct TokenizeOptions {
  std::string model;       // a name, a folder, a tokenizer.json or a .gguf
  std::string text, file;  // neither: standard input
  bool special = false;    // with the tokens that are put around a text
  bool plain = false;      // control tokens inside the text are plain text
  bool ids = false, pieces = false;
  // Instead of showing tokens: learn a byte-level BPE from these files of text.
  std::vector<std::string> train;
  int64_t vocabulary = 32'000;
  std::string pre = "gpt-2";          // the pre-tokenizer, as GGUF names it
  std::vector<std::string> specials;  // control tokens, ids from 0
  std::string output;                 // a folder to make
  bool json = false;
};
int Tokenize(const TokenizeOptions& options);

struct VerifyTextOptions {
  std::string path;       // a model, or a file of templates with results
  std::string reference;  // its recording
  bool json = false;
};
int VerifyTokenizerFile(const VerifyTextOptions& options);
int VerifyTemplateFile(const VerifyTextOptions& options);
int VerifyEncoderFile(const VerifyTextOptions& options);

struct ReproOptions {
  std::vector<std::string> configs;
  std::vector<std::string> overrides;
  std::vector<int64_t> seeds = {1};
  int parallel = 1;
  std::string write;
  bool json = false;
};
int Repro(const ReproOptions& options);

struct PlotOptions {
  std::vector<std::string> runs;
  std::string metric = "evaluation_return";
  std::string over;    // another metric of the same steps; "": steps
  std::string output;  // .png or .svg; "": METRIC.png in the first run's folder
  bool json = false;
};
// Draws; returns the output. Throws Error(kConfig) for what is not there, Error(kUnavailable)
// without gnuplot.
std::string DrawPlot(const PlotOptions& options);
int Plot(const PlotOptions& options);

// Files of a new environment: in weft's own tree when the current folder is one, else a project.
// mujoco: a task for a MuJoCo model, which needs no C++.
int NewEnvironment(const std::string& name, bool mujoco, bool json);

struct ConvertOptions {
  std::string from;     // a name, a folder or a .gguf file
  std::string to;       // a .gguf file, or a folder that does not exist
  std::string type;     // of the weights; "": as they are
  std::string adapter;  // a LoRA adapter to be merged; "": none
  bool json = false;
};
int Convert(const ConvertOptions& options);
// What is not given is left to the model's own file.
struct SamplingFlags {
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::optional<int64_t> top_k;
  int64_t max_new_tokens = 512;
  uint64_t seed = 0;
  std::vector<std::string> stop;  // texts that end an answer
};

struct ChatOptionsOfCommand {
  std::string model;  // a folder, a .gguf or a name
  std::string system, message;
  std::string precision = "auto";  // auto, bf16, f32 or int8
  std::string adapter;             // a folder of a LoRA adapter; "": none
  SamplingFlags sampling;
  int threads = 0;  // 0: all
  bool statistics = false;
};
int Chat(const ChatOptionsOfCommand& options);

struct GenerateOptions {
  std::string model, file, output;   // JSON lines in and out; "" out: standard output
  std::vector<std::string> prompts;  // texts
  std::string precision = "auto", adapter;
  SamplingFlags sampling;
  int64_t samples = 1, batch = 64;
  int threads = 0;
};
int GenerateAnswers(const GenerateOptions& options);

struct ServeOptions {
  std::string model;
  std::string host = "127.0.0.1";
  int port = 8000;    // 0: any that is free
  std::string token;  // "": anybody may ask
  int64_t max_requests = 64;
  int64_t max_body = 4 << 20;  // bytes
  std::string precision = "auto", adapter;
  int threads = 0;
  bool json = false;
};
int Serve(const ServeOptions& options);

// A config whose algorithm is `pipeline`.
int TrainPipeline(const ConfigSource& source, bool json);

struct ServeRewardOptions {
  std::string model;
  std::string host = "127.0.0.1";
  int port = 5000;  // 0: any that is free
  std::string precision = "auto";
  int threads = 0;
};
int ServeReward(const ServeRewardOptions& options);

struct PerplexityOptions {
  std::string model, file;
  std::string precision = "auto", adapter;
  int64_t context = 1024, stride = 0;
  int threads = 0;
  bool json = false;
};
int Perplexity(const PerplexityOptions& options);

// What a model sees of a file of data.
struct InspectDataOptions {
  std::string file, model;
  std::string learn = "answers";  // or all
  int64_t rows = 3;               // shown
  bool json = false;
};
int InspectData(const InspectDataOptions& options);

// Models against the recordings of a folder of the form of reference/language, or one model.
struct VerifyLanguageOptions {
  std::string model, expected, reference;
  bool json = false;
};
int VerifyLanguage(const VerifyLanguageOptions& options);

int Export(const std::string& run, const std::string& file, bool json);

}  // namespace weft
