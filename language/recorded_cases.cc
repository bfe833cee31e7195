#include "language/recorded_cases.h"

#include <cmath>

#include "base/check.h"
#include "base/text.h"
#include "nn/safetensors.h"

namespace weft {

RecordedCases::RecordedCases(const std::string& folder, const std::string& topic)
    : topic_(topic),
      file_(folder + "/" + topic + ".safetensors"),
      data_(ReadSafetensors(file_)),
      page_(ReadJsonFile(folder + "/" + topic + ".json")),
      comparison_(folder + "/" + topic) {
  const JsonValue* cases = page_.IsObject() ? page_.Find("cases") : nullptr;
  if (cases == nullptr || !cases->IsArray()) {
    throw Error(ErrorCode::kCorrupt, folder + "/" + topic + ".json has no list of cases");
  }
}

const Tensor& RecordedCases::At(const std::string& name) const {
  const Tensor* tensor = data_.Find(name);
  if (tensor == nullptr) throw Error(ErrorCode::kCorrupt, file_ + " has no tensor " + name);
  return *tensor;
}

std::vector<double> RecordedCases::Doubles(const std::string& name) const {
  const Tensor& tensor = At(name);
  const auto copy = [](auto values) { return std::vector<double>(values.begin(), values.end()); };
  switch (tensor.dtype()) {
    case DType::kFloat64:
      return copy(tensor.data<double>());
    case DType::kFloat32:
      return copy(tensor.data<float>());
    case DType::kInt64:
      return copy(tensor.data<int64_t>());
    case DType::kUInt8:
      return copy(tensor.data<uint8_t>());
    default:
      throw Error(ErrorCode::kCorrupt, file_ + ": " + name + " is neither F64, F32, I64 nor U8");
  }
}

std::vector<float> RecordedCases::Floats(const std::string& name) const {
  const std::vector<double> values = Doubles(name);
  return {values.begin(), values.end()};
}

double RecordedCases::Parameter(const std::string& name, const char* key, double otherwise) const {
  for (const JsonValue& item : page_.Find("cases")->Items()) {
    const JsonValue *title = item.Find("name"), *parameters = item.Find("params");
    if (title == nullptr || title->AsString() != name || parameters == nullptr) continue;
    const JsonValue* value = parameters->Find(key);
    if (value != nullptr && value->IsNumber()) value->GetDouble(otherwise);
  }
  return otherwise;
}

void RecordedCases::Check(const std::string& name, std::span<const double> got,
                          std::span<const double> want, double relative, double absolute) {
  WEFT_CHECK_EQ(got.size(), want.size()) << "values of " << name << " in " << file_;
  checked_.insert(name);
  for (size_t i = 0; i < got.size(); ++i) {
    const double tolerance = std::isfinite(want[i]) ? relative * std::fabs(want[i]) + absolute : 0;
    comparison_.Check(name, got[i], want[i], tolerance);
  }
}

void RecordedCases::Check(const std::string& name, std::span<const double> got, double relative,
                          double absolute) {
  Check(name, got, Doubles(name), relative, absolute);
}

void RecordedCases::Check(const std::string& name, std::span<const float> got, double relative,
                          double absolute) {
  Check(name, std::vector<double>(got.begin(), got.end()), relative, absolute);
}

VerifyReport RecordedCases::Report(const std::string& reason) const {
  VerifyReport report = comparison_.Report();
  std::vector<std::string> left;
  for (const JsonValue& item : page_.Find("cases")->Items()) {
    const JsonValue *title = item.Find("name"), *outputs = item.Find("outputs");
    if (title == nullptr || outputs == nullptr || outputs->Items().empty()) continue;
    bool checked = false;
    for (const JsonValue& output : outputs->Items()) {
      checked |= checked_.contains(title->AsString() + "." + output.Find("name")->AsString());
    }
    if (!checked) left.push_back(title->AsString());
  }
  if (!left.empty()) report.skipped.push_back(topic_ + " " + Join(left, ", ") + ": " + reason);
  return report;
}

}  // namespace weft
