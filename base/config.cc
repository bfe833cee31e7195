#include "base/config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "base/scalar.h"
#include "base/text.h"
#include "base/yaml.h"

namespace weft {
namespace {

using Kind = YamlNode::Kind;

const char* KindName(Kind kind) {
  switch (kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kScalar:
      return "a single value";
    case Kind::kSequence:
      return "a list";
    default:
      return "a section";
  }
}

std::string Dotted(const std::string& prefix, const std::string& key) {
  return prefix.empty() ? key : prefix + "." + key;
}

// An error whose message names file and line already.
class LocatedError final : public Error {
 public:
  explicit LocatedError(std::string message) : Error(ErrorCode::kConfig, std::move(message)) {}
};

// The name of an entry of a list of sections: "- frame_stack" or "- {name: frame_stack}"; nullptr
// when it has none.
const YamlNode* EntryName(const YamlNode& entry) {
  if (entry.kind == Kind::kScalar) return &entry;
  const YamlNode* name = entry.Find("name");
  return name != nullptr && name->kind == Kind::kScalar ? name : nullptr;
}

// The index of the element of a list that a part of a dotted key names; its size when none.
size_t ElementIndex(const YamlNode& list, std::string_view part) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
  if (error == std::errc() && end == part.data() + part.size()) {
    return std::min(index, list.children.size());
  }
  for (size_t i = 0; i < list.children.size(); ++i) {
    const YamlNode* name = EntryName(list.children[i]);
    if (name != nullptr && name->scalar == part) return i;
  }
  return list.children.size();
}

// Takes the first part off a dotted key.
std::string_view TakePart(std::string_view& dotted_key) {
  const size_t dot = dotted_key.find('.');
  const std::string_view part = dotted_key.substr(0, dot);
  dotted_key.remove_prefix(dot == std::string_view::npos ? dotted_key.size() : dot + 1);
  return part;
}

void SetLine(YamlNode& node, int line) {
  node.line = line;
  for (YamlNode& child : node.children) SetLine(child, line);
}

}  // namespace

struct ConfigSource::Document {
  std::string name;
  YamlNode root;

  const YamlNode* Find(std::string_view dotted_key) const {
    const YamlNode* node = &root;
    while (!dotted_key.empty() && node != nullptr) {
      const std::string_view part = TakePart(dotted_key);
      if (node->kind == Kind::kSequence) {
        const size_t index = ElementIndex(*node, part);
        node = index < node->children.size() ? &node->children[index] : nullptr;
      } else {
        node = node->Find(part);
      }
    }
    return node;
  }

  // "file:3", "command line", or "file (default)" for no node.
  std::string Place(const YamlNode* node) const {
    if (node == nullptr) return name + " (default)";
    return node->line == 0 ? "command line" : name + ":" + std::to_string(node->line);
  }
  LocatedError Fault(const YamlNode* node, const std::string& key,
                     const std::string& reason) const {
    return LocatedError(Place(node) + ": " + (key.empty() ? "" : key + ": ") + reason);
  }
};

namespace {

// Reads one map of the document into one Config. Document is ConfigSource's private type.
template <class Document>
class FieldReader final : public FieldVisitor {
 public:
  // node: nullptr when the document says nothing and all fields keep their defaults.
  FieldReader(const Document& document, const YamlNode* node, std::string prefix)
      : document_(document), node_(node), prefix_(std::move(prefix)) {}

  void Read(Config& config) {
    if (node_ != nullptr && node_->kind != Kind::kMap && node_->kind != Kind::kNull) {
      throw document_.Fault(node_, prefix_,
                            "must be a section of keys, not " + std::string(KindName(node_->kind)));
    }
    try {
      config.Fields(*this);
      RefuseUnknownKeys();
      config.Check();
    } catch (const ConfigProblem& problem) {
      const std::string key = Dotted(prefix_, problem.key());
      throw document_.Fault(document_.Find(key), key, problem.reason());
    } catch (const LocatedError&) {
      throw;
    } catch (const Error& error) {
      // From the config's own code, such as a registry that does not know the name just read.
      if (error.code() != ErrorCode::kConfig || keys_.empty()) throw;
      throw document_.Fault(last_, Dotted(prefix_, keys_.back()), error.message());
    }
  }

