// Writes a model as a Hugging Face folder or a GGUF file, from any weights under their canonical
// names: opened files (model_files.h), or a trained model's own. Whole or not at all; memory holds
// one tensor at a time. Equal inputs give equal bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "language/gguf_tokenizer.h"
#include "language/model_description.h"
#include "language/stored_weight.h"
#include "language/tokenizer_files.h"

namespace weft {

// (bytes done, bytes in all), after each tensor.
using WriteProgress = std::function<void(uint64_t, uint64_t)>;

// config.json, generation_config.json, model.safetensors with all weights in `type` (F32, F16 or
// BF16), and the tokenizer's files. path must not exist.
void WriteModelFolder(const std::string& path, const ModelDescription& description,
                      std::span<const StoredWeight> weights, WeightType type,
                      const TextFiles& tokenizer, const WriteProgress& progress = {});

struct GgufWriteOptions {
  // Of the matrices; nothing: each keeps its own. As llama.cpp does, vectors, norms and position
  // tables are F32, the output matrix is not below Q8_0, and rows that blocks do not divide are
  // F16.
  std::optional<WeightType> type;
  std::string name;  // general.name
  // The tokenizer: what a GGUF has (its keys general.* too are copied), or a folder's, with the
  // text of its tokenizer.json. Neither: none.
  const GgufFile* source = nullptr;
  std::optional<GgufTokenizer> tokenizer;
  std::string tokenizer_json;
};

// Error(kInvalidArgument) for a family or an option that GGUF cannot express.
void WriteModelGguf(const std::string& path, const ModelDescription& description,
                    std::span<const StoredWeight> weights, const GgufWriteOptions& options,
                    const WriteProgress& progress = {});

}  // namespace weft
