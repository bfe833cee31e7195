// The families of models that weft reads and writes, by the names their files use.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "language/model_config.h"

namespace weft {

enum class ModelFamily : uint8_t {
  kLlama,
  kMistral,
  kQwen2,
  kQwen3,
  kGemma,
  kGemma2,
  kPhi3,
  kGpt2,
  kGptNeox,
  kOpt,
};

struct ModelFamilyInfo {
  ModelFamily family;
  std::string_view model_type;      // of config.json: "llama"; ModelConfig::family
  std::string_view language_model;  // architectures[0] of config.json: "LlamaForCausalLM"
  std::string_view classifier;      // the same with a score head
  std::string_view gguf;            // general.architecture; "" when GGUF has none
};

std::span<const ModelFamilyInfo> ModelFamilies();
const ModelFamilyInfo* FindModelFamily(std::string_view model_type);  // null when unknown
// Of a config whose family is known.
const ModelFamilyInfo& FamilyOf(const ModelConfig& config);
std::string ModelFamilyNames();  // "llama, mistral, ...", for messages

// Bounds of what a file may claim, far above any real model; they keep sizes in 64 bits.
constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxHidden = int64_t{1} << 20;
constexpr int64_t kMaxHeads = int64_t{1} << 16;
constexpr int64_t kMaxVocabulary = int64_t{1} << 26;
constexpr int64_t kMaxContext = int64_t{1} << 30;

// Throws Error(kCorrupt) that begins with `file` when sizes do not fit together.
void CheckModelSizes(const ModelConfig& config, const std::string& file);

}  // namespace weft
