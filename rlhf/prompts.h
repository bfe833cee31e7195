// What a model is asked: the prompts of a checkable task, or those of files, in an order that the
// seed gives, with some kept back to judge the model by.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "rlhf/row_encoder.h"
#include "rlhf/tasks.h"
#include "tensor/tensor_map.h"

namespace weft {

struct PromptConfig : Config {
  std::string task;
  std::vector<std::string> files;
  std::vector<double> weights;  // of the files; empty: by their prompts
  std::vector<std::string> evaluation_files;
  int64_t evaluation_prompts = 200;
  int64_t max_prompt_tokens = 1024;
  std::string overlong = "skip";

  void Fields(FieldVisitor& v) override;
  void Check() const override;
};

struct Prompt {
  std::vector<int32_t> ids;
  std::string expected;  // the answer that its row or task gives, where there is one
};

class PromptStream {
 public:
  // model: path of the one whose words prompts are put in. Throws Error naming file and line for
  // rows that are no prompts (a prompt, alone or with its completion, which is then expected), and
  // for one without a completion where `comparing`, a reward, needs it.
  PromptStream(const PromptConfig& config, const std::string& model, uint64_t seed,
               const std::string& comparing = "");
  ~PromptStream();

  std::vector<Prompt> Next(int64_t count);
  const std::vector<Prompt>& held_out() const { return held_out_; }
  int64_t skipped() const { return skipped_; }  // too long

  TensorMap Save() const;
  void Load(const TensorMap& state);

 private:
  // Rows that are drawn from together: all, or those of a file that has a weight.
  struct Table {
    std::vector<int64_t> rows, order;  // order: of this epoch
    int64_t epoch = 0, cursor = 0;
    int64_t drawn() const { return epoch * std::ssize(rows) + cursor; }
  };

  Prompt Encode(const TaskPrompt& prompt) const;
  void AddFile(const std::string& path, std::vector<Prompt>& to);
  void KeepBack();  // some rows, for the evaluation
  void MakeTables();
  void Shuffle(size_t table);

  const PromptConfig config_;
  const uint64_t seed_;
  const std::string comparing_;
  RowEncoder encoder_;
  std::unique_ptr<Task> task_;
  SplitMix64 stream_;
  std::vector<Prompt> rows_, held_out_;
  std::vector<size_t> files_;  // of each row
  std::vector<Table> tables_;
  int64_t skipped_ = 0;
};

}  // namespace weft
