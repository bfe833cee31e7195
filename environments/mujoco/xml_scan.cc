#include "environments/mujoco/xml_scan.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"

namespace weft {
namespace {

constexpr size_t kMaxDepth = 256;

class Scanner {
 public:
  Scanner(std::string_view text, const std::string& path, const XmlVisitor& visitor)
      : text_(text), path_(path), visitor_(visitor) {}

  void Run() {
    if (text_.find('\0') != std::string_view::npos) Fail("holds a zero byte: it is no XML");
    bool seen_root = false;
    while (SkipTo("<")) {
      if (Take("<!--")) {
        if (!SkipPast("-->")) Fail("a comment does not end");
      } else if (Take("<![CDATA[")) {
        if (!SkipPast("]]>")) Fail("a CDATA section does not end");
      } else if (Take("<?")) {
        if (!SkipPast("?>")) Fail("a <? does not end");
      } else if (Take("<!")) {
        Fail("document types and entities of one's own are refused");
      } else if (Take("</")) {
        EndTag();
      } else {
        if (open_.empty() && seen_root) Fail("there is a second root element");
        seen_root = true;
        StartTag();
      }
    }
    if (!open_.empty()) Fail("<" + std::string(open_.back()) + "> does not end");
    if (!seen_root) Fail("holds no element: it is no XML");
  }

 private:
  [[noreturn]] void Fail(const std::string& reason) const {
    throw Error(ErrorCode::kConfig, path_ + ":" + std::to_string(line_) + ": " + reason);
  }

  void Advance(size_t count) {
    const auto passed = text_.substr(at_, count);
    line_ += static_cast<int>(std::count(passed.begin(), passed.end(), '\n'));
    at_ += passed.size();
  }
  bool Take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    Advance(word.size());
    return true;
  }
  bool SkipTo(std::string_view word) {
    const size_t found = text_.find(word, at_);
    if (found == std::string_view::npos) return false;
    Advance(found - at_);
    return true;
  }
  bool SkipPast(std::string_view word) { return SkipTo(word) && Take(word); }
  void SkipSpace() {
    const size_t end = text_.find_first_not_of(" \t\r\n", at_);
    Advance((end == std::string_view::npos ? text_.size() : end) - at_);
  }
  std::string_view Name() {
    const size_t begin = at_;
    Advance(std::min(text_.find_first_of(" \t\r\n=<>/\"'", at_), text_.size()) - at_);
    return text_.substr(begin, at_ - begin);
  }

  void EndTag() {
    const std::string_view tag = Name();
    SkipSpace();
    if (open_.empty() || tag != open_.back() || !Take(">")) {
      Fail("</" + std::string(tag) + "> ends no element that is open" +
           (open_.empty() ? "" : ": the last one is <" + std::string(open_.back()) + ">"));
    }
    Close();
  }
  void Close() {
    open_.pop_back();
    visitor_.close();
  }

  void StartTag() {
    XmlElement element{.line = line_, .depth = static_cast<int>(open_.size())};
    Take("<");
    element.tag = Name();
    if (element.tag.empty()) Fail("a < is followed by no name");
    if (open_.size() == kMaxDepth) {
      Fail("<" + std::string(element.tag) + "> is nested deeper than " + std::to_string(kMaxDepth) +
           " elements");
    }
    for (;;) {
      SkipSpace();
      if (text_.substr(at_).starts_with('>') || text_.substr(at_).starts_with("/>")) break;
      const std::string_view name = Name();
      SkipSpace();
      if (name.empty() || !Take("=")) {
        Fail("<" + std::string(element.tag) + "> does not end, or an attribute has no value");
      }
      SkipSpace();
      element.attributes.emplace_back(name, Value(element.tag, name));
    }
    open_.push_back(element.tag);
    visitor_.open(element);
    if (Take("/>")) {
      Close();
    } else {
      Take(">");
    }
  }

  std::string Value(std::string_view tag, std::string_view name) {
    const std::string place = "<" + std::string(tag) + " " + std::string(name) + "=";
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    if (quote != '"' && quote != '\'') Fail(place + "...> has no quotes around its value");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) Fail(place + "...> does not end");
    const std::string_view raw = text_.substr(at_ + 1, end - at_ - 1);
    std::string value;
    for (size_t i = 0; i < raw.size();) {
      const size_t next = std::min(raw.find('&', i), raw.size());
      value += raw.substr(i, next - i);
      if (next == raw.size()) break;
      const size_t semicolon = raw.find(';', next);
      if (semicolon == std::string_view::npos ||
          !Decode(raw.substr(next + 1, semicolon - next - 1), value))
        Fail(place + "...> holds an & that is none of XML's own entities");
      i = semicolon + 1;
    }
    Advance(end + 1 - at_);
    return value;
  }
  // Appends the ASCII character that an entity stands for; false when it stands for none.
  static bool Decode(std::string_view entity, std::string& value) {
    static constexpr std::pair<std::string_view, char> kEntities[] = {
        {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    for (const auto& [name, character] : kEntities) {
      if (entity == name) return value += character, true;
    }
    if (!entity.starts_with('#')) return false;
    entity.remove_prefix(1);
    const bool hexadecimal = entity.starts_with('x');
    if (hexadecimal) entity.remove_prefix(1);
    unsigned code = 0;
    const auto [end, error] =
        std::from_chars(entity.data(), entity.data() + entity.size(), code, hexadecimal ? 16 : 10);
    if (error != std::errc() || end != entity.data() + entity.size()) return false;
    value += static_cast<char>(code);
    return code > 0 && code < 0x80;
  }

  const std::string_view text_;
  const std::string& path_;
  const XmlVisitor& visitor_;
  size_t at_ = 0;
  int line_ = 1;
  std::vector<std::string_view> open_;  // the tags of the elements around
};

}  // namespace

std::string_view XmlElement::Attribute(std::string_view name) const {
  for (const auto& [key, value] : attributes) {
    if (key == name) return value;
  }
  return "";
}

void ScanXml(std::string_view text, const std::string& path, const XmlVisitor& visitor) {
  Scanner(text, path, visitor).Run();
}

}  // namespace weft
