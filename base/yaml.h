// YAML as configs use it: maps, sequences and scalars, each with its line. Everything else in YAML
// that surprises or attacks is refused: aliases, anchors, tags, merge keys, duplicate keys, several
// documents.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };

  Kind kind = Kind::kNull;
  int line = 0;  // 1-based: of the key in a map, else of the value; 0 when it is from no file
  bool quoted = false;  // a scalar in quotes or a block scalar: text, whatever it looks like
  std::string scalar;
  std::vector<std::string>
      keys;  // of a map, one per child, in the order of the file, all different
  std::vector<YamlNode> children;

  // The child at a key of a map; nullptr when there is none or this is no map.
  const YamlNode* Find(std::string_view key) const;
  YamlNode* Find(std::string_view key);
};

// Parses one document. At most 1 MiB of UTF-8 without control characters, depth 32, 100,000 nodes.
// Throws Error(kConfig) "name:line: reason". An empty text is a kNull node.
YamlNode ParseYaml(std::string_view text, const std::string& name);

// False for bytes that are no UTF-8 (RFC 3629: no overlong forms, no surrogates) or hold control
// characters other than tab, line feed and carriage return; *line is then the 1-based line.
bool IsPlainUtf8(std::string_view text, int* line);

}  // namespace weft
