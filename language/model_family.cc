#include "language/model_family.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace weft {
namespace {

constexpr std::array<ModelFamilyInfo, 10> kFamilies = {{
    {ModelFamily::kLlama, "llama", "LlamaForCausalLM", "LlamaForSequenceClassification", "llama"},
    {ModelFamily::kMistral, "mistral", "MistralForCausalLM", "MistralForSequenceClassification",
     "llama"},
    {ModelFamily::kQwen2, "qwen2", "Qwen2ForCausalLM", "Qwen2ForSequenceClassification", "qwen2"},
    {ModelFamily::kQwen3, "qwen3", "Qwen3ForCausalLM", "Qwen3ForSequenceClassification", "qwen3"},
    {ModelFamily::kGemma, "gemma", "GemmaForCausalLM", "GemmaForSequenceClassification", "gemma"},
    {ModelFamily::kGemma2, "gemma2", "Gemma2ForCausalLM", "Gemma2ForSequenceClassification",
     "gemma2"},
    {ModelFamily::kPhi3, "phi3", "Phi3ForCausalLM", "Phi3ForSequenceClassification", "phi3"},
    {ModelFamily::kGpt2, "gpt2", "GPT2LMHeadModel", "GPT2ForSequenceClassification", "gpt2"},
    {ModelFamily::kGptNeox, "gpt_neox", "GPTNeoXForCausalLM", "GPTNeoXForSequenceClassification",
     "gptneox"},
    {ModelFamily::kOpt, "opt", "OPTForCausalLM", "OPTForSequenceClassification", ""},
}};

}  // namespace

std::span<const ModelFamilyInfo> ModelFamilies() {
  return kFamilies;
}

const ModelFamilyInfo* FindModelFamily(std::string_view model_type) {
  const auto found = std::ranges::find(kFamilies, model_type, &ModelFamilyInfo::model_type);
  return found == kFamilies.end() ? nullptr : &*found;
}

const ModelFamilyInfo& FamilyOf(const ModelConfig& config) {
  const ModelFamilyInfo* info = FindModelFamily(config.family);
  WEFT_CHECK(info) << "there is no model family \"" << config.family << "\"";
  return *info;
}

std::string ModelFamilyNames() {
  std::string names;
  for (const ModelFamilyInfo& info : kFamilies) {
    if (!names.empty()) names += ", ";
    names += info.model_type;
  }
  return names;
}

void CheckModelSizes(const ModelConfig& config, const std::string& file) {
  const auto fail = [&](const std::string& reason) {
    throw Error(ErrorCode::kCorrupt, file + ": " + reason);
  };
  if (config.heads % config.kv_heads != 0) {
    fail(std::to_string(config.heads) + " attention heads are no multiple of " +
         std::to_string(config.kv_heads) + " key-value heads");
  }
  if (config.rope.rotary_dimensions % 2 != 0 ||
      config.rope.rotary_dimensions > config.head_dimension) {
    fail(std::to_string(config.rope.rotary_dimensions) +
         " rotary dimensions of a head must be even and at most " +
         std::to_string(config.head_dimension));
  }
  if (!(config.norm_epsilon >= 0)) fail("the epsilon of the norms must not be negative");
  for (const int64_t id : config.eos) {
    if (id >= config.vocabulary) {
      fail("end token " + std::to_string(id) + " is not in the vocabulary of " +
           std::to_string(config.vocabulary));
    }
  }
}

}  // namespace weft
