// Flat, ordered, named tensors: the only payload of an edge, a checkpoint and the wire. Names are
// interned, so copying a map copies handles and pointers. Lookup is linear: maps are short.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor/tensor.h"

namespace weft {

// An interned name: equal names share one pointer for the life of the process. Thread-safe.
class TensorName {
 public:
  TensorName(std::string_view text);  // NOLINT(google-explicit-constructor)
  TensorName(const char* text)
      : TensorName(std::string_view(text)) {}  // NOLINT(google-explicit-constructor)
  TensorName(const std::string& text)
      : TensorName(std::string_view(text)) {}  // NOLINT(google-explicit-constructor)
  std::string_view text() const { return *text_; }
  bool operator==(const TensorName& other) const { return text_ == other.text_; }

 private:
  const std::string* text_;
};

class TensorMap {
 public:
  using Entry = std::pair<TensorName, Tensor>;

  // Replaces the tensor of that name or appends one.
  void Set(TensorName name, Tensor tensor);
  bool Has(std::string_view name) const { return Find(name) != nullptr; }
  // Throws naming the missing tensor and those that are there.
  const Tensor& At(std::string_view name) const;
  Tensor& At(std::string_view name);
  const Tensor* Find(std::string_view name) const;
  void Erase(std::string_view name);
  void Clear() { entries_.clear(); }
  void Reserve(size_t entries) { entries_.reserve(entries); }

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  auto begin() { return entries_.begin(); }
  auto end() { return entries_.end(); }
  const Entry& entry(size_t index) const { return entries_[index]; }
  Entry& entry(size_t index) { return entries_[index]; }

  // Adds all of other under prefix + "." + name, and the reverse: the entries that begin with
  // prefix + ".".
  void Merge(std::string_view prefix, const TensorMap& other);
  TensorMap Extract(std::string_view prefix) const;

  size_t bytes() const;

 private:
  std::vector<Entry> entries_;
};

// 64-bit hash over names, dtypes, shapes and elements in order (weights in row-major order): equal
// maps, equal hash.
uint64_t Hash(const TensorMap& map);

}  // namespace weft
