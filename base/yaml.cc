// The event interface of yaml-cpp, which hands over nodes one at a time, so that every limit holds
// before the next node is read; its tree interface follows aliases without end and keeps duplicate
// keys.
#include "base/yaml.h"

#include <algorithm>
#include <sstream>
#include <unordered_set>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "base/check.h"

namespace weft {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;
constexpr size_t kMaxDepth = 32;
constexpr int kMaxNodes = 100000;

class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const std::string& name) : name_(name) {}

  YamlNode Take() { return std::move(root_); }

  [[noreturn]] void Fail(int line, const std::string& reason) const {
    throw Error(ErrorCode::kConfig, name_ + ":" + std::to_string(line) + ": " + reason);
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (std::exchange(any_, true))
      Fail(mark.line + 1, "a second document starts here: one is allowed");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Check(mark, "?", anchor);
    if (ExpectsKey()) Fail(mark.line + 1, "an empty key");
    Place(mark);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Fail(mark.line + 1, "an alias (*): repeat the value, or put text in quotes");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const bool quoted = tag == "!";  // how yaml-cpp tells quoted scalars from plain ones ("?")
    Check(mark, quoted ? "?" : tag, anchor);
    if (ExpectsKey()) {
      AddKey(mark, value);
      return;
    }
    YamlNode& node = Place(mark);
    node.kind = YamlNode::Kind::kScalar;
    node.quoted = quoted;
    node.scalar = value;
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kSequence);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kMap);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  // A sequence or map whose end is not read yet. Pointers into a vector of children stay good: only
  // the innermost open node grows.
  struct OpenNode {
    YamlNode* node;
    std::unordered_set<std::string> keys;
    int key_line = 0;  // of the key whose value comes next, 0 when a key comes next
  };

  bool ExpectsKey() const {
    return !open_.empty() && open_.back().node->kind == YamlNode::Kind::kMap &&
           open_.back().key_line == 0;
  }

  void Check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != 0) Fail(mark.line + 1, "an anchor (&): repeat the value, or put text in quotes");
    if (tag != "?")
      Fail(mark.line + 1, "the tag " + tag + ": types come from the key, leave it out");
    if (++nodes_ > kMaxNodes) {
      Fail(mark.line + 1, "more than " + std::to_string(kMaxNodes) + " values");
    }
  }

  void AddKey(const YAML::Mark& mark, const std::string& key) {
    if (key == "<<") Fail(mark.line + 1, "a merge key (<<): write the keys out");
    if (!open_.back().keys.insert(key).second) {
      const YamlNode& map = *open_.back().node;
      Fail(mark.line + 1, "the key " + key + " is here a second time; it first stands on line " +
                              std::to_string(map.Find(key)->line));
    }
    open_.back().node->keys.push_back(key);
    open_.back().key_line = mark.line + 1;
  }

  // The node that the next value fills.
  YamlNode& Place(const YAML::Mark& mark) {
    YamlNode* node = &root_;
    int line = mark.line + 1;
    if (!open_.empty()) {
      node = &open_.back().node->children.emplace_back();
      if (const int key_line = std::exchange(open_.back().key_line, 0)) line = key_line;
    }
    node->line = line;
    return *node;
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YamlNode::Kind kind) {
    Check(mark, tag, anchor);
    if (open_.size() >= kMaxDepth) {
      Fail(mark.line + 1, "more than " + std::to_string(kMaxDepth) + " levels");
    }
    if (ExpectsKey()) Fail(mark.line + 1, "a list or map as a key");
    YamlNode& node = Place(mark);
    node.kind = kind;
    open_.push_back({.node = &node, .keys = {}});
  }

  const std::string& name_;
  YamlNode root_;
  std::vector<OpenNode> open_;
  int nodes_ = 0;
  bool any_ = false;
};

// The line on which a tab stands among leading spaces, 0 when none: YAML counts only spaces, and
// what a tab amounts to is anybody's guess.
int LineIndentedByTab(std::string_view text) {
  int line = 1;
  bool indentation = true;
  for (const char c : text) {
    if (indentation && c == '\t') return line;
    if (c == '\n') ++line;
    indentation = c == '\n' || (indentation && c == ' ');
  }
  return 0;
}

// The scanner looks far ahead for the end of flow lists and takes quadratic time when thousands are
// open, before the first event is out; no text in quotes or comments has as many open brackets.
bool OpensManyBrackets(std::string_view text) {
  int open = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') ++open;
    if ((c == ']' || c == '}') && open > 0) --open;
    if (open > 1000) return true;
  }
  return false;
}

// The length of the UTF-8 sequence at the start of text, 0 when there is no valid one.
size_t SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const size_t length = byte(0) < 0x80   ? 1
                        : byte(0) < 0xC2 ? 0
                        : byte(0) < 0xE0 ? 2
                        : byte(0) < 0xF0 ? 3
                        : byte(0) < 0xF5 ? 4
                                         : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and numbers above U+10FFFF show in the second byte.
  if (byte(0) == 0xE0 && byte(1) < 0xA0) return 0;
  if (byte(0) == 0xED && byte(1) > 0x9F) return 0;
  if (byte(0) == 0xF0 && byte(1) < 0x90) return 0;
  if (byte(0) == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

}  // namespace

const YamlNode* YamlNode::Find(std::string_view key) const {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] == key) return &children[i];
  }
  return nullptr;
}

YamlNode* YamlNode::Find(std::string_view key) {
  return const_cast<YamlNode*>(std::as_const(*this).Find(key));
}

bool IsPlainUtf8(std::string_view text, int* line) {
  *line = 1;
  while (!text.empty()) {
    const char c = text[0];
    const size_t length = SequenceLength(text);
    const bool control = (c >= 0 && c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == 0x7F;
    if (length == 0 || control) return false;
    *line += c == '\n';
    text.remove_prefix(length);
  }
  return true;
}

YamlNode ParseYaml(std::string_view text, const std::string& name) {
  TreeBuilder builder(name);
  if (text.size() > kMaxBytes) builder.Fail(1, "more than 1 MiB of text");
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // byte order mark
  int line = 0;
  if (!IsPlainUtf8(text, &line)) {
    builder.Fail(line, "bytes that are no UTF-8 text, or a control character");
  }
  line = LineIndentedByTab(text);
  if (line != 0) builder.Fail(line, "a tab in the indentation: use spaces");
  if (OpensManyBrackets(text)) builder.Fail(1, "more than 1000 open brackets");
  // The end marker makes the parser refuse a quote that is still open, which it takes for closed at
  // the end of the input.
  std::string marked(text);
  marked += "\n...\n";
  const auto last_line = std::count(text.begin(), text.end(), '\n') + 1;
  try {
    std::istringstream stream(marked);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    if (error.mark.line < last_line) builder.Fail(error.mark.line + 1, error.msg);
    builder.Fail(static_cast<int>(last_line), "the text ends inside a quote or bracket");
  }
  return builder.Take();
}

}  // namespace weft
