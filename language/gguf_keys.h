// Typed metadata of a GGUF file. What has another type or lies out of range is Error(kCorrupt)
// naming file and key; what is required and missing too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "language/gguf.h"

namespace weft {

class GgufKeys {
 public:
  explicit GgufKeys(const GgufFile& file) : file_(file) {}

  bool Has(std::string_view key) const { return file_.Find(key) != nullptr; }
  std::optional<int64_t> Integer(std::string_view key, int64_t least, int64_t most) const;
  int64_t RequiredInteger(std::string_view key, int64_t least, int64_t most) const;
  std::optional<double> Number(std::string_view key) const;  // finite
  std::optional<bool> Bool(std::string_view key) const;
  std::optional<std::string> String(std::string_view key) const;
  std::vector<std::string> Strings(std::string_view key) const;  // empty when absent
  std::vector<int64_t> Integers(std::string_view key) const;     // the same
  std::vector<float> Floats(std::string_view key) const;         // the same

  [[noreturn]] void Fail(std::string_view key, const std::string& reason) const;

 private:
  template <class T, class Get>
  std::optional<T> Value(std::string_view key, const char* kind, Get get) const;

  const GgufFile& file_;
};

}  // namespace weft
