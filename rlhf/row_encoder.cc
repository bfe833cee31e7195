#include "rlhf/row_encoder.h"

#include <algorithm>

#include "base/check.h"
#include "language/chat_model.h"
#include "language/model_files.h"

namespace weft {
namespace {

[[noreturn]] void Fail(const DataRow& row, const std::string& reason) {
  throw Error(ErrorCode::kInvalidArgument, row.place + ": " + reason);
}

JsonValue Joined(const JsonValue& first, const JsonValue& second) {
  JsonValue all = first;
  for (const JsonValue& item : second.Items()) all.Append(item);
  return all;
}

JsonValue First(const JsonValue& messages, size_t count) {
  const auto items = messages.Items();
  return JsonValue::MakeArray({items.begin(), items.begin() + static_cast<std::ptrdiff_t>(count)});
}

int64_t CodePoints(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; });
}

void Append(std::vector<int32_t>& ids, std::span<const int32_t> more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

}  // namespace

RowEncoder::RowEncoder(const std::string& model_path, LearntPart part)
    : part_(part),
      model_(model_path),
      tokenizer_(LoadTokenizerOf(*ModelFile::Open(model_path))),
      template_(LoadTemplateOf(*ModelFile::Open(model_path))),
      stop_ids_(StopIds(*ModelFile::Open(model_path), tokenizer_)) {}

const ChatTemplate& RowEncoder::Template(const DataRow& row) const {
  if (!template_) Fail(row, "is a chat, and " + model_ + " has no chat template to write it with");
  return *template_;
}

std::string_view RowEncoder::CutBehindEnd(std::string_view text) const {
  size_t end = std::string_view::npos;
  for (const int32_t id : stop_ids_) {
    const std::string_view token = tokenizer_.Text(id);
    const size_t at = token.empty() ? std::string_view::npos : text.rfind(token);
    if (at == std::string_view::npos) continue;
    if (end == std::string_view::npos || at + token.size() > end) end = at + token.size();
  }
  const bool white = end != std::string_view::npos &&
                     text.find_first_not_of(" \t\r\n", end) == std::string_view::npos;
  return white ? text.substr(0, end) : text;
}

std::vector<TextSpan> RowEncoder::DerivedSpans(const DataRow& row, const std::string& text) const {
  std::vector<TextSpan> spans;
  const auto items = row.messages.Items();
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].Find("role")->AsString() != "assistant") continue;
    std::string before, with;
    try {
      before = template_->Render(First(row.messages, i), {.add_generation_prompt = true}).text;
      with = template_->Render(First(row.messages, i + 1)).text;
    } catch (const Error& error) {
      Fail(row, "the beginning of the chat cannot be written alone (" + error.message() +
                    "): mark the assistant's words with {% generation %} in the chat template");
    }
    if (!with.starts_with(before) || !text.starts_with(with)) {
      Fail(row,
           "the chat template does not write the beginning of a chat as the beginning of its text; "
           "mark the assistant's words with {% generation %} in it");
    }
    const std::string_view words = CutBehindEnd(std::string_view(with).substr(before.size()));
    const int64_t begin = CodePoints(before);
    spans.push_back({begin, begin + CodePoints(words)});
  }
  return spans;
}

RowEncoder::Parts RowEncoder::Split(const DataRow& row, const JsonValue& answer) const {
  if (!row.conversational()) return {row.prompt.AsString(), answer.AsString()};
  const ChatTemplate& chat = Template(row);
  try {
    Parts parts{.prompt = chat.Render(row.prompt, {.add_generation_prompt = true}).text,
                .answer = chat.Render(Joined(row.prompt, answer)).text};
    if (!parts.answer.starts_with(parts.prompt)) {
      Fail(row, "the chat template does not write the prompt as the beginning of the whole chat");
    }
    parts.answer = CutBehindEnd(std::string_view(parts.answer).substr(parts.prompt.size()));
    return parts;
  } catch (Error& error) {
    if (error.message().starts_with(row.place)) throw;
    Fail(row, error.message());
  }
}

std::vector<int32_t> RowEncoder::EncodePrompt(const DataRow& row) const {
  if (row.conversational()) {
    return tokenizer_.Encode(
        Template(row).Render(row.prompt, {.add_generation_prompt = true}).text);
  }
  std::vector<int32_t> ids(tokenizer_.prefix().begin(), tokenizer_.prefix().end());
  Append(ids, tokenizer_.Encode(row.prompt.AsString()));
  return ids;
}

std::vector<int32_t> RowEncoder::EncodeReply(const std::string& role,
                                             const std::string& text) const {
  if (!template_) return tokenizer_.Encode(text);
  const auto turn = [](const std::string& speaker, const std::string& words) {
    return JsonValue::MakeObject({{"role", JsonValue(speaker)}, {"content", JsonValue(words)}});
  };
  const JsonValue before = JsonValue::MakeArray({turn("user", "a"), turn("assistant", "b")});
  JsonValue after = before;
  after.Append(turn(role, text));
  const auto fail = [&](const std::string& reason) {
    throw Error(ErrorCode::kConfig, "episodes: the chat template of " + model_ + " " + reason);
  };
  std::string first, whole;
  try {
    first = template_->Render(before).text;
    whole = template_->Render(after, {.add_generation_prompt = true}).text;
  } catch (const Error& error) {
    fail("cannot write a turn of the " + role + " (" + error.message() + ")");
  }
  const std::string_view ended = CutBehindEnd(first);
  const bool ends = std::ranges::any_of(stop_ids_, [&](int32_t id) {
    const std::string_view token = tokenizer_.Text(id);
    return !token.empty() && ended.ends_with(token);
  });
  if (!ends) fail("writes no token that ends an answer behind the assistant's words");
  if (!whole.starts_with(ended)) {
    fail("does not write the beginning of a chat as the beginning of its text");
  }
  return tokenizer_.Encode(std::string_view(whole).substr(ended.size()));
}

