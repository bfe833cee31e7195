#include "rlhf/speaker.h"

#include "language/generator.h"

namespace weft {

// An answer in progress.
struct Speaker::Row {
  int64_t number;  // of the answer
  Spoken spoken;
  Dialogue dialogue;
  size_t turn_begin = 0;  // of the model's turn, in spoken.ids
};

Speaker::Speaker(const SpeakerOptions& options)
    : options_(options),
      file_(ModelFile::Open(options.model)),
      encoder_(options.model, LearntPart::kAnswers),
      turns_(TurnsOf(options.episodes, options.task)),
      counterpart_(MakeCounterpart(options.episodes, options.task)) {
  if (counterpart_) encoder_.CheckReplies(options.episodes.role);
}

void Speaker::Speak(const Context& context, const Transformer& model, Samples& samples) const {
  const int64_t group = samples.group;
  std::vector<Row> rows;
  std::vector<size_t> first_row;  // of each request
  const int64_t kept =
      counterpart_ ? std::ssize(samples.prompts) * group * model.config().context : 0;
  Generator generator(
      context, model,
      {.max_rows = options_.max_rows, .max_prompt_tokens = 4096, .kept_tokens = kept});
  const auto request = [&](std::vector<int32_t> prompt, int64_t answers, int64_t number) {
    return GenerationRequest{.prompt = std::move(prompt),
                             .samples = answers,
                             .max_new_tokens = options_.max_new_tokens,
                             .stop_ids = {encoder_.stop_ids().begin(), encoder_.stop_ids().end()},
                             .sampling = options_.sampling,
                             .seed = samples.seed,
                             .first_sample = static_cast<uint64_t>(samples.first_sample + number)};
  };
  const auto run = [&] {
    while (!generator.idle()) {
      generator.Step([&](const GenerationEvent& event) {
        Row& row = rows[first_row[event.request] + static_cast<size_t>(event.sample)];
        row.spoken.Say(event.id, event.log_probability);
        row.spoken.finished = event.finish == FinishReason::kStop;
      });
    }
  };
  for (const std::vector<int32_t>& prompt : samples.prompts) {
    first_row.push_back(rows.size());
    const int64_t number = std::ssize(rows);
    for (int64_t i = 0; i < group; ++i)
      rows.push_back({.number = number + i, .spoken = {}, .dialogue = {}});
    generator.Add(request(prompt, group, number));
  }
  generator.ReadCommonBeginning();
  run();

  std::vector<Row*> going;
  if (counterpart_) {
    for (Row& row : rows) {
      const int64_t prompt = row.number / group;
      row.dialogue.prompt = tokenizer().Decode(samples.prompts[prompt], false);
      row.dialogue.expected = samples.expected[prompt];
      going.push_back(&row);
    }
  }
  for (int64_t turn = 1; !going.empty(); ++turn) {
    const std::vector<bool> over = AskCounterpart(samples, model.config().context, turn, going);
    std::vector<Row*> next;
    for (size_t i = 0; i < going.size(); ++i) {
      if (over[i]) continue;
      Row& row = *next.emplace_back(going[i]);
      std::vector<int32_t> prompt = samples.prompts[row.number / group];
      prompt.insert(prompt.end(), row.spoken.ids.begin(), row.spoken.ids.end());
      GenerationRequest more = request(std::move(prompt), 1, row.number);
      more.drawn = std::ssize(row.spoken.log_p);
      generator.Add(std::move(more));
      first_row.push_back(static_cast<size_t>(row.number));
    }
    going = std::move(next);
    run();
  }
  for (const Row& row : rows) samples.Add(row.spoken);
}

std::vector<bool> Speaker::AskCounterpart(const Samples& samples, int64_t context, int64_t turn,
                                          std::span<Row* const> rows) const {
  std::vector<Dialogue> dialogues;
  for (Row* const row : rows) {
    const auto ids = std::span<const int32_t>(row->spoken.ids).subspan(row->turn_begin);
    row->dialogue.finished = row->spoken.finished;
    row->dialogue.turns.push_back(
        tokenizer().Decode(ids.first(ids.size() - (row->spoken.finished ? 1 : 0)), true));
    dialogues.push_back(row->dialogue);
  }
  const std::vector<Reply> replies = counterpart_->Answer(dialogues);
  std::vector<bool> over;
  for (size_t i = 0; i < rows.size(); ++i) {
    Row& row = *rows[i];
    row.spoken.outcome = replies[i].score;
    over.push_back(true);
    if (replies[i].over || turn == turns_ || !row.spoken.finished) continue;
    const std::vector<int32_t> words =
        encoder_.EncodeReply(options_.episodes.role, replies[i].text);
    const int64_t length = std::ssize(samples.prompts[row.number / samples.group]) +
                           std::ssize(row.spoken.ids) + std::ssize(words);
    if (length + options_.max_new_tokens > context) continue;
    over.back() = false;
    row.spoken.Hear(words);
    row.turn_begin = row.spoken.ids.size();
    row.dialogue.turns.push_back(replies[i].text);
  }
  return over;
}

}  // namespace weft
