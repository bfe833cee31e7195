// Files of the reference data of language models, for tests.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "language/json.h"

namespace weft {

// WEFT_REFERENCE/NAME, or "" when the variable is not set or nothing is there.
inline std::string ReferencePath(const std::string& name) {
  const char* root = std::getenv("WEFT_REFERENCE");
  if (!root) return {};
  const auto path = std::filesystem::path(root) / name;
  return std::filesystem::exists(path) ? path.string() : std::string();
}

inline std::vector<JsonValue> ReadJsonLines(const std::string& path) {
  std::vector<JsonValue> values;
  const std::string text = ReadFile(path);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) values.push_back(ParseJson(text.substr(begin, end - begin), path));
    begin = end + 1;
  }
  return values;
}

}  // namespace weft
