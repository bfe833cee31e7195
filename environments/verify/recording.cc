#include "environments/verify/recording.h"

namespace weft {
namespace {

template <class T>
std::vector<double> Copy(const Tensor& tensor) {
  const auto data = tensor.data<T>();
  return {data.begin(), data.end()};
}

std::vector<double> Numbers(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kFloat64:
      return Copy<double>(tensor);
    case DType::kFloat32:
      return Copy<float>(tensor);
    case DType::kInt64:
      return Copy<int64_t>(tensor);
    default:
      return Copy<uint8_t>(tensor);
  }
}

}  // namespace

Recording::Recording(const std::string& path) : name_(path.substr(path.rfind('/') + 1)) {
  tensors_ = ReadSafetensors(path, &metadata_);
}

std::vector<std::string> Recording::Names(const std::string& prefix) const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) {
    if (name.text().starts_with(prefix)) names.emplace_back(name.text());
  }
  return names;
}

std::string Recording::Metadata(const std::string& key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? "" : found->second;
}

std::vector<double> Recording::Row(const std::string& tensor, int64_t row) const {
  return Numbers(tensors_.At(tensor).Slice(row, row + 1));
}

std::vector<double> Recording::All(const std::string& tensor) const {
  return Numbers(tensors_.At(tensor));
}

ActionRow Recording::Action(const std::string& tensor, int64_t row, bool single) {
  const Tensor& actions = tensors_.At(tensor);
  if (single) {
    const std::vector<double> values = Row(tensor, row);
    single_.assign(values.begin(), values.end());
    return {single_.data(), DType::kFloat32};
  }
  return {actions.Slice(row, row + 1).raw(), actions.dtype()};
}

ActionRow Recording::ActionAt(const std::string& tensor, int64_t rollout, int64_t time) const {
  const Tensor actions = tensors_.At(tensor).Row(rollout);
  return {actions.Slice(time, time + 1).raw(), actions.dtype()};
}

}  // namespace weft
