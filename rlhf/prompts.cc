#include "rlhf/prompts.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/random.h"
#include "rlhf/dataset.h"
#include "rlhf/mixture.h"

namespace weft {
namespace {

// What a completion says: a text, or the last message of a chat.
std::string WordsOf(const JsonValue& completion) {
  if (completion.IsString()) return completion.AsString();
  if (!completion.IsArray() || completion.Items().empty()) return "";
  const JsonValue* content = completion.Items().back().Find("content");
  return content != nullptr && content->IsString() ? content->AsString() : "";
}

}  // namespace

void PromptConfig::Fields(FieldVisitor& v) {
  std::vector<std::string> tasks = {""};
  const std::vector<std::string> names = Task::Names();
  tasks.insert(tasks.end(), names.begin(), names.end());
  v.Choice("task", task, tasks, "a checkable task whose prompts are answered");
  v.Names("files", files, "instead: JSONL or Parquet files with a prompt in each row");
  v.Field("weights", weights, "shares of the files in every step; empty: by their prompts",
          Range::Positive());
  v.Names("evaluation_files", evaluation_files, "JSONL or Parquet files to judge the model on");
  v.Field("evaluation_prompts", evaluation_prompts,
          "prompts to judge it on at most; without files for it as many, but no more than a tenth, "
          "are kept back from training",
          Range::AtLeast(0));
  v.Field("max_prompt_tokens", max_prompt_tokens, "longest prompt", Range::AtLeast(1));
  v.Choice("overlong", overlong, {"skip", "error"}, "what becomes of a longer one");
}

void PromptConfig::Check() const {
  if (task.empty() == files.empty()) {
    throw ConfigProblem("task", "name a task or files, one of them");
  }
  if (!weights.empty() && weights.size() != files.size()) {
    throw ConfigProblem("weights", "one for each of the files");
  }
}

PromptStream::PromptStream(const PromptConfig& config, const std::string& model, uint64_t seed,
                           const std::string& comparing)
    : config_(config),
      seed_(seed),
      comparing_(comparing),
      encoder_(model, LearntPart::kAnswers),
      stream_(Task::Stream(seed)) {
  if (!config.task.empty()) {
    task_ = std::make_unique<Task>(config.task);
    for (const TaskPrompt& prompt : task_->held_out()) {
      if (std::ssize(held_out_) < config.evaluation_prompts) held_out_.push_back(Encode(prompt));
    }
    return;
  }
  for (size_t file = 0; file < config.files.size(); ++file) {
    AddFile(config.files[file], rows_);
    files_.resize(rows_.size(), file);
  }
  for (const std::string& path : config.evaluation_files) AddFile(path, held_out_);
  if (config.evaluation_files.empty()) {
    KeepBack();
  } else if (std::ssize(held_out_) > config.evaluation_prompts) {
    held_out_.resize(static_cast<size_t>(config.evaluation_prompts));
  }
  MakeTables();
}

void PromptStream::KeepBack() {
  // The same for every seed.
  std::vector<int64_t> order(rows_.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  Rng(1, Purpose::kEvaluation).Shuffle(order);
  const int64_t keep = std::min(config_.evaluation_prompts, std::ssize(rows_) / 10);
  std::vector<Prompt> training;
  std::vector<size_t> files;
  for (int64_t i = 0; i < std::ssize(order); ++i) {
    (i < keep ? held_out_ : training).push_back(std::move(rows_[order[i]]));
    if (i >= keep) files.push_back(files_[order[i]]);
  }
  rows_ = std::move(training);
  files_ = std::move(files);
}

void PromptStream::MakeTables() {
  tables_.resize(std::max<size_t>(1, config_.weights.size()));
  for (int64_t row = 0; row < std::ssize(rows_); ++row) {
    tables_[config_.weights.empty() ? 0 : files_[row]].rows.push_back(row);
  }
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (tables_[t].rows.empty()) {
      throw Error(ErrorCode::kConfig,
                  (config_.weights.empty() ? "data.files" : config_.files[t]) +
                      ": no prompt of at most " + std::to_string(config_.max_prompt_tokens) +
                      " tokens is left (" + std::to_string(skipped_) + " are longer)");
    }
    Shuffle(t);
  }
}

PromptStream::~PromptStream() = default;

Prompt PromptStream::Encode(const TaskPrompt& prompt) const {
  DataRow row;
  row.kind = RowKind::kPrompt;
  row.place = config_.task;
  row.prompt = prompt.messages;
  return {.ids = encoder_.EncodePrompt(row), .expected = prompt.expected};
}

void PromptStream::AddFile(const std::string& path, std::vector<Prompt>& to) {
  const Dataset file(path, {});
  for (int64_t i = 0; i < file.rows(); ++i) {
    const DataRow row = file.Row(i);
    if (row.kind != RowKind::kPrompt && row.kind != RowKind::kCompletion) {
      throw Error(ErrorCode::kConfig, row.place +
                                          ": a prompt is wanted, alone or with the "
                                          "completion that is expected, this is " +
                                          std::string(Name(row.kind)));
    }
    Prompt prompt{.ids = encoder_.EncodePrompt(row), .expected = WordsOf(row.chosen)};
    if (!comparing_.empty() && prompt.expected.empty()) {
      throw Error(ErrorCode::kConfig, row.place + ": there is no completion, which the reward " +
                                          comparing_ + " compares answers with");
    }
    if (prompt.ids.empty()) {
      throw Error(ErrorCode::kConfig, row.place + ": the prompt has no token");
    }
    if (std::ssize(prompt.ids) > config_.max_prompt_tokens) {
      if (config_.overlong == "error") {
        throw Error(ErrorCode::kConfig, row.place + ": the prompt has " +
                                            std::to_string(prompt.ids.size()) +
                                            " tokens, max_prompt_tokens is " +
                                            std::to_string(config_.max_prompt_tokens) +
                                            "; raise it, or set overlong: skip");
      }
      ++skipped_;
      continue;
    }
    to.push_back(std::move(prompt));
  }
}

void PromptStream::Shuffle(size_t table) {
  Table& t = tables_[table];
  t.order = t.rows;
  Rng(seed_, Purpose::kReplay, (table << 32) + static_cast<uint64_t>(t.epoch)).Shuffle(t.order);
}

std::vector<Prompt> PromptStream::Next(int64_t count) {
  std::vector<Prompt> prompts;
  if (task_) {
    for (const TaskPrompt& prompt : task_->Training(stream_, count)) {
      prompts.push_back(Encode(prompt));
    }
    return prompts;
  }
  while (std::ssize(prompts) < count) {
    std::vector<int64_t> drawn;
    for (const Table& table : tables_) drawn.push_back(table.drawn());
    const size_t chosen = config_.weights.empty() ? 0 : FurthestBehind(config_.weights, drawn);
    Table& table = tables_[chosen];
    if (table.cursor == std::ssize(table.order)) {
      ++table.epoch;
      table.cursor = 0;
      Shuffle(chosen);
    }
    prompts.push_back(rows_[table.order[table.cursor++]]);
  }
  return prompts;
}

TensorMap PromptStream::Save() const {
  std::vector<int64_t> values = {static_cast<int64_t>(stream_.state())};
  for (const Table& table : tables_) {
    values.insert(values.end(), {table.epoch, table.cursor, std::ssize(table.rows)});
  }
  TensorMap state;
  state.Set("stream", Tensor::From<int64_t>({std::ssize(values)}, values));
  return state;
}

void PromptStream::Load(const TensorMap& state) {
  const auto values = state.At("stream").data<int64_t>();
  stream_ = SplitMix64(static_cast<uint64_t>(values[0]));
  if (task_) return;
  int64_t had = 0;
  for (size_t i = 3; i < values.size(); i += 3) had += values[i];
  bool same = values.size() == 1 + 3 * tables_.size();
  for (size_t t = 0; same && t < tables_.size(); ++t) {
    same = values[3 * t + 3] == std::ssize(tables_[t].rows);
  }
  if (!same) {
    throw Error(ErrorCode::kConfig, "data.files: " + std::to_string(rows_.size()) +
                                        " prompts, the run that is resumed had " +
                                        std::to_string(had) + "; give it the same files");
  }
  for (size_t t = 0; t < tables_.size(); ++t) {
    tables_[t].epoch = values[3 * t + 1];
    tables_[t].cursor = values[3 * t + 2];
    Shuffle(t);
  }
}

}  // namespace weft
