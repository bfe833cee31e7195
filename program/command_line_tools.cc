// Commands around runs: what there is, pictures of it, and how fast it is.
#include <vector>

#include "program/command_line.h"
#include "program/commands.h"

namespace weft {

void CommandLine::AddTools() {
  struct ListOptions {
    std::string what, id;
    bool fields = false, json = false;
  };
  const auto list = std::make_shared<ListOptions>();
  auto* command = Command("list", "what can be named in a config");
  command->add_option("what", list->what, "algorithms or environments")
      ->required()
      ->check(CLI::IsMember({"algorithms", "environments"}));
  command->add_option("id", list->id, "this environment alone");
  command->add_flag("--fields", list->fields, "what each number of an observation is");
  Call(
      command, list,
      +[](const ListOptions& o) { return weft::List(o.what, o.id, o.fields, o.json); });

  struct NewOptions {
    std::string what, name;
    bool mujoco = false, json = false;
  };
  const auto created = std::make_shared<NewOptions>();
  command = Command("new", "write the files of a new environment that works");
  command->add_option("what", created->what, "environment")
      ->required()
      ->check(CLI::IsMember({"environment"}));
  command->add_option("name", created->name, "such as MyLamp")->required();
  command->add_flag("--mujoco", created->mujoco, "a MuJoCo model and a task in YAML, without C++");
  Call(
      command, created,
      +[](const NewOptions& o) { return weft::NewEnvironment(o.name, o.mujoco, o.json); });

  struct GraphOptions {
    std::string config;
    std::vector<std::string> overrides;
    bool dot = false, json = false;
  };
  const auto graph = std::make_shared<GraphOptions>();
  command = Command("graph", "print the fragment graph of a config");
  command->add_option("config", graph->config, "YAML file")->required();
  command->add_option("overrides", graph->overrides, "key=value");
  command->add_flag("--dot", graph->dot, "as Graphviz DOT instead of text");
  Call(
      command, graph,
      +[](const GraphOptions& o) { return weft::Graph(o.config, o.overrides, o.dot, o.json); });

  const auto plot = std::make_shared<PlotOptions>();
  command = Command("plot", "plot a metric of one or more runs");
  command->add_option("runs", plot->runs, "folders or names under runs/")->required();
  command->add_option("--metric", plot->metric, "a key of metrics.jsonl");
  command->add_option("--over", plot->over, "another such key instead of steps, as kl");
  command->add_option("--output,-o", plot->output,
                      ".png or .svg; default: METRIC.png in the first run");
  Call(command, plot, weft::Plot);

  const auto bench = std::make_shared<BenchOptions>();
  command = Command("bench", "measure speed beside recorded peers");
  command->add_option("what", bench->what, "machine, learn, environments, language or rlhf")
      ->required()
      ->check(CLI::IsMember({"machine", "learn", "environments", "language", "rlhf"}));
  command->add_option("--only", bench->only, "one row by name");
  command->add_option("--threads", bench->threads, "threads; 0: one per core");
  command->add_option("--repeats", bench->repeats, "runs of each row; the median counts")
      ->check(CLI::PositiveNumber);
  command->add_flag(
      "--peers", bench->peers,
      "language, rlhf: run llama.cpp, torch and TRL here, in turns, by the Python that "
      "WEFT_PYTHON names (llama-cpp-python; torch, transformers, peft; trl)");
  command->add_option("--write", bench->write, "replace this bench's section of a Markdown file");
  Call(command, bench, weft::Bench);
}

}  // namespace weft