  // The key "name" of an entry in a list of sections is read by the list.
  void Know(const char* key) { keys_.emplace_back(key); }

  void Field(const char* key, bool& value, const char*) override {
    if (const YamlNode* node = Visit(key)) {
      Convert(*node, key, "true or false", [&](auto& text) { return ParseBool(text, value); });
    }
  }
  void Field(const char* key, int64_t& value, const char*, Range range) override {
    if (const YamlNode* node = Visit(key)) Number(*node, key, value, range);
  }
  void Field(const char* key, uint64_t& value, const char*) override {
    if (const YamlNode* node = Visit(key)) Number(*node, key, value, {});
  }
  void Field(const char* key, double& value, const char*, Range range) override {
    if (const YamlNode* node = Visit(key)) Number(*node, key, value, range);
  }
  void Field(const char* key, std::string& value, const char*) override {
    if (const YamlNode* node = Visit(key)) Text(*node, key, value);
  }
  void Choice(const char* key, std::string& value, const std::vector<std::string>& choices,
              const char*) override {
    const YamlNode* node = Visit(key);
    if (node == nullptr) return;
    std::string text;
    Text(*node, key, text);
    if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
      throw Fault(*node, key,
                  "must be one of " + Join(choices, ", ") + ", not \"" + text + "\"" +
                      DidYouMean(text, choices));
    }
    value = text;
  }
  void Field(const char* key, std::vector<int64_t>& value, const char*, Range range) override {
    List(key, value, [&](const YamlNode& node, const std::string& element, int64_t& number) {
      Number(node, element, number, range);
    });
  }
  void Field(const char* key, std::vector<double>& value, const char*, Range range) override {
    List(key, value, [&](const YamlNode& node, const std::string& element, double& number) {
      Number(node, element, number, range);
    });
  }
  void Field(const char* key, std::vector<std::string>& value, const char*) override {
    List(key, value, [&](const YamlNode& node, const std::string& element, std::string& text) {
      Text(node, element, text);
    });
  }
  void Section(const char* key, Config& section, const char*) override {
    const YamlNode* node = Visit(key);
    // Without a node too: Check holds for defaults as well.
    FieldReader(document_, node, Dotted(prefix_, key)).Read(section);
  }
  void Names(const char* key, std::vector<std::string>& value, const char* help) override {
    const YamlNode* node = node_ != nullptr ? node_->Find(key) : nullptr;
    if (node == nullptr || node->kind != Kind::kScalar) return Field(key, value, help);
    Visit(key);
    value = {node->scalar};
  }
  void Sections(const char* key, const SectionList& sections, const char*) override {
    const YamlNode* list = Visit(key);
    if (list == nullptr) return;
    if (list->kind != Kind::kSequence) {
      const std::string entries = sections.kinds.empty()
                                      ? "of names or of sections with a name (\"- name: ...\")"
                                      : "of sections (\"- " + sections.kinds.front() + ": ...\")";
      throw Fault(*list, key, "must be a list " + entries + ", not " + KindName(list->kind));
    }
    sections.clear();
    for (size_t i = 0; i < list->children.size(); ++i) {
      const YamlNode& entry = list->children[i];
      const std::string element = std::string(key) + "." + std::to_string(i);
      if (!sections.kinds.empty()) {
        const std::string kind = KindOf(entry, element, sections.kinds);
        FieldReader(document_, &entry, Dotted(prefix_, element)).Read(sections.make(kind));
        continue;
      }
      const YamlNode* name = EntryName(entry);
      if (name == nullptr) throw Fault(entry, element, "has no name (\"- name: ...\")");
      last_ = name;
      FieldReader reader(document_, entry.kind == Kind::kMap ? &entry : nullptr,
                         Dotted(prefix_, element));
      reader.Know("name");
      reader.Read(sections.make(name->scalar));
    }
  }

 private:
  // The node of a key, which is known from now on; nullptr when the document does not say it.
  const YamlNode* Visit(const char* key) {
    Know(key);
    return last_ = node_ != nullptr ? node_->Find(key) : nullptr;
  }

