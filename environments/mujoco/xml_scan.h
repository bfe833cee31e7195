// The elements of an XML text one after the other, with their lines: as much of XML as MuJoCo's
// model files use. What can hide or multiply content is refused: document types, entities of one's
// own, deep nesting.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct XmlElement {
  std::string_view tag;
  int line = 0;                                                      // 1-based, of its '<'
  int depth = 0;                                                     // 0: the root
  std::vector<std::pair<std::string_view, std::string>> attributes;  // in order; values decoded

  // The value of the first attribute of that name; "" when there is none.
  std::string_view Attribute(std::string_view name) const;
};

struct XmlVisitor {
  std::function<void(const XmlElement&)> open;  // at each start tag
  std::function<void()> close;                  // at the end of the element opened last
};

// Throws Error(kConfig) "path:line: reason" for what is no such text.
void ScanXml(std::string_view text, const std::string& path, const XmlVisitor& visitor);

}  // namespace weft
