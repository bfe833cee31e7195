#include "rlhf/examples.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace weft {
namespace {

int64_t Count(std::span<const uint8_t> learnt) {
  return std::accumulate(learnt.begin(), learnt.end(), int64_t{0});
}
int64_t First(std::span<const uint8_t> learnt) {
  return std::ranges::find(learnt, uint8_t{1}) - learnt.begin();
}

template <class T>
Tensor Pack(const std::vector<T>& values) {
  return Tensor::From<T>({std::ssize(values)}, values);
}
template <class T>
std::vector<T> Unpack(const TensorMap& map, const char* name) {
  const auto data = map.At(name).data<T>();
  return {data.begin(), data.end()};
}

}  // namespace

int64_t MarkedSequence::learnt_tokens() const {
  return Count(learnt);
}
int64_t MarkedSequence::prompt_tokens() const {
  return First(learnt);
}
int64_t Examples::LearntTokens(int64_t sequence) const {
  return Count(Learnt(sequence));
}
int64_t Examples::PromptTokens(int64_t sequence) const {
  return First(Learnt(sequence));
}

void Examples::Add(const Example& example, int64_t example_number) {
  const int64_t wide = std::ssize(example.sequences);
  if (number.empty()) width = wide;
  WEFT_CHECK_EQ(width, wide) << "sequences of an example at " << example.place;
  for (const MarkedSequence& sequence : example.sequences) {
    ids.insert(ids.end(), sequence.ids.begin(), sequence.ids.end());
    learnt.insert(learnt.end(), sequence.learnt.begin(), sequence.learnt.end());
    sequences.Add(std::ssize(sequence.ids));
  }
  number.push_back(example_number);
  label.push_back(example.label ? 1 : 0);
  margin.push_back(example.margin);
}

void Examples::Append(const Examples& other, int64_t example) {
  Example one{.place = {},
              .sequences = {},
              .label = other.label[example] != 0,
              .margin = other.margin[example]};
  for (int64_t s = example * other.width; s < (example + 1) * other.width; ++s) {
    one.sequences.push_back({.ids = {other.Ids(s).begin(), other.Ids(s).end()},
                             .learnt = {other.Learnt(s).begin(), other.Learnt(s).end()}});
  }
  Add(one, other.number[example]);
}

TensorMap Examples::ToMap() const {
  TensorMap map;
  map.Set("ids", Pack(ids));
  map.Set("learnt", Pack(learnt));
  map.Set("offsets", Pack(sequences.offsets));
  map.Set("width", Tensor::From<int64_t>({1}, {width}));
  map.Set("number", Pack(number));
  map.Set("label", Pack(label));
  map.Set("margin", Pack(margin));
  if (!reference.empty()) map.Set("reference", Pack(reference));
  if (!mismatched_reference.empty()) map.Set("mismatched_reference", Pack(mismatched_reference));
  return map;
}

Examples Examples::FromMap(const TensorMap& map) {
  Examples examples;
  examples.ids = Unpack<int32_t>(map, "ids");
  examples.learnt = Unpack<uint8_t>(map, "learnt");
  examples.sequences.offsets = Unpack<int64_t>(map, "offsets");
  examples.width = map.At("width").data<int64_t>()[0];
  examples.number = Unpack<int64_t>(map, "number");
  examples.label = Unpack<uint8_t>(map, "label");
  examples.margin = Unpack<double>(map, "margin");
  if (map.Has("reference")) examples.reference = Unpack<double>(map, "reference");
  if (map.Has("mismatched_reference")) {
    examples.mismatched_reference = Unpack<double>(map, "mismatched_reference");
  }
  return examples;
}

}  // namespace weft