void RowEncoder::CheckReplies(const std::string& role) const {
  constexpr char kWord[] = "word";
  const std::vector<int32_t> ids = EncodeReply(role, kWord);
  if (template_ && tokenizer_.Decode(ids).find(kWord) == std::string::npos) {
    throw Error(ErrorCode::kConfig, "episodes: the chat template of " + model_ +
                                        " leaves out what the " + role + " says");
  }
}

MarkedSequence RowEncoder::EncodeText(const DataRow& row) const {
  MarkedSequence sequence{.ids = tokenizer_.Encode(row.text, {.add_special = true}), .learnt = {}};
  const int32_t eos = tokenizer_.special().eos;
  if (eos >= 0 && (sequence.ids.empty() || sequence.ids.back() != eos)) sequence.ids.push_back(eos);
  sequence.learnt.assign(sequence.ids.size(), 1);
  return sequence;
}

MarkedSequence RowEncoder::EncodeChat(const DataRow& row) const {
  RenderedChat rendered;
  try {
    rendered = Template(row).Render(row.messages);
  } catch (Error& error) {
    if (error.message().starts_with(row.place)) throw;
    Fail(row, error.message());
  }
  const Encoding encoding = tokenizer_.EncodeWithOffsets(rendered.text);
  MarkedSequence sequence{.ids = encoding.ids, .learnt = {}};
  if (part_ == LearntPart::kAll) {
    sequence.learnt.assign(sequence.ids.size(), 1);
  } else {
    if (rendered.generation.empty()) rendered.generation = DerivedSpans(row, rendered.text);
    sequence.learnt = TokensWithin(encoding, rendered.generation);
  }
  return sequence;
}

MarkedSequence RowEncoder::EncodeAnswer(const DataRow& row, const JsonValue& answer) const {
  const Parts parts = Split(row, answer);
  const std::vector<int32_t> prompt = EncodePrompt(row);
  // As one text where the prompt keeps its tokens in it, else the answer by itself: both stand
  // behind the tokens that an answer is asked for with.
  MarkedSequence sequence{
      .ids = row.conversational()
                 ? std::vector<int32_t>()
                 : std::vector<int32_t>(tokenizer_.prefix().begin(), tokenizer_.prefix().end()),
      .learnt = {}};
  Append(sequence.ids, tokenizer_.Encode(parts.prompt + parts.answer));
  if (sequence.ids.size() <= prompt.size() ||
      !std::equal(prompt.begin(), prompt.end(), sequence.ids.begin())) {
    sequence.ids = prompt;
    Append(sequence.ids, tokenizer_.Encode(parts.answer));
  }
  const int32_t eos = tokenizer_.special().eos;
  if (!row.conversational() && eos >= 0 && sequence.ids.back() != eos) sequence.ids.push_back(eos);
  if (prompt.empty()) Fail(row, "the prompt has no token: nothing stands before the answer");
  sequence.learnt.assign(sequence.ids.size(), 1);
  if (part_ == LearntPart::kAnswers || row.kind != RowKind::kCompletion) {
    std::fill_n(sequence.learnt.begin(), prompt.size(), uint8_t{0});
  }
  return sequence;
}

Example RowEncoder::Encode(const DataRow& row) const {
  Example example{.place = row.place, .sequences = {}, .label = row.label, .margin = row.margin};
  switch (row.kind) {
    case RowKind::kText:
      example.sequences.push_back(EncodeText(row));
      break;
    case RowKind::kChat:
      example.sequences.push_back(EncodeChat(row));
      break;
    case RowKind::kPrompt:
      Fail(row, "is a prompt without an answer: there is nothing to learn");
    case RowKind::kPair:
      example.sequences.push_back(EncodeAnswer(row, row.chosen));
      example.sequences.push_back(EncodeAnswer(row, row.rejected));
      break;
    case RowKind::kCompletion:
    case RowKind::kVerdict:
      example.sequences.push_back(EncodeAnswer(row, row.chosen));
      break;
  }
  for (MarkedSequence& sequence : example.sequences) {
    if (!sequence.learnt.empty()) sequence.learnt[0] = 0;
    if (sequence.learnt_tokens() == 0) Fail(row, "no token of it is learnt");
    const auto last = std::ranges::find(sequence.learnt.rbegin(), sequence.learnt.rend(), 1);
    const int32_t id = sequence.ids[sequence.learnt.rend() - last - 1];
    example.ends = example.ends && std::ranges::find(stop_ids_, id) != stop_ids_.end();
  }
  return example;
}

}  // namespace weft
