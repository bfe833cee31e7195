// weft data inspect: what a model will see of a file of data.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/check.h"
#include "language/model_name.h"
#include "program/commands.h"
#include "rlhf/row_encoder.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// Around what is learnt: green on a terminal, double brackets elsewhere.
struct Marks {
  std::string_view begin, end;
};
Marks MarksFor(bool terminal) {
  return terminal ? Marks{"\x1b[32m", "\x1b[0m"} : Marks{"[[", "]]"};
}

std::string Marked(const Tokenizer& tokenizer, const MarkedSequence& sequence, const Marks& marks) {
  std::string text;
  for (size_t begin = 0; begin < sequence.ids.size();) {
    size_t end = begin;
    while (end < sequence.ids.size() && sequence.learnt[end] == sequence.learnt[begin]) ++end;
    const std::string words = tokenizer.Decode(std::span(sequence.ids).subspan(begin, end - begin));
    text +=
        sequence.learnt[begin] != 0 ? fmt::format("{}{}{}", marks.begin, words, marks.end) : words;
    begin = end;
  }
  return text;
}

struct Totals {
  std::map<std::string, int64_t> kinds;
  int64_t rows = 0, unusable = 0, tokens = 0, learnt = 0, longest = 0, endless = 0;
  std::string first_unusable;

  void Add(const Example& example) {
    ++rows;
    endless += !example.ends;
    for (const MarkedSequence& sequence : example.sequences) {
      tokens += std::ssize(sequence.ids);
      learnt += sequence.learnt_tokens();
      longest = std::max(longest, std::ssize(sequence.ids));
    }
  }
};

void Show(const RowEncoder& encoder, const Example& example, std::string_view kind,
          const Marks& marks) {
  for (size_t i = 0; i < example.sequences.size(); ++i) {
    const MarkedSequence& sequence = example.sequences[i];
    const char* side = example.sequences.size() == 1 ? "" : i == 0 ? ", chosen" : ", rejected";
    fmt::print("--- {}  {}{}  {} tokens, {} learnt{}\n{}\n", example.place, kind, side,
               sequence.ids.size(), sequence.learnt_tokens(),
               example.ends ? "" : ", does not end with an end token",
               Marked(encoder.tokenizer(), sequence, marks));
  }
}

}  // namespace

int InspectData(const InspectDataOptions& options) {
  const Dataset data(options.file, {.skip_bad_lines = true});
  const RowEncoder encoder(ResolveModel(options.model),
                           options.learn == "all" ? LearntPart::kAll : LearntPart::kAnswers);
  const Marks marks = MarksFor(isatty(STDOUT_FILENO) != 0);
  Totals totals;
  for (int64_t row = 0; row < data.rows(); ++row) {
    const std::string kind(Name(data.kind(row)));
    ++totals.kinds[kind];
    try {
      const Example example = encoder.Encode(data.Row(row));
      totals.Add(example);
      if (row < options.rows && !options.json) Show(encoder, example, kind, marks);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidArgument) throw;
      if (totals.unusable++ == 0) totals.first_unusable = error.message();
    }
  }
  if (options.json) {
    fmt::print("{}\n", Json{{"rows", totals.rows},
                            {"bad_lines", data.skipped()},
                            {"unusable", totals.unusable},
                            {"kinds", totals.kinds},
                            {"tokens", totals.tokens},
                            {"learnt", totals.learnt},
                            {"longest", totals.longest},
                            {"without_end", totals.endless}}
                           .dump());
    return 0;
  }
  fmt::print("\n{}: {} rows\n", options.file, data.rows());
  for (const auto& [kind, count] : totals.kinds) fmt::print("{:>10}  {}\n", count, kind);
  fmt::print("{:>10}  tokens, {} of them learnt; the longest sequence has {}\n", totals.tokens,
             totals.learnt, totals.longest);
  if (totals.endless > 0) {
    fmt::print("{:>10}  rows do not end with a token that ends answers\n", totals.endless);
  }
  if (data.skipped() > 0) {
    fmt::print("{:>10}  lines are no rows; the first: {}\n", data.skipped(), data.first_fault());
  }
  if (totals.unusable > 0) {
    fmt::print("{:>10}  rows this model cannot be shown; the first: {}\n", totals.unusable,
               totals.first_unusable);
  }
  return 0;
}

}  // namespace weft
