#include "base/comparison.h"

#include <cmath>
#include <iomanip>
#include <limits>
#include <sstream>

#include "base/check.h"

namespace weft {

void Comparison::Check(const std::string& tensor, double got, double expected, double tolerance) {
  VerifyField& field = fields_[tensor];
  ++field.checked;
  // A NaN differs from all but a NaN, an infinity from all but itself.
  const bool equal = got == expected || (std::isnan(got) && std::isnan(expected));
  const double error = equal ? 0 : std::abs(got - expected);
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

std::string ToText(const VerifyReport& report, bool all_fields) {
  std::ostringstream out;
  out << std::setprecision(2);
  const auto line = [&](const std::string& name, const VerifyField& field) {
    out << std::left << std::setw(58) << name << std::right << std::setw(9) << field.checked
        << std::setw(8) << field.failed << std::setw(10) << field.error << std::setw(10)
        << field.tolerance << "\n";
  };
  out << std::left << std::setw(58) << "recording" << std::right << std::setw(9) << "values"
      << std::setw(8) << "failed" << std::setw(10) << "error" << std::setw(10) << "allowed"
      << "\n";
  for (const std::string& file : report.files) {
    VerifyField total;
    for (const VerifyField& field : report.fields) {
      if (field.file != file) continue;
      total.checked += field.checked;
      total.failed += field.failed;
      if (total.checked == field.checked || field.ratio > total.ratio) {
        total.ratio = field.ratio;
        total.error = field.error;
        total.tolerance = field.tolerance;
      }
    }
    line(file, total);
    for (const VerifyField& field : report.fields) {
      if (all_fields && field.file == file) line("  " + field.tensor, field);
    }
  }
  for (const std::string& skipped : report.skipped) out << "skipped " << skipped << "\n";
  out << report.checked << " values, " << report.failed << " outside tolerance; worst "
      << report.worst.file << " " << report.worst.tensor << ": " << report.worst.error << " of "
      << report.worst.tolerance << " allowed\n";
  return out.str();
}

}  // namespace weft
