// Rows of data on disk: a JSONL or Parquet file with TRL's column names, mapped into memory, with
// the places of its lines. What kind a row is its columns say:
//
//   text                          words to go on from
//   prompt                        what is to be answered
//   messages                      a chat
//   prompt, completion            a prompt and its answer; with label (true, false): a verdict
//   chosen, rejected [, prompt]   a pair; without prompt it is the beginning that both share
//
// prompt, completion, chosen and rejected are texts, or all lists of messages (role, content). A
// pair may have a margin. Texts that begin with "\n\nHuman:" are read as the chats they stand for
// (Bai et al. 2022). Other columns are ignored.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "language/json.h"

namespace weft {

enum class RowKind : uint8_t { kText, kPrompt, kChat, kCompletion, kVerdict, kPair };
std::string_view Name(RowKind kind);  // as an error would say it: "a pair (chosen, rejected)"

struct DataRow {
  RowKind kind = RowKind::kText;
  std::string place;           // "FILE:LINE" or, of Parquet, "FILE:ROW" from 1, for messages
  std::string text;            // kText
  JsonValue messages;          // kChat
  JsonValue prompt;            // a text or messages
  JsonValue chosen, rejected;  // a text or messages, as prompt; a lone completion is `chosen`
  bool label = false;          // kVerdict
  double margin = 0;           // kPair

  bool conversational() const { return kind == RowKind::kChat || prompt.IsArray(); }
};

// Reads one row. Throws Error(kCorrupt) "place: reason" for what is no row: JSON that does not
// parse, missing, empty or mistyped columns, a pair whose answers are equal, a name in other case.
DataRow ParseRow(std::string_view line, const std::string& place);

struct DatasetOptions {
  bool skip_bad_lines = false;  // else the first one is an error
  int64_t max_line_bytes = int64_t{1} << 24;
};

class Dataset {
 public:
  // Reads every line once, so that a bad one is found before anything is learnt. Blank lines count
  // for nothing. Throws Error(kCorrupt) as ParseRow, Error(kIo) for a file that cannot be read and
  // Error(kCorrupt) for one without rows; of Parquet files also what ParquetAsJsonLines throws.
  Dataset(const std::string& path, const DatasetOptions& options);

  const std::string& path() const { return path_; }
  int64_t rows() const { return std::ssize(lines_); }
  DataRow Row(int64_t row) const;  // thread-safe
  RowKind kind(int64_t row) const { return lines_[row].kind; }
  // Lines that were left out, and what was wrong with the first of them.
  int64_t skipped() const { return skipped_; }
  const std::string& first_fault() const { return first_fault_; }
  // Of the bytes: a run that is resumed must find the same.
  uint32_t checksum() const { return checksum_; }

 private:
  struct Line {
    size_t begin, end;
    int64_t number;
    RowKind kind;
  };
  std::string_view Text(const Line& line) const;

  std::string path_;
  std::unique_ptr<MappedFile> file_;
  std::vector<Line> lines_;
  int64_t skipped_ = 0;
  std::string first_fault_;
  uint32_t checksum_ = 0;
};

}  // namespace weft
