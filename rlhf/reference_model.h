// The start model, which the policy is compared with: a model of its own, which stays quantised
// when its file is, or, beside adapters, the learner's own weights without them, of which there is
// no copy. Both have the same bits.
#pragma once

#include <memory>
#include <string>

#include "dataflow/fragment.h"
#include "language/language_model.h"

namespace weft {

class ReferenceModel {
 public:
  // A fragment's second input, when the weights are the learner's.
  enum Input { kSamples, kParameters };

  ReferenceModel(const Context& context, const std::string& path, Precision precision,
                 bool shares_base)
      : shares_base_(shares_base) {
    const auto file = ModelFile::Open(path);
    model_ = shares_base ? std::make_unique<Transformer>(file->config(), precision)
                         : LoadTransformer(context, *file, {.precision = precision});
  }

  static void AddPort(bool shares_base, PortList& ports) {
    if (shares_base) ports.inputs.push_back({.name = "parameters"});
  }
  PortSet needs() const {
    return shares_base_ ? PortSet{kSamples, kParameters} : PortSet{kSamples};
  }
  // Around a step's use: the learner may write its weights after End.
  void Begin(Ports& ports) {
    if (shares_base_) model_->AdoptBase(ports.Read(kParameters).body);
  }
  void End() {
    if (shares_base_) model_->LetGo();
  }
  Transformer& model() { return *model_; }

 private:
  const bool shares_base_;
  std::unique_ptr<Transformer> model_;
};

}  // namespace weft