  LocatedError Fault(const YamlNode& node, const std::string& key,
                     const std::string& reason) const {
    return document_.Fault(&node, Dotted(prefix_, key), reason);
  }

  // The one key of an entry that is among kinds.
  std::string KindOf(const YamlNode& entry, const std::string& element,
                     const std::vector<std::string>& kinds) const {
    std::string kind;
    for (const std::string& key : entry.keys) {
      if (std::find(kinds.begin(), kinds.end(), key) == kinds.end()) continue;
      if (!kind.empty()) throw Fault(entry, element, "is both " + kind + " and " + key);
      kind = key;
    }
    if (!kind.empty()) return kind;
    const std::string first = entry.keys.empty() ? entry.scalar : entry.keys.front();
    throw Fault(entry, element,
                "has none of the keys that say what it is: " + Join(kinds, ", ") +
                    (first.empty() ? "" : DidYouMean(first, kinds)));
  }

  void RefuseUnknownKeys() const {
    for (size_t i = 0; node_ != nullptr && i < node_->keys.size(); ++i) {
      const std::string& key = node_->keys[i];
      if (std::find(keys_.begin(), keys_.end(), key) != keys_.end()) continue;
      throw Fault(node_->children[i], key, "there is no such key" + DidYouMean(key, keys_));
    }
  }

  // Gives parse the plain scalar of a node; what it returns is the reason to refuse it.
  template <class ParseText>
  void Convert(const YamlNode& node, const std::string& key, const char* expected,
               ParseText parse) const {
    if (node.kind != Kind::kScalar) {
      throw Fault(node, key, std::string("must be ") + expected + ", not " + KindName(node.kind));
    }
    if (node.quoted) {
      throw Fault(
          node, key,
          std::string("must be ") + expected + ": leave out the quotes of \"" + node.scalar + "\"");
    }
    const std::string reason = parse(node.scalar);
    if (!reason.empty()) throw Fault(node, key, reason);
  }

  template <class T>
  void Number(const YamlNode& node, const std::string& key, T& value, Range range) const {
    Convert(node, key, std::is_same_v<T, double> ? "a number" : "a whole number",
            [&](const std::string& text) -> std::string {
              T number{};
              std::string reason = ParseNumber(text, number);
              if (!reason.empty()) return reason;
              if constexpr (std::is_same_v<T, double>) {
                if (std::isinf(number) && !range.infinite_allowed) {
                  return "must be finite, not " + text;
                }
              }
              if (!range.Holds(static_cast<double>(number))) {
                return "must be " + range.text() + ", not " + text;
              }
              value = number;
              return "";
            });
  }

  void Text(const YamlNode& node, const std::string& key, std::string& value) const {
    if (node.kind != Kind::kScalar) {
      throw Fault(node, key, "must be text, not " + std::string(KindName(node.kind)));
    }
    value = node.scalar;
  }

  template <class T, class ReadElement>
  void List(const char* key, std::vector<T>& value, ReadElement read) {
    const YamlNode* list = Visit(key);
    if (list == nullptr) return;
    if (list->kind != Kind::kSequence) {
      throw Fault(*list, key,
                  "must be a list such as [" + (list->scalar.empty() ? "a, b" : list->scalar) +
                      "], not " + KindName(list->kind));
    }
    std::vector<T> elements(list->children.size());
    for (size_t i = 0; i < elements.size(); ++i) {
      read(list->children[i], std::string(key) + "." + std::to_string(i), elements[i]);
    }
    value = std::move(elements);
  }

  const Document& document_;
  const YamlNode* node_;
  const std::string prefix_;
  std::vector<std::string> keys_;   // known so far, in the order of the fields
  const YamlNode* last_ = nullptr;  // the value of the last one, nullptr when it is a default
};

}  // namespace

bool Range::Holds(double value) const {
  return (low_excluded ? value > low : value >= low) && value <= high;
}

std::string Range::text() const {
  const bool bounded_above = high != std::numeric_limits<double>::infinity();
  if (low == -std::numeric_limits<double>::infinity()) {
    return bounded_above ? "<= " + NumberText(high) : "";
  }
  const std::string above = (low_excluded ? "> " : ">= ") + NumberText(low);
  if (!bounded_above) return above;
  return low_excluded ? above + " and <= " + NumberText(high)
                      : NumberText(low) + ".." + NumberText(high);
}

