// Commands that make runs and use them.
#include <stdexcept>
#include <vector>

#include "base/check.h"
#include "program/command_line.h"
#include "program/commands.h"

namespace weft {
namespace {

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

// "seeds=1..5", "seeds=1,2,3", other key=value, and files.
void ReadReproArguments(const std::vector<std::string>& arguments, ReproOptions& options) {
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    if (equals == std::string::npos) {
      options.configs.push_back(argument);
    } else if (argument.starts_with("seeds=")) {
      options.seeds = ParseSeeds(argument.substr(6));
    } else {
      options.overrides.push_back(argument);
    }
  }
}

}  // namespace

void CommandLine::AddRuns() {
  const auto train = std::make_shared<TrainOptions>();
  auto* command = Command("train", "train an agent from a config");
  command->add_option("config", train->config, "YAML file, see configs/")->required();
  command->add_option("overrides", train->overrides,
                      "key=value, any key of the config, dotted for sections");
  command->set_help_flag();  // Main answers it: it also lists the keys of the config's algorithm
  command->add_flag_callback(
      "-h,--help", [] {}, "this text and every key of the config");
  Call(command, train, weft::Train);

  const auto resume = std::make_shared<ResumeOptions>();
  command = Command("resume", "go on with a run from its newest checkpoint");
  command->add_option("run", resume->run, "folder or name under runs/")->required();
  command->add_option("overrides", resume->overrides,
                      "key=value to change, such as total_steps=2e6");
  Call(command, resume, weft::Resume);

  const auto evaluate = std::make_shared<EvaluateOptions>();
  command = Command("evaluate", "run episodes with the policy of a run");
  command->add_option("run", evaluate->run, "run, or one of its checkpoint folders")->required();
  command->add_option("--episodes", evaluate->episodes, "episodes to run")
      ->check(CLI::PositiveNumber);
  command->add_option("--seed", evaluate->seed, "seed of the environments; default: the run's");
  command->add_flag("--explore", evaluate->explore,
                    "sample actions instead of taking the policy's mode");
  Call(command, evaluate, weft::EvaluateRun);

  const auto play = std::make_shared<PlayOptions>();
  command = Command("play", "show episodes as a GIF, an MP4, PNGs or text");
  command->add_option("what", play->what, "run, one of its checkpoint folders, or random")
      ->required();
  command->add_option("arguments", play->arguments,
                      "with random: the environment, and key=value of its arguments");
  command->add_option("--output,-o", play->output,
                      "FILE.gif, FILE.mp4, FILE.png (the last frame) or FOLDER (a PNG each "
                      "frame); default: text");
  command
      ->add_option("--episodes", play->episodes,
                   "episodes to show; default: 1, or what fits into --steps or --seconds")
      ->check(CLI::PositiveNumber);
  command->add_option("--steps", play->steps, "steps to show at most; default: 1000 an episode")
      ->check(CLI::PositiveNumber);
  command->add_option("--seconds", play->seconds, "the same in the environment's own time")
      ->check(CLI::PositiveNumber)
      ->excludes("--steps");
  command->add_option("--seed", play->seed, "seed of the environment; default: the run's");
  command->add_flag("--explore", play->explore,
                    "sample actions instead of taking the policy's mode");
  command->add_option("--width", play->width, "of the pictures, in pixels")
      ->check(CLI::PositiveNumber);
  command->add_option("--height", play->height, "of the pictures, in pixels")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--fps", play->frames_per_second,
                   "frames per second at most; steps are left out to keep the environment's "
                   "own time; default: 30")
      ->check(CLI::PositiveNumber);
  command->add_option("--camera", play->camera, "name or number of one of the model's cameras");
  Call(command, play, weft::Play);

  struct ExportOptions {
    std::string run, file;
    bool json = false;
  };
  const auto exported = std::make_shared<ExportOptions>();
  command =
      Command("export", "write the policy of a run as ONNX, normaliser and action map inside");
  command->add_option("run", exported->run, "run, or one of its checkpoint folders")->required();
  command->add_option("file", exported->file, "the .onnx file to write")->required();
  Call(
      command, exported,
      +[](const ExportOptions& o) { return weft::Export(o.run, o.file, o.json); });

  struct WorkerOptions {
    std::string config, address;
    int process = 0;
  };
  const auto worker = std::make_shared<WorkerOptions>();
  command = app_.add_subcommand("worker", "a process of a run (started by weft itself)");
  command->group("");
  command->add_option("config", worker->config)->required();
  command->add_option("process", worker->process)->required();
  command->add_option("address", worker->address)->required();
  Call(
      command, worker,
      +[](const WorkerOptions& o) { return weft::Worker(o.config, o.process, o.address); });

  struct ReproWords {
    ReproOptions options;
    std::vector<std::string> arguments;
    bool json = false;
  };
  const auto repro = std::make_shared<ReproWords>();
  command =
      Command("repro", "train a config for several seeds and print its row of the results table");
  command
      ->add_option("arguments", repro->arguments,
                   "YAML files, seeds=1..5 or seeds=1,2,3, and key=value")
      ->required();
  command->add_option("--parallel", repro->options.parallel, "runs at a time")
      ->check(CLI::PositiveNumber);
  command->add_option("--write", repro->options.write, "replace these rows of a Markdown file");
  Call(
      command, repro, +[](const ReproWords& words) {
        ReproOptions options = words.options;
        options.json = words.json;
        ReadReproArguments(words.arguments, options);
        return weft::Repro(options);
      });
}

}  // namespace weft
