#include "tensor/tensor_map.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <mutex>
#include <set>
#include <sstream>
#include <string>

namespace weft {
namespace {

// Mixes one word in; the multiplier is an odd 64-bit constant (the golden ratio), the rotation
// spreads high bits down.
uint64_t Mix(uint64_t hash, uint64_t word) {
  return std::rotl((hash ^ word) * 0x9e3779b97f4a7c15ULL, 29) + word;
}

uint64_t Mix(uint64_t hash, const void* data, size_t bytes) {
  const auto* at = static_cast<const std::byte*>(data);
  hash = Mix(hash, static_cast<uint64_t>(bytes));
  while (bytes > 0) {
    uint64_t word = 0;
    const size_t taken = std::min<size_t>(bytes, 8);
    std::memcpy(&word, at, taken);
    hash = Mix(hash, word);
    at += taken;
    bytes -= taken;
  }
  return hash;
}

}  // namespace

TensorName::TensorName(std::string_view text) {
  static std::mutex mutex;
  static auto& names = *new std::set<std::string, std::less<>>;  // lives as long as the process
  const std::lock_guard lock(mutex);
  auto found = names.find(text);
  if (found == names.end()) found = names.emplace(text).first;
  text_ = &*found;
}

void TensorMap::Set(TensorName name, Tensor tensor) {
  for (Entry& entry : entries_) {
    if (entry.first == name) {
      entry.second = std::move(tensor);
      return;
    }
  }
  entries_.emplace_back(name, std::move(tensor));
}

const Tensor* TensorMap::Find(std::string_view name) const {
  for (const Entry& entry : entries_) {
    if (entry.first.text() == name) return &entry.second;
  }
  return nullptr;
}

const Tensor& TensorMap::At(std::string_view name) const {
  if (const Tensor* tensor = Find(name)) return *tensor;
  std::ostringstream message;
  message << "there is no tensor \"" << name << "\"; there are:";
  for (const Entry& entry : entries_) message << ' ' << entry.first.text();
  if (entries_.empty()) message << " none";
  throw Error(ErrorCode::kInvalidArgument, message.str());
}

Tensor& TensorMap::At(std::string_view name) {
  return const_cast<Tensor&>(static_cast<const TensorMap&>(*this).At(name));
}

void TensorMap::Erase(std::string_view name) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.first.text() == name; });
}

void TensorMap::Merge(std::string_view prefix, const TensorMap& other) {
  for (const Entry& entry : other) {
    Set(std::string(prefix) + "." + std::string(entry.first.text()), entry.second);
  }
}

TensorMap TensorMap::Extract(std::string_view prefix) const {
  const std::string start = std::string(prefix) + ".";
  TensorMap result;
  for (const Entry& entry : entries_) {
    const std::string_view name = entry.first.text();
    if (name.starts_with(start)) result.Set(name.substr(start.size()), entry.second);
  }
  return result;
}

size_t TensorMap::bytes() const {
  size_t sum = 0;
  for (const Entry& entry : entries_) sum += entry.second.bytes();
  return sum;
}

uint64_t Hash(const TensorMap& map) {
  uint64_t hash = Mix(0, map.size());
  for (const auto& [name, tensor] : map) {
    hash = Mix(hash, name.text().data(), name.text().size());
    hash = Mix(hash, Name(tensor.dtype()), std::strlen(Name(tensor.dtype())));
    const auto dims = tensor.shape().dims();
    hash = Mix(hash, dims.data(), dims.size_bytes());
    const Tensor rows = tensor.ToLayout(Layout::kRowMajor);
    hash = Mix(hash, rows.raw(), rows.bytes());
  }
  return hash;
}

}  // namespace weft
