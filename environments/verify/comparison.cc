#include "environments/verify/comparison.h"

#include <cmath>
#include <limits>

#include "base/check.h"

namespace weft {

void Comparison::Check(const std::string& tensor, double got, double expected, double tolerance) {
  VerifyField& field = fields_[tensor];
  ++field.checked;
  // A NaN differs from all but a NaN.
  const double error = std::isnan(got) && std::isnan(expected) ? 0 : std::abs(got - expected);
  const double ratio = error == 0 ? 0 : tolerance > 0 ? error / tolerance : INFINITY;
  if (!(ratio <= 1)) ++field.failed;
  if (field.checked == 1 || !(ratio <= field.ratio)) {
    field.ratio = ratio;
    field.error = error;
    field.tolerance = tolerance;
  }
}

void Comparison::CheckSize(const std::string& tensor, size_t got, size_t expected) const {
  WEFT_CHECK_EQ(got, expected) << "size of a row of " << tensor << " in " << file_;
}

void Comparison::Check(const std::string& tensor, std::span<const double> got,
                       std::span<const double> expected, double tolerance) {
  CheckSize(tensor, got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) Check(tensor, got[i], expected[i], tolerance);
}

void Comparison::CheckFloat32(const std::string& tensor, std::span<const double> got,
                              std::span<const double> expected, double tolerance) {
  CheckSize(tensor, got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const auto value = std::abs(static_cast<float>(expected[i]));
    const double unit = std::nextafter(value, std::numeric_limits<float>::infinity()) - value;
    Check(tensor, got[i], expected[i], tolerance + unit);
  }
}

VerifyReport Comparison::Report() const {
  VerifyReport report;
  report.files.push_back(file_);
  for (const auto& [tensor, field] : fields_) {
    report.fields.push_back(field);
    report.fields.back().file = file_;
    report.fields.back().tensor = tensor;
    report.checked += field.checked;
    report.failed += field.failed;
    if (report.fields.size() == 1 || !(field.ratio <= report.worst.ratio)) {
      report.worst = report.fields.back();
    }
  }
  return report;
}

void Merge(const VerifyReport& from, VerifyReport& into) {
  if (into.fields.empty() || !(from.worst.ratio <= into.worst.ratio)) into.worst = from.worst;
  into.checked += from.checked;
  into.failed += from.failed;
  into.fields.insert(into.fields.end(), from.fields.begin(), from.fields.end());
  into.files.insert(into.files.end(), from.files.begin(), from.files.end());
  into.skipped.insert(into.skipped.end(), from.skipped.begin(), from.skipped.end());
}

}  // namespace weft
