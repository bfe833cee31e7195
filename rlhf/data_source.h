// Where learners from data get their examples: files with weights, or the pairs of a checkable
// task, in an order that the seed and the epoch give, with a part kept back for evaluation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "dataflow/fragment.h"
#include "rlhf/examples.h"
#include "rlhf/row_encoder.h"

namespace weft {

struct DataConfig : Config {
  std::vector<std::string> files;
  std::vector<double> weights;
  std::string task;
  int64_t pairs = 600;
  std::vector<std::string> evaluation_files;
  double evaluation_share = 0.05;
  int64_t evaluation_rows = 200;
  int64_t max_tokens = 1024;
  std::string overlong = "skip";
  std::string bad_lines = "error";
  int64_t max_line_bytes = int64_t{1} << 24;

  void Fields(FieldVisitor& v) override;
  void Check() const override;
  std::string Subject() const;  // for titles: the task, or the first file's name
};

// What a method learns from. Pairs serve as two verdicts each.
enum class ExampleKind : uint8_t { kSequence, kPair, kVerdict };

struct ExampleOptions {
  std::string model;  // path: whose words
  ExampleKind kind = ExampleKind::kSequence;
  LearntPart part = LearntPart::kAnswers;
  uint64_t seed = 1;
  bool quiet = false;  // another source of the run says what is left out of the same data
};

class ExampleSource {
 public:
  // Reads and checks every line. Throws Error naming file and line.
  ExampleSource(const DataConfig& config, const ExampleOptions& options);
  ~ExampleSource();

  // The next training examples. Rows that are too long are passed over and counted, or an error, as
  // the config says.
  Examples Next(int64_t count);
  // Kept back from training, the same for every seed; may be empty.
  const Examples& evaluation() const { return evaluation_; }

  int64_t training_rows() const;
  double epochs() const;  // of the first file
  int64_t skipped() const { return skipped_; }

  // Where it stands. Load throws Error(kConfig) when a file's bytes are not those of Save.
  TensorMap Save() const;
  void Load(const TensorMap& state);

 private:
  struct Table;
  std::unique_ptr<Table> Open(const std::string& path) const;
  // False where the row does not fit, which is counted.
  bool Encode(const Table& table, int64_t row, Example& example);
  size_t Choose() const;  // the table that is furthest behind its weight
  void Shuffle(size_t table);
  bool AddFrom(Table& table, int64_t row, Examples& to);

  const DataConfig config_;
  const ExampleOptions options_;
  const RowEncoder encoder_;
  std::vector<std::unique_ptr<Table>> tables_;
  std::vector<double> weights_;
  Examples evaluation_;
  int64_t skipped_ = 0, endless_ = 0;
};

// What a data fragment sends: a step's examples under "train" and, when they are due, those of the
// evaluation under "evaluation".
struct DataStep {
  Examples train, evaluation;
  bool evaluate_before = false, evaluate_after = false;
  double epochs = 0, skipped = 0;

  TensorMap ToMap() const;
  static DataStep FromMap(const TensorMap& map);
};

struct DataFragmentOptions {
  DataConfig data;
  ExampleOptions examples;
  int64_t batch = 16, total_steps = 1,
          evaluate_every = 0;  // 0: before the first and after the last
};
// Output "batch": one message a step.
FragmentFactory DataFragment(const DataFragmentOptions& options);

}  // namespace weft
