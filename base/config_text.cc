// The two outputs of a config: the resolved YAML and the help.
#include <algorithm>
#include <cctype>

#include "base/check.h"
#include "base/config.h"
#include "base/scalar.h"
#include "base/text.h"
#include "base/yaml.h"

namespace weft {
namespace {

// Text as a YAML scalar: plain when every reader of YAML takes it for text, else in double quotes.
std::string ScalarText(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '.' || c == '/';
  };
  static constexpr const char* kReserved[] = {"null", "true", "false", "yes", "no",
                                              "on",   "off",  "y",     "n"};
  std::string lower = text;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const bool word = !text.empty() && (std::isalpha(static_cast<unsigned char>(text[0])) ||
                                      text[0] == '_' || text[0] == '/');
  if (word && std::all_of(text.begin(), text.end(), plain) &&
      std::none_of(std::begin(kReserved), std::end(kReserved),
                   [&](const char* reserved) { return lower == reserved; })) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      quoted += "\\x";
      quoted += "0123456789abcdef"[byte >> 4];
      quoted += "0123456789abcdef"[byte & 15];
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string ScalarText(bool value) {
  return value ? "true" : "false";
}
std::string ScalarText(int64_t value) {
  return std::to_string(value);
}
std::string ScalarText(uint64_t value) {
  return std::to_string(value);
}
std::string ScalarText(double value) {
  return NumberText(value);
}
template <class T>
std::string ScalarText(const std::vector<T>& values) {
  std::vector<std::string> texts;
  for (const T& value : values) texts.push_back(ScalarText(value));
  return "[" + Join(texts, ", ") + "]";
}

// What both outputs share: every kind of field is a key, its value as text, and its limits as text.
class TextVisitor : public FieldVisitor {
 public:
  void Field(const char* key, bool& value, const char* help) override {
    Line(key, ScalarText(value), "", help);
  }
  void Field(const char* key, int64_t& value, const char* help, Range range) override {
    Line(key, ScalarText(value), range.text(), help);
  }
  void Field(const char* key, uint64_t& value, const char* help) override {
    Line(key, ScalarText(value), "", help);
  }
  void Field(const char* key, double& value, const char* help, Range range) override {
    Line(key, ScalarText(value), range.text(), help);
  }
  void Field(const char* key, std::string& value, const char* help) override {
    Line(key, ScalarText(value), "", help);
  }
  void Choice(const char* key, std::string& value, const std::vector<std::string>& choices,
              const char* help) override {
    Line(key, ScalarText(value), Join(choices, "|"), help);
  }
  void Field(const char* key, std::vector<int64_t>& value, const char* help, Range range) override {
    Line(key, ScalarText(value), range.text(), help);
  }
  void Field(const char* key, std::vector<double>& value, const char* help, Range range) override {
    Line(key, ScalarText(value), range.text(), help);
  }
  void Field(const char* key, std::vector<std::string>& value, const char* help) override {
    Line(key, ScalarText(value), "", help);
  }
  void Names(const char* key, std::vector<std::string>& value, const char* help) override {
    Line(key, value.size() == 1 ? ScalarText(value[0]) : ScalarText(value), "", help);
  }

  const std::string& text() const { return text_; }

 protected:
  virtual void Line(const char* key, const std::string& value, const std::string& limits,
                    const char* help) = 0;
  std::string text_;
};

class YamlWriter final : public TextVisitor {
 public:
  explicit YamlWriter(int indentation) : indentation_(indentation) {}

  void Section(const char* key, Config& section, const char*) override {
    const std::string body = Body(section, indentation_ + 2);
    text_ += Indented(key) + (body.empty() ? ": {}\n" : ":\n" + body);
  }
  void Sections(const char* key, const SectionList& list, const char*) override {
    const auto sections = list.current();
    text_ += Indented(key) + (sections.empty() ? ": []\n" : ":\n");
    for (const auto& [name, section] : sections) {
      std::string body = Body(*section, indentation_ + 4);
      if (list.kinds.empty()) {
        text_ += Indented("  - name: ") + ScalarText(name) + "\n" + body;
      } else {
        body[static_cast<size_t>(indentation_) + 2] = '-';
        text_ += body;
      }
    }
  }
  static std::string Body(Config& config, int indentation) {
    YamlWriter writer(indentation);
    config.Fields(writer);
    return writer.text();
  }

 private:
  void Line(const char* key, const std::string& value, const std::string&, const char*) override {
    text_ += Indented(key) + ": " + value + "\n";
  }
  std::string Indented(const char* text) const {
    return std::string(static_cast<size_t>(indentation_), ' ') + text;
  }
  int indentation_;
};

class HelpWriter final : public TextVisitor {
 public:
  explicit HelpWriter(std::string prefix) : prefix_(std::move(prefix)) {}

  void Section(const char* key, Config& section, const char*) override {
    HelpWriter writer(prefix_ + key + ".");
    section.Fields(writer);
    text_ += writer.text();
  }
  void Sections(const char* key, const SectionList& list, const char* help) override {
    Line(key, "[]", list.kinds.empty() ? "list of names or sections" : "list of sections", help);
  }

 private:
  void Line(const char* key, const std::string& value, const std::string& limits,
            const char* help) override {
    std::string line = "  " + prefix_ + key;
    line.resize(std::max<size_t>(line.size() + 1, 36), ' ');
    line += value;
    line.resize(std::max<size_t>(line.size() + 1, 50), ' ');
    text_ += line + help + (limits.empty() ? "" : " (" + limits + ")") + "\n";
  }
  std::string prefix_;
};

// A visitor may change fields, these writers do not.
Config& Visitable(const Config& config) {
  return const_cast<Config&>(config);
}

}  // namespace

std::string ToYaml(const Config& config) {
  std::string text = YamlWriter::Body(Visitable(config), 0);
  int line = 0;
  WEFT_CHECK(IsPlainUtf8(text, &line)) << "a config holds bytes that are no UTF-8, line " << line;
  return text;
}

std::string ConfigHelp(const Config& config) {
  HelpWriter writer("");
  Visitable(config).Fields(writer);
  return writer.text();
}

}  // namespace weft
