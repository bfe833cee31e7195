#include "rlhf/ledger.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "language/json.h"

namespace weft {
namespace {

template <class T>
JsonValue List(std::span<const T> values) {
  JsonValue list = JsonValue::MakeArray();
  for (const T value : values) list.Append(JsonValue(value));
  return list;
}
JsonValue Ids(std::span<const int32_t> ids) {
  JsonValue list = JsonValue::MakeArray();
  for (const int32_t id : ids) list.Append(JsonValue(int64_t{id}));
  return list;
}

}  // namespace

Ledger::Ledger(const std::string& folder, const std::string& model)
    : path_(folder + "/samples.jsonl"), tokenizer_(LoadTokenizerOf(*ModelFile::Open(model))) {}

void Ledger::Add(int64_t step, const Samples& samples) {
  if (!rewound_) Rewind(samples.first_sample);
  rewound_ = true;
  std::string lines;
  for (int64_t i = 0; i < samples.responses.count(); ++i) {
    const auto ids = samples.texts.Of(std::span<const int32_t>(samples.ids), i);
    JsonValue line = JsonValue::MakeObject(
        {{"version", JsonValue(samples.version)},
         {"step", JsonValue(step)},
         {"seed", JsonValue(static_cast<int64_t>(samples.seed))},
         {"sample", JsonValue(samples.first_sample + i)},
         {"prompt", Ids(samples.prompts[i / samples.group])},
         {"ids", Ids(ids)},
         {"log_p", List(samples.responses.Of(std::span<const float>(samples.log_p), i))},
         {"finished", JsonValue(samples.finished[i] != 0)},
         {"reward", JsonValue(samples.reward[i])},
         {"text", JsonValue(tokenizer_.Decode(ids, true))}});
    const auto turns = samples.TurnsOf(i);
    if (turns.size() > 1) {
      JsonValue list = JsonValue::MakeArray();
      for (const auto& [begin, end] : turns) {
        list.Append(JsonValue::MakeArray({JsonValue(begin), JsonValue(end)}));
      }
      line.Set("turns", std::move(list));
    }
    if (!samples.reference_log_p.empty()) {
      line.Set("reference_log_p",
               List(samples.responses.Of(std::span<const float>(samples.reference_log_p), i)));
    }
    lines += line.ToText() + "\n";
  }
  std::ofstream file(path_, std::ios::app);
  file << lines;
  if (!file.flush()) throw Error(ErrorCode::kIo, path_ + ": cannot be written");
}

void Ledger::Rewind(int64_t first_sample) {
  std::ifstream file(path_);
  if (!file) return;
  // Lines are in the order of samples, whose numbers stand at their beginning.
  int64_t keep = 0;
  for (std::string line; std::getline(file, line); keep += std::ssize(line) + 1) {
    int64_t sample = 0;
    const int found =
        std::sscanf(line.c_str(), R"({"version":%*d,"step":%*d,"seed":%*d,"sample":%ld)", &sample);
    if (found != 1 || sample >= first_sample || file.eof()) break;
  }
  file.close();
  std::filesystem::resize_file(path_, static_cast<uintmax_t>(keep));
}

}  // namespace weft
