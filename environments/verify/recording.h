// A reference recording: a safetensors file of transitions, read as numbers row by row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "environments/environment.h"
#include "nn/safetensors.h"

namespace weft {

class Recording {
 public:
  explicit Recording(const std::string& path);

  const std::string& name() const { return name_; }  // of the file, without its folder
  bool Has(const std::string& tensor) const { return tensors_.Has(tensor); }
  std::vector<std::string> Names(
      const std::string& prefix) const;                // tensors that begin so, in order
  std::string Metadata(const std::string& key) const;  // "" when missing
  const SafetensorsMetadata& metadata() const { return metadata_; }

  int64_t Rows(const std::string& tensor) const { return tensors_.At(tensor).dim(0); }
  std::vector<double> Row(const std::string& tensor, int64_t row) const;
  double Number(const std::string& tensor, int64_t row) const { return Row(tensor, row).at(0); }
  std::vector<double> All(const std::string& tensor) const;
  bool IsFloat32(const std::string& tensor) const {
    return tensors_.At(tensor).dtype() == DType::kFloat32;
  }

  // One action; `single` rounds it to f32. Valid until the next call.
  ActionRow Action(const std::string& tensor, int64_t row, bool single = false);
  // One action of a tensor [rollout, time, A].
  ActionRow ActionAt(const std::string& tensor, int64_t rollout, int64_t time) const;

 private:
  std::string name_;
  SafetensorsMetadata metadata_;
  TensorMap tensors_;
  std::vector<float> single_;
};

}  // namespace weft