ConfigProblem::ConfigProblem(std::string key, std::string reason)
    : key_(std::move(key)), reason_(std::move(reason)), text_(key_ + ": " + reason_) {}

ConfigSource::ConfigSource(std::unique_ptr<Document> document) : document_(std::move(document)) {}
ConfigSource::~ConfigSource() = default;
ConfigSource::ConfigSource(ConfigSource&&) noexcept = default;
ConfigSource& ConfigSource::operator=(ConfigSource&&) noexcept = default;

ConfigSource ConfigSource::File(const std::string& path) {
  try {
    return Text(ReadFile(path, uint64_t{1} << 20), path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kIo) throw;
    // A config that cannot be read is a mistake in the config, with the nearest file as advice.
    const std::filesystem::path file(path);
    const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
    throw Error(ErrorCode::kConfig,
                error.message() + (!FileExists(path) && DirectoryExists(folder)
                                       ? DidYouMean(file.filename().string(), ListDirectory(folder))
                                       : ""));
  }
}

ConfigSource ConfigSource::Text(std::string_view yaml, std::string_view name) {
  auto document = std::make_unique<Document>();
  document->name = name;
  document->root = ParseYaml(yaml, document->name);
  if (document->root.kind == Kind::kNull) document->root.kind = Kind::kMap;
  if (document->root.kind != Kind::kMap) {
    throw document->Fault(
        &document->root, "",
        "a config is \"key: value\" lines, not " + std::string(KindName(document->root.kind)));
  }
  return ConfigSource(std::move(document));
}

void ConfigSource::Override(std::string_view assignment) {
  const size_t equals = assignment.find('=');
  const std::string key(assignment.substr(0, equals));
  const auto fail = [&](const std::string& reason) {
    throw LocatedError("command line: " + std::string(assignment.substr(0, 100)) + ": " + reason);
  };
  if (equals == std::string_view::npos) fail("an override is written key=value");
  if (key.empty() || key.starts_with('.') || key.ends_with('.') ||
      key.find("..") != std::string::npos) {
    fail("\"" + key + "\" is no key");
  }
  YamlNode value = ParseYaml(assignment.substr(equals + 1), "command line: " + key);
  if (equals + 1 == assignment.size()) {
    value.kind = Kind::kScalar;
    value.quoted = true;
  }
  SetLine(value, 0);

  YamlNode* node = &document_->root;
  for (std::string_view rest = key; !rest.empty();) {
    const std::string part(TakePart(rest));
    if (node->kind == Kind::kSequence) {
      const size_t index = ElementIndex(*node, part);
      if (index == node->children.size()) {
        fail("the list has " + std::to_string(index) + " elements and none is called " + part);
      }
      node = &node->children[index];
      continue;
    }
    if (node->kind == Kind::kNull) node->kind = Kind::kMap;
    if (node->kind == Kind::kScalar) {
      // A list's "- frame_stack" stands for "- name: frame_stack".
      YamlNode name = std::move(*node);
      *node = YamlNode();
      node->kind = Kind::kMap;
      node->line = name.line;
      node->keys.emplace_back("name");
      node->children.push_back(std::move(name));
    }
    YamlNode* child = node->Find(part);
    if (child == nullptr) {
      node->keys.push_back(part);
      child = &node->children.emplace_back();
    }
    node = child;
  }
  *node = std::move(value);
}

bool ConfigSource::Has(std::string_view dotted_key) const {
  return document_->Find(dotted_key) != nullptr;
}

std::string ConfigSource::Scalar(std::string_view dotted_key) const {
  const YamlNode* node = document_->Find(dotted_key);
  return node == nullptr ? "" : node->scalar;
}

void ConfigSource::Parse(Config& config) const {
  FieldReader(*document_, &document_->root, "").Read(config);
}

Error ConfigSource::Locate(const ConfigProblem& problem) const {
  return document_->Fault(document_->Find(problem.key()), problem.key(), problem.reason());
}

}  // namespace weft
