#include "rlhf/data_source.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "rlhf/mixture.h"
#include "rlhf/task_pairs.h"
#include "rlhf/tasks.h"

namespace weft {
namespace {

// Which rows are kept back does not depend on the run's seed: runs of several seeds are compared on
// the same rows.
constexpr uint64_t kSplitSeed = 1;

bool Fits(RowKind kind, ExampleKind wanted) {
  switch (wanted) {
    case ExampleKind::kSequence:
      return kind == RowKind::kText || kind == RowKind::kChat || kind == RowKind::kCompletion;
    case ExampleKind::kPair:
      return kind == RowKind::kPair;
    case ExampleKind::kVerdict:
      return kind == RowKind::kPair || kind == RowKind::kVerdict;
  }
  return false;
}

std::string_view Wanted(ExampleKind kind) {
  switch (kind) {
    case ExampleKind::kSequence:
      return "text, messages, or prompt and completion";
    case ExampleKind::kPair:
      return "pairs (chosen, rejected)";
    case ExampleKind::kVerdict:
      return "verdicts (prompt, completion, label) or pairs (chosen, rejected)";
  }
  return "";
}

}  // namespace

// Rows of one file or task.
struct ExampleSource::Table {
  std::string name;
  std::unique_ptr<Dataset> file;
  std::vector<DataRow> made;      // instead of a file
  int64_t first_number = 0;       // of its examples, over all tables
  std::vector<int64_t> training;  // rows
  std::vector<int64_t> order;     // of this epoch
  int64_t epoch = 0, next = 0, drawn = 0;

