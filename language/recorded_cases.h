// A topic of recorded mathematics: TOPIC.safetensors with the tensors CASE.NAME, and TOPIC.json,
// which lists the cases with their parameters and outputs (reference/language/README.md, "maths").
// What a check is compared with, and what nobody checked.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/comparison.h"
#include "language/json.h"
#include "tensor/tensor_map.h"

namespace weft {

class RecordedCases {
 public:
  // Throws Error(kIo, kCorrupt) where a file cannot be read or has another form.
  RecordedCases(const std::string& folder, const std::string& topic);

  bool Has(const std::string& name) const { return data_.Has(name); }
  // Throws Error(kCorrupt) naming the file when there is no such tensor.
  const Tensor& At(const std::string& name) const;
  std::vector<double> Doubles(const std::string& name) const;  // of any dtype
  std::vector<float> Floats(const std::string& name) const;
  // A number among a case's parameters; `otherwise` where it is null or missing.
  double Parameter(const std::string& name, const char* key, double otherwise) const;

  // |got - recorded| <= relative |recorded| + absolute for each value.
  void Check(const std::string& name, std::span<const double> got, double relative,
             double absolute);
  void Check(const std::string& name, std::span<const float> got, double relative, double absolute);
  // Values that the caller picked from a recorded tensor.
  void Check(const std::string& name, std::span<const double> got, std::span<const double> want,
             double relative, double absolute);

  // Cases with outputs of which none was checked are `skipped`, for `reason`.
  VerifyReport Report(const std::string& reason) const;

 private:
  std::string topic_, file_;
  TensorMap data_;
  JsonValue page_;
  Comparison comparison_;
  std::set<std::string> checked_;  // tensors
};

}  // namespace weft
