#include "rlhf/samples.h"

#include <algorithm>
#include <span>

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

TensorMap Samples::ToMap() const {
  TensorMap map;
  std::vector<int32_t> prompt_ids;
  std::vector<uint8_t> texts;
  std::vector<int64_t> prompt_offsets = {0}, text_offsets = {0};
  for (const auto& prompt : prompts) {
    prompt_ids.insert(prompt_ids.end(), prompt.begin(), prompt.end());
    prompt_offsets.push_back(std::ssize(prompt_ids));
  }
  for (const std::string& text : expected) {
    texts.insert(texts.end(), text.begin(), text.end());
    text_offsets.push_back(std::ssize(texts));
  }
  map.Set("prompt_ids", Flat(prompt_ids));
  map.Set("prompt_offsets", Flat(prompt_offsets));
  map.Set("expected", Flat(texts));
  map.Set("expected_offsets", Flat(text_offsets));
  if (responses.count() == 0) return map;
  map.Set("ids", Flat(ids));
  map.Set("offsets", Flat(responses.offsets));
  map.Set("log_p", Flat(log_p));
  map.Set("finished", Flat(finished));
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
  samples.ids = Values<int32_t>(map, "ids");
  samples.log_p = Values<float>(map, "log_p");
  samples.finished = Values<uint8_t>(map, "finished");
  samples.reward = Values<double>(map, "reward");
  if (map.Has("offsets")) {
    samples.responses.offsets = Values<int64_t>(map, "offsets");
    samples.group = samples.responses.count() / std::max<int64_t>(1, std::ssize(samples.prompts));
  }
  return samples;
}

}  // namespace weft
