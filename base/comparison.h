// Differences between numbers and their reference, per tensor of a file: what the verify commands
// collect and print.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weft {

// One tensor of one file.
struct VerifyField {
  std::string file, tensor;
  int64_t checked = 0, failed = 0;  // values
  double ratio = 0;  // largest difference in units of its tolerance; above 1 is a failure
  double error = 0, tolerance = 0;  // of the value with that ratio
};

struct VerifyReport {
  int64_t checked = 0, failed = 0;  // values, over all fields
  VerifyField worst;                // the field with the largest ratio
  std::vector<VerifyField> fields;
  std::vector<std::string> files;    // compared
  std::vector<std::string> skipped;  // "name: reason"
};

class Comparison {
 public:
  explicit Comparison(std::string file) : file_(std::move(file)) {}

  void Check(const std::string& tensor, double got, double expected, double tolerance);
  void Check(const std::string& tensor, std::span<const double> got,
             std::span<const double> expected, double tolerance);
  // Observations that the reference returns as float32: one unit in the last place on top of the
  // tolerance.
  void CheckFloat32(const std::string& tensor, std::span<const double> got,
                    std::span<const double> expected, double tolerance);

  VerifyReport Report() const;

 private:
  void CheckSize(const std::string& tensor, size_t got, size_t expected) const;

  std::string file_;
  std::map<std::string, VerifyField> fields_;
};

// Adds the findings of one report to another.
void Merge(const VerifyReport& from, VerifyReport& into);

// A table: one line per file, with `all_fields` one per field, and what was skipped.
std::string ToText(const VerifyReport& report, bool all_fields);

}  // namespace weft