  int64_t rows() const { return file ? file->rows() : std::ssize(made); }
  RowKind kind(int64_t row) const { return file ? file->kind(row) : made[row].kind; }
  DataRow Row(int64_t row) const { return file ? file->Row(row) : made[row]; }
  uint32_t checksum() const { return file ? file->checksum() : 0; }
};

void DataConfig::Fields(FieldVisitor& v) {
  v.Names("files", files, "JSONL or Parquet files to learn from");
  v.Field("weights", weights, "shares of the files in every step; empty: by their rows",
          Range::Positive());
  v.Field("task", task, "instead of files: the pairs of a checkable task (sort3, max4, min3)");
  v.Field("pairs", pairs, "of the task, to train on", Range::Between(2, 1'000'000));
  v.Names("evaluation_files", evaluation_files, "JSONL or Parquet files to evaluate on");
  v.Field("evaluation_share", evaluation_share,
          "where there are no such files: share of each file's rows to keep back for it",
          Range::Between(0, 0.9));
  v.Field("evaluation_rows", evaluation_rows, "rows to evaluate on at most", Range::AtLeast(0));
  v.Field("max_tokens", max_tokens, "longest sequence", Range::AtLeast(2));
  v.Choice("overlong", overlong, {"skip", "error"},
           "what becomes of a row that is longer, or has no token to learn");
  v.Choice("bad_lines", bad_lines, {"error", "skip"},
           "what becomes of a line that is no row; what is skipped is counted");
  v.Field("max_line_bytes", max_line_bytes, "longest line", Range::AtLeast(2));
}

void DataConfig::Check() const {
  if (files.empty() == task.empty()) {
    throw ConfigProblem("files", "name files to learn from, or a task, not both");
  }
  if (!weights.empty() && weights.size() != files.size()) {
    throw ConfigProblem("weights", "one for each of the files");
  }
  if (!task.empty()) {
    const std::vector<std::string> names = Task::Names(/*turns=*/1);
    if (std::ranges::find(names, task) == names.end()) {
      throw ConfigProblem("task", "there are " + Join(names, ", "));
    }
  }
}

std::string DataConfig::Subject() const {
  return files.empty() ? task : std::filesystem::path(files[0]).stem().string();
}

ExampleSource::~ExampleSource() = default;

ExampleSource::ExampleSource(const DataConfig& config, const ExampleOptions& options)
    : config_(config), options_(options), encoder_(options.model, options.part) {
  std::vector<std::unique_ptr<Table>> kept_back;
  if (!config.task.empty()) {
    auto& table = tables_.emplace_back(std::make_unique<Table>());
    table->name = config.task;
    table->made = BalancedPairs(config.task, options.seed, config.pairs, false);
    auto& held_out = kept_back.emplace_back(std::make_unique<Table>());
    held_out->name = config.task;
    held_out->made = BalancedPairs(config.task, options.seed, config.evaluation_rows, true);
  }
  for (const std::string& path : config.files) tables_.push_back(Open(path));
  for (const std::string& path : config.evaluation_files) kept_back.push_back(Open(path));

  int64_t number = 0;
  for (size_t t = 0; t < tables_.size(); ++t) {
    Table& table = *tables_[t];
    table.first_number = number;
    number += 2 * table.rows();
    std::vector<int64_t> rows(table.rows());
    std::iota(rows.begin(), rows.end(), 0);
    const bool split = kept_back.empty() && config.evaluation_share > 0 && table.rows() > 1;
    if (split) {
      Rng(kSplitSeed, Purpose::kReplay, t << 20).Shuffle(rows);
      const auto share = static_cast<int64_t>(
          std::llround(config.evaluation_share * static_cast<double>(table.rows())));
      const int64_t keep = std::clamp<int64_t>(share, 1, table.rows() - 1);
      for (int64_t i = 0; i < keep; ++i) {
        if (evaluation_.count() < config.evaluation_rows) AddFrom(table, rows[i], evaluation_);
      }
      rows.erase(rows.begin(), rows.begin() + keep);
      std::ranges::sort(rows);
    }
    table.training = std::move(rows);
    weights_.push_back(config.weights.empty() ? static_cast<double>(table.training.size())
                                              : config.weights[t]);
    Shuffle(t);
  }
  for (const auto& table : kept_back) {
    table->first_number = number;
    number += 2 * table->rows();
    for (int64_t row = 0; row < table->rows(); ++row) {
      if (evaluation_.count() < config.evaluation_rows) AddFrom(*table, row, evaluation_);
    }
  }
}

std::unique_ptr<ExampleSource::Table> ExampleSource::Open(const std::string& path) const {
  auto table = std::make_unique<Table>();
  table->name = path;
  table->file =
      std::make_unique<Dataset>(path, DatasetOptions{.skip_bad_lines = config_.bad_lines == "skip",
                                                     .max_line_bytes = config_.max_line_bytes});
  if (const int64_t bad = table->file->skipped(); bad > 0 && !options_.quiet) {
    LogWarn(path + ": " + std::to_string(bad) + " lines are left out; the first is " +
            table->file->first_fault());
  }
  for (int64_t row = 0; row < table->rows(); ++row) {
    if (Fits(table->kind(row), options_.kind)) continue;
    throw Error(ErrorCode::kConfig,
                table->Row(row).place + ": is " + std::string(Name(table->kind(row))) +
                    "; this method learns from " + std::string(Wanted(options_.kind)));
  }
  return table;
}

bool ExampleSource::Encode(const Table& table, int64_t row, Example& example) {
  const DataRow data = table.Row(row);
  const bool skip = config_.overlong == "skip";
  std::string reason;
  try {
    example = encoder_.Encode(data);
    int64_t longest = 0;
    for (const MarkedSequence& sequence : example.sequences) {
      longest = std::max(longest, std::ssize(sequence.ids));
    }
    if (longest > config_.max_tokens) {
      reason = data.place + ": has " + std::to_string(longest) + " tokens, max_tokens is " +
               std::to_string(config_.max_tokens);
      if (!skip) throw Error(ErrorCode::kInvalidArgument, reason);
    }
  } catch (const Error& error) {
    // A template that cannot tell whose words are whose fails every row.
    if (!skip || error.code() != ErrorCode::kInvalidArgument) throw;
    if (error.message().find("{% generation %}") != std::string::npos) throw;
    reason = error.message();
  }
  if (!reason.empty()) {
    if (skipped_++ == 0 && !options_.quiet) {
      LogWarn("skipped: " + reason + " (rows_skipped counts more of them)");
    }
    return false;
  }
  if (!example.ends && endless_++ == 0 && !options_.quiet) {
    LogWarn(data.place +
            ": what is learnt of it does not end with a token that ends answers: the model will "
            "not learn from it when to stop");
  }
  return true;
}

bool ExampleSource::AddFrom(Table& table, int64_t row, Examples& to) {
  Example example;
  if (!Encode(table, row, example)) return false;
  const int64_t number = table.first_number + 2 * row;
  if (options_.kind != ExampleKind::kVerdict || example.sequences.size() == 1) {
    to.Add(example, number);
    return true;
  }
  for (int64_t i = 0; i < 2; ++i) {
    to.Add({.place = example.place, .sequences = {example.sequences[i]}, .label = i == 0},
           number + i);
  }
  return true;
}

void ExampleSource::Shuffle(size_t index) {
  Table& table = *tables_[index];
  table.order = table.training;
  Rng(options_.seed, Purpose::kReplay, (index << 20) + 1 + static_cast<uint64_t>(table.epoch))
      .Shuffle(table.order);
}

size_t ExampleSource::Choose() const {
  std::vector<int64_t> drawn;
  for (const auto& table : tables_) drawn.push_back(table->drawn);
  return FurthestBehind(weights_, drawn);
}

Examples ExampleSource::Next(int64_t count) {
  Examples examples;
  int64_t in_vain = 0;
  while (examples.count() < count) {
    const size_t chosen = Choose();
    Table& table = *tables_[chosen];
    if (table.next == std::ssize(table.order)) {
      ++table.epoch;
      table.next = 0;
      Shuffle(chosen);
    }
    const int64_t row = table.order[table.next++];
    ++table.drawn;
    in_vain = AddFrom(table, row, examples) ? 0 : in_vain + 1;
    if (in_vain > 2 * training_rows()) {
      throw Error(ErrorCode::kConfig, table.name + ": no row of it can be learnt from: all are " +
                                          "longer than max_tokens or have nothing to learn");
    }
  }
  return examples;
}

int64_t ExampleSource::training_rows() const {
  int64_t rows = 0;
  for (const auto& table : tables_) rows += std::ssize(table->training);
  return rows;
}

double ExampleSource::epochs() const {
  const Table& table = *tables_[0];
  return static_cast<double>(table.epoch) +
         static_cast<double>(table.next) / static_cast<double>(table.order.size());
}

TensorMap ExampleSource::Save() const {
  std::vector<int64_t> state = {skipped_, endless_};
  for (const auto& table : tables_) {
    for (const int64_t value : {table->epoch, table->next, table->drawn,
                                static_cast<int64_t>(table->checksum()), table->rows()}) {
      state.push_back(value);
    }
  }
  TensorMap map;
  map.Set("data", Tensor::From<int64_t>({std::ssize(state)}, state));
  return map;
}

void ExampleSource::Load(const TensorMap& map) {
  const auto state = map.At("data").data<int64_t>();
  if (state.size() != 2 + 5 * tables_.size()) {
    throw Error(ErrorCode::kConfig,
                "the checkpoint is of a run on " + std::to_string((state.size() - 2) / 5) +
                    " data files, the config names " + std::to_string(tables_.size()));
  }
  skipped_ = state[0];
  endless_ = state[1];
  for (size_t t = 0; t < tables_.size(); ++t) {
    Table& table = *tables_[t];
    const auto of = state.subspan(2 + 5 * t, 5);
    if (of[3] != static_cast<int64_t>(table.checksum()) || of[4] != table.rows()) {
      throw Error(ErrorCode::kConfig,
                  table.name +
                      ": is not the file that the run began with; its rows would be "
                      "learnt twice or never");
    }
    table.epoch = of[0];
    Shuffle(t);
    table.next = of[1];
    table.drawn = of[2];
  }
}

TensorMap DataStep::ToMap() const {
  TensorMap map;
  map.Merge("train", train.ToMap());
  if (evaluate_before || evaluate_after) map.Merge("evaluation", evaluation.ToMap());
  map.Set("evaluate", Tensor::From<uint8_t>({2}, {evaluate_before, evaluate_after}));
  map.Set("progress", Tensor::From<double>({2}, {epochs, skipped}));
  return map;
}

DataStep DataStep::FromMap(const TensorMap& map) {
  DataStep step;
  step.train = Examples::FromMap(map.Extract("train"));
  step.evaluate_before = map.At("evaluate").data<uint8_t>()[0] != 0;
  step.evaluate_after = map.At("evaluate").data<uint8_t>()[1] != 0;
  if (step.evaluate_before || step.evaluate_after) {
    step.evaluation = Examples::FromMap(map.Extract("evaluation"));
  }
  step.epochs = map.At("progress").data<double>()[0];
  step.skipped = map.At("progress").data<double>()[1];
  return step;
}

namespace {

class Source final : public Fragment {
 public:
  explicit Source(const DataFragmentOptions& options)
      : options_(options), source_(options.data, options.examples) {}

