#include "rlhf/samples.h"

#include <algorithm>
#include <numeric>

#include "language/generator.h"

namespace weft {
namespace {

template <class T>
Tensor Flat(const std::vector<T>& values) {
  return Tensor::From<T>({std::ssize(values)}, std::span<const T>(values));
}
template <class T>
std::vector<T> Values(const TensorMap& map, std::string_view name) {
  const Tensor* const tensor = map.Find(name);
  if (tensor == nullptr) return {};
  const auto values = tensor->data<T>();
  return {values.begin(), values.end()};
}

}  // namespace

void Spoken::Say(int32_t id, float log_probability) {
  ids.push_back(id);
  said.push_back(1);
  log_p.push_back(log_probability);
}

void Spoken::Hear(std::span<const int32_t> words) {
  ids.insert(ids.end(), words.begin(), words.end());
  said.insert(said.end(), words.size(), 0);
}

void Samples::Add(const Spoken& answer) {
  ids.insert(ids.end(), answer.ids.begin(), answer.ids.end());
  said.insert(said.end(), answer.said.begin(), answer.said.end());
  log_p.insert(log_p.end(), answer.log_p.begin(), answer.log_p.end());
  texts.Add(std::ssize(answer.ids));
  responses.Add(std::ssize(answer.log_p));
  finished.push_back(answer.finished);
  outcome.push_back(answer.outcome);
}

void Samples::Append(const Samples& other, int64_t prompt) {
  const auto append = [](auto& to, const auto& from, int64_t begin, int64_t end) {
    if (!from.empty()) to.insert(to.end(), from.begin() + begin, from.begin() + end);
  };
  group = other.group;
  version = other.version;
  seed = other.seed;
  prompts.push_back(other.prompts[prompt]);
  expected.push_back(other.expected[prompt]);
  const int64_t first = prompt * group, end = first + group;
  const int64_t begin_id = other.texts.offsets[first], end_id = other.texts.offsets[end];
  const int64_t begin_token = other.responses.offsets[first];
  const int64_t end_token = other.responses.offsets[end];
  append(ids, other.ids, begin_id, end_id);
  append(said, other.said, begin_id, end_id);
  append(log_p, other.log_p, begin_token, end_token);
  append(reference_log_p, other.reference_log_p, begin_token, end_token);
  append(finished, other.finished, first, end);
  append(outcome, other.outcome, first, end);
  append(reward, other.reward, first, end);
  for (int64_t i = first; i < end; ++i) {
    texts.Add(other.texts.length(i));
    responses.Add(other.responses.length(i));
  }
}

bool Samples::Mixed(int64_t prompt) const {
  const auto first = reward.begin() + prompt * group;
  return std::any_of(first, first + group, [&](double r) { return r != *first; });
}

int64_t Samples::TokensOf(int64_t prompt) const {
  return texts.offsets[(prompt + 1) * group] - texts.offsets[prompt * group];
}

int64_t Samples::SaidTokensOf(int64_t prompt) const {
  return responses.offsets[(prompt + 1) * group] - responses.offsets[prompt * group];
}

std::vector<std::pair<int64_t, int64_t>> Samples::TurnsOf(int64_t answer) const {
  std::vector<std::pair<int64_t, int64_t>> turns;
  const auto marks = texts.Of(std::span<const uint8_t>(said), answer);
  for (int64_t t = 0; t < std::ssize(marks); ++t) {
    if (marks[t] == 0) continue;
    if (t == 0 || marks[t - 1] == 0) turns.emplace_back(t, t);
    turns.back().second = t + 1;
  }
  return turns;
}

std::vector<int64_t> AllPrompts(const Samples& samples) {
  std::vector<int64_t> numbers(samples.prompts.size());
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  return numbers;
}

int64_t CommonBeginning(const Samples& samples, std::span<const int64_t> prompts) {
  if (prompts.size() < 2) return 0;
  const std::vector<int32_t>& first = samples.prompts[prompts[0]];
  int64_t common = std::ssize(first);
  for (const int64_t prompt : prompts) {
    const std::vector<int32_t>& other = samples.prompts[prompt];
    common = std::min({common, SharedBeginning(first, other), std::ssize(other) - 1});
  }
  return common < kWorthReadingOnce ? 0 : common;
}

void ForPrompts(const Samples& samples, std::span<const int64_t> prompts, int64_t tokens,
                const std::function<void(std::span<const int64_t>)>& use) {
  const int64_t common = CommonBeginning(samples, prompts);
  for (size_t begin = 0, end = 0; begin < prompts.size(); begin = end) {
    for (int64_t together = common; end < prompts.size(); ++end) {
      together +=
          std::ssize(samples.prompts[prompts[end]]) - common + samples.TokensOf(prompts[end]);
      if (end > begin && together > tokens) break;
    }
    use(prompts.subspan(begin, end - begin));
  }
}

TensorMap Samples::ToMap() const {
  TensorMap map;
  std::vector<int32_t> prompt_ids;
  std::vector<uint8_t> wanted;
  std::vector<int64_t> prompt_offsets = {0}, text_offsets = {0};
  for (const auto& prompt : prompts) {
    prompt_ids.insert(prompt_ids.end(), prompt.begin(), prompt.end());
    prompt_offsets.push_back(std::ssize(prompt_ids));
  }
  for (const std::string& text : expected) {
    wanted.insert(wanted.end(), text.begin(), text.end());
    text_offsets.push_back(std::ssize(wanted));
  }
  map.Set("prompt_ids", Flat(prompt_ids));
  map.Set("prompt_offsets", Flat(prompt_offsets));
  map.Set("expected", Flat(wanted));
  map.Set("expected_offsets", Flat(text_offsets));
  if (evaluation) map.Set("evaluation", Tensor::From<uint8_t>({1}, {1}));
  if (texts.count() == 0) return map;
  map.Set("ids", Flat(ids));
  map.Set("said", Flat(said));
  map.Set("offsets", Flat(texts.offsets));
  map.Set("log_p", Flat(log_p));
  map.Set("finished", Flat(finished));
  map.Set("outcome", Flat(outcome));
  map.Set("origin",
          Tensor::From<int64_t>({3}, {version, static_cast<int64_t>(seed), first_sample}));
  if (!reference_log_p.empty()) map.Set("reference_log_p", Flat(reference_log_p));
  if (!reward.empty()) map.Set("reward", Flat(reward));
  return map;
}

Samples Samples::FromMap(const TensorMap& map) {
  Samples samples;
  const auto prompt_ids = Values<int32_t>(map, "prompt_ids");
  const auto prompt_offsets = Values<int64_t>(map, "prompt_offsets");
  const auto texts = Values<uint8_t>(map, "expected");
  const auto text_offsets = Values<int64_t>(map, "expected_offsets");
  for (size_t i = 0; i + 1 < prompt_offsets.size(); ++i) {
    samples.prompts.emplace_back(prompt_ids.begin() + prompt_offsets[i],
                                 prompt_ids.begin() + prompt_offsets[i + 1]);
    samples.expected.emplace_back(texts.begin() + text_offsets[i],
                                  texts.begin() + text_offsets[i + 1]);
  }
  samples.evaluation = map.Has("evaluation");
  samples.ids = Values<int32_t>(map, "ids");
  samples.log_p = Values<float>(map, "log_p");
  samples.finished = Values<uint8_t>(map, "finished");
  samples.reward = Values<double>(map, "reward");
  if (map.Has("offsets")) {
    samples.said = Values<uint8_t>(map, "said");
    samples.outcome = Values<double>(map, "outcome");
    samples.texts.offsets = Values<int64_t>(map, "offsets");
    for (int64_t i = 0; i < samples.texts.count(); ++i) {
      const auto marks = samples.texts.Of(std::span<const uint8_t>(samples.said), i);
      samples.responses.Add(std::ranges::count(marks, uint8_t{1}));
    }
    samples.reference_log_p = Values<float>(map, "reference_log_p");
    const auto origin = map.At("origin").data<int64_t>();
    samples.version = origin[0];
    samples.seed = static_cast<uint64_t>(origin[1]);
    samples.first_sample = origin[2];
    samples.group = samples.responses.count() / std::max<int64_t>(1, std::ssize(samples.prompts));
  }
  return samples;
}

}  // namespace weft
