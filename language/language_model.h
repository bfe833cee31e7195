// A model ready for use: its weights read into a transformer in the precision of its use.
#pragma once

#include <memory>
#include <string>

#include "language/model_files.h"
#include "language/transformer.h"

namespace weft {

struct LoadOptions {
  Precision precision = Precision::kBFloat16;
  // Weights that the file has quantised stay so (bf16 only): they take less memory and are read
  // faster, and give the bits that rounding them to bf16 gives. Not for training.
  bool keep_quantised = true;
  // Round what meets quantised weights to 8 bits: faster, and less exact.
  bool round_rows = false;
  bool keep_master = false;  // f32 weights, for training and writing
  std::string adapter;  // a folder in PEFT's format (lora_files.h) beside the weights; "": none
};

// Error(kConfig) when rows are to be rounded and no weight is quantised.
std::unique_ptr<Transformer> LoadTransformer(const Context& context, const ModelFile& file,
                                             const LoadOptions& options);

}  // namespace weft
