// Collects differences between numbers and their reference, per tensor of a file, into a
// VerifyReport.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>

#include "environments/verify/verify.h"

namespace weft {

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

}  // namespace weft
