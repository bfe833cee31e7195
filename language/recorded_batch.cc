#include "language/recorded_batch.h"

#include <cmath>

namespace weft {

RecordedBatch::RecordedBatch(const TensorMap& recording, const std::string& suffix) {
  const Tensor batch = recording.At("input_ids" + suffix);
  const auto mask = recording.At("attention_mask" + suffix).data<int64_t>();
  if (recording.Has("labels" + suffix)) labels_ = recording.At("labels" + suffix);
  columns = batch.dim(1);
  for (int64_t b = 0; b < batch.dim(0); ++b) {
    kernels::AttentionSpan span{std::ssize(ids), 0, 0, nullptr};
    for (int64_t t = 0; t < columns; ++t) {
      if (mask[b * columns + t] == 0) continue;
      ids.push_back(static_cast<int32_t>(batch.data<int64_t>()[b * columns + t]));
      positions.push_back(static_cast<int32_t>(span.rows++));
      place.push_back(b * columns + t);
    }
    spans.push_back(span);
  }
}

std::vector<int32_t> RecordedBatch::Next() const {
  std::vector<int32_t> next(ids.size(), -1);
  for (const kernels::AttentionSpan& span : spans) {
    for (int64_t i = span.first_row; i + 1 < span.first_row + span.rows; ++i) {
      next[i] = ids[i + 1];
    }
  }
  return next;
}

std::vector<int32_t> RecordedBatch::Targets() const {
  std::vector<int32_t> targets = Next();
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] >= 0 && labels_.data<int64_t>()[place[i] + 1] < 0) targets[i] = -1;
  }
  return targets;
}

void PutGradientsInPlace(Transformer& model) {
  auto parameters = model.Parameters();
  const auto gradients = model.Gradients();
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i].tensor->CopyFrom(gradients[i]);
}

double RecordedNumber(const JsonValue& page, const char* key) {
  double number = NAN;
  page.Find(key)->GetDouble(number);
  return number;
}

std::vector<double> RecordedNumbers(const JsonValue& page, const char* key) {
  std::vector<double> numbers;
  for (const JsonValue& item : page.Find(key)->Items()) item.GetDouble(numbers.emplace_back());
  return numbers;
}

}  // namespace weft