  PortSet Needs() const override { return {}; }
  void Step(Ports& ports) override {
    DataStep step{.train = source_.Next(options_.batch), .evaluation = {}};
    ++steps_;
    if (source_.evaluation().count() > 0) {
      const int64_t every = options_.evaluate_every;
      step.evaluate_before = steps_ == 1;
      step.evaluate_after = steps_ == options_.total_steps || (every > 0 && steps_ % every == 0);
      if (step.evaluate_before || step.evaluate_after) step.evaluation = source_.evaluation();
    }
    step.epochs = source_.epochs();
    step.skipped = static_cast<double>(source_.skipped());
    ports.Write(0, {.body = step.ToMap(), .version = steps_});
  }
  TensorMap Save() const override {
    TensorMap state = source_.Save();
    state.Set("steps", Tensor::From<int64_t>({1}, {steps_}));
    return state;
  }
  void Load(const TensorMap& state) override {
    source_.Load(state);
    steps_ = state.At("steps").data<int64_t>()[0];
  }

 private:
  const DataFragmentOptions options_;
  ExampleSource source_;
  int64_t steps_ = 0;
};

}  // namespace

FragmentFactory DataFragment(const DataFragmentOptions& options) {
  return {.ports = {.inputs = {}, .outputs = {{.name = "batch"}}},
          .make = [options](const Replica&) { return std::make_unique<Source>(options); }};
}

}  // namespace weft
