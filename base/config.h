// Configuration: C++ structs whose fields are declared once, in Fields(), and that declaration
// serves parsing, defaults, ranges, --help, the resolved YAML and the overrides key=value. A YAML
// file says only what differs from the defaults.
//
//   struct DqnConfig : Config {
//     double learning_rate = 2.5e-4;
//     void Fields(FieldVisitor& v) override {
//       v.Field("learning_rate", learning_rate, "Adam step size", Range::Positive());
//     }
//   };
//
// Every mistake is an Error(kConfig) that names file, line, key, the reason and the nearest valid
// choice:
//
//   configs/dqn/cartpole.yaml:4: lerning_rate: there is no such key; did you mean "learning_rate"?
//   command line: learning_rate: must be > 0, not -1
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"

namespace weft {

// The closed interval that a number must lie in; a low bound can be excluded. Infinity is refused
// unless infinite_allowed says that it has a meaning (no limit); NaN always is.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_excluded = false;
  bool infinite_allowed = false;

  static Range AtLeast(double low) { return {.low = low}; }
  static Range Between(double low, double high) { return {.low = low, .high = high}; }
  static Range Positive() { return {.low = 0, .low_excluded = true}; }
  Range OrInfinite() const { return {low, high, low_excluded, true}; }

  bool Holds(double value) const;
  std::string text() const;  // ">= 0", "> 0", "0..1", "" when there is no bound
};

class Config;

// A field that is a sequence of maps. Each entry is a section of its own, made by its name: that of
// the key "name" in "- {name: frame_stack, count: 4}", short "- frame_stack".
struct SectionList {
  // Called first by a document that has the list, which replaces what there is.
  std::function<void()> clear;
  // Makes the section of an entry and keeps it. Refuses an unknown name with an Error(kConfig), as
  // Registry::At does.
  std::function<Config&(const std::string& name)> make;
  // The sections that there are, for output.
  std::function<std::vector<std::pair<std::string, Config*>>()> current;
  // When not empty: an entry is named by the one of its keys that is among these,
  // "- {joint_position: knee, weight: 2}", which its section has as a field of its own, the first.
  std::vector<std::string> kinds = {};
};

// Visits the fields of a Config in the order of their declaration. Implemented by the parser, the
// writer and the help. Keys are snake_case words without dots.
class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;

  virtual void Field(const char* key, bool& value, const char* help) = 0;
  virtual void Field(const char* key, int64_t& value, const char* help, Range range = {}) = 0;
  virtual void Field(const char* key, uint64_t& value, const char* help) = 0;  // 64 bits: seeds
  virtual void Field(const char* key, double& value, const char* help, Range range = {}) = 0;
  virtual void Field(const char* key, std::string& value, const char* help) = 0;
  // Text out of a closed set; the error lists the set.
  virtual void Choice(const char* key, std::string& value, const std::vector<std::string>& choices,
                      const char* help) = 0;
  // Lists; the range holds for each element.
  virtual void Field(const char* key, std::vector<int64_t>& value, const char* help,
                     Range range = {}) = 0;
  virtual void Field(const char* key, std::vector<double>& value, const char* help,
                     Range range = {}) = 0;
  virtual void Field(const char* key, std::vector<std::string>& value, const char* help) = 0;
  // One text, or a list of them.
  virtual void Names(const char* key, std::vector<std::string>& value, const char* help) = 0;
  // A nested map. The section may depend on fields visited before it (environment.arguments on
  // environment.id).
  virtual void Section(const char* key, Config& section, const char* help) = 0;
  virtual void Sections(const char* key, const SectionList& list, const char* help) = 0;
};

class Config {
 public:
  virtual ~Config() = default;
  // Called once for each parse, output and help: a section that depends on an earlier field is made
  // anew only when that field has changed, or its values are lost. An Error(kConfig) that it throws
  // is placed at the field visited last, so a name is looked up right after its Field.
  virtual void Fields(FieldVisitor& visitor) = 0;
  // Combinations that no single range can express (minibatch above the rollout). Throws
  // ConfigProblem, whose key is relative to this section. Called by ConfigSource::Parse on every
  // section, then on the root.
  virtual void Check() const {}
};

// "key: reason" for a key that is dotted from where Check is called: "environment.rows". The source
// adds file and line of that key, or says that it came from the command line or is a default.
class ConfigProblem : public std::exception {
 public:
  ConfigProblem(std::string key, std::string reason);
  const std::string& key() const { return key_; }
  const std::string& reason() const { return reason_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string key_, reason_, text_;
};

// A parsed, guarded document: one file plus overrides, kept with line numbers. Guards: at most 1
// MiB, depth 32, 100,000 nodes, UTF-8, one document, no aliases, anchors, tags or merge keys, no
// duplicate keys.
class ConfigSource {
 public:
  static ConfigSource File(const std::string& path);  // throws kConfig naming path and line
  // name stands for the path in messages.
  static ConfigSource Text(std::string_view yaml, std::string_view name);
  ~ConfigSource();
  ConfigSource(ConfigSource&&) noexcept;
  ConfigSource& operator=(ConfigSource&&) noexcept;

  // "environment.id=Hopper-v5": sets one key, any depth; value is YAML (so lists work), and nothing
  // after = is the empty text. Elements of lists go by index or, in a list of named sections, by
  // name: "wrappers.frame_stack.count=4". The last override of a key wins.
  void Override(std::string_view assignment);
  bool Has(std::string_view dotted_key) const;
  // The scalar at a key, "" when absent: to choose the struct (algorithm: ppo) before parsing into
  // it.
  std::string Scalar(std::string_view dotted_key) const;

  // Fills config, checks ranges, refuses unknown keys, runs Check.
  void Parse(Config& config) const;

  // A problem that shows only after Parse (an action space that the algorithm cannot handle), as
  // the error with its place. The key is dotted from the root.
  Error Locate(const ConfigProblem& problem) const;

 private:
  struct Document;
  explicit ConfigSource(std::unique_ptr<Document> document);
  std::unique_ptr<Document> document_;
};

// All fields with their values, as YAML that Parse reads back to the same config (numbers
// round-trip exactly).
std::string ToYaml(const Config& config);

// One line per field: dotted key, default, range or choices, help.
std::string ConfigHelp(const Config& config);

}  // namespace weft
