#include "language/hf_config_keys.h"

#include "base/log.h"
#include "base/text.h"

namespace weft {
namespace {

// Bookkeeping, training and sampling keys without influence on what a model computes.
constexpr const char* kIrrelevantHfKeys[] = {"_attn_implementation",
                                             "_flash_attn_2_enabled",
                                             "_name_or_path",
                                             "_num_labels",
                                             "attention_dropout",
                                             "attention_probs_dropout_prob",
                                             "attn_pdrop",
                                             "auto_map",
                                             "bad_words_ids",
                                             "begin_suppress_tokens",
                                             "cache_implementation",
                                             "chunk_size_feed_forward",
                                             "classifier_dropout",
                                             "cross_attention_hidden_size",
                                             "decoder_start_token_id",
                                             "diversity_penalty",
                                             "do_sample",
                                             "dropout",
                                             "dtype",
                                             "early_stopping",
                                             "embd_pdrop",
                                             "encoder_no_repeat_ngram_size",
                                             "exponential_decay_length_penalty",
                                             "finetuning_task",
                                             "forced_bos_token_id",
                                             "forced_eos_token_id",
                                             "gradient_checkpointing",
                                             "hidden_dropout",
                                             "hidden_dropout_prob",
                                             "init_std",
                                             "initializer_range",
                                             "initializer_factor",
                                             "is_decoder",
                                             "is_encoder_decoder",
                                             "is_llama_config",
                                             "label2id",
                                             "layerdrop",
                                             "length_penalty",
                                             "max_length",
                                             "min_length",
                                             "n_ctx",
                                             "no_repeat_ngram_size",
                                             "num_beam_groups",
                                             "num_beams",
                                             "num_return_sequences",
                                             "output_attentions",
                                             "output_hidden_states",
                                             "output_scores",
                                             "prefix",
                                             "pretraining_tp",
                                             "problem_type",
                                             "pruned_heads",
                                             "remove_invalid_values",
                                             "reorder_and_upcast_attn",
                                             "repetition_penalty",
                                             "resid_pdrop",
                                             "return_dict",
                                             "return_dict_in_generate",
                                             "sep_token_id",
                                             "suppress_tokens",
                                             "summary_activation",
                                             "summary_first_dropout",
                                             "summary_proj_to_labels",
                                             "summary_type",
                                             "summary_use_proj",
                                             "task_specific_params",
                                             "temperature",
                                             "tf_legacy_loss",
                                             "tie_encoder_decoder",
                                             "tokenizer_class",
                                             "top_k",
                                             "top_p",
                                             "torch_dtype",
                                             "torchscript",
                                             "transformers.js_config",
                                             "transformers_version",
                                             "typical_p",
                                             "unsloth_fixed",
                                             "unsloth_version",
                                             "use_bfloat16",
                                             "use_cache",
                                             "unk_token_id",
                                             "resid_dropout"};

// Keys that change results when they are set, in any family.
constexpr const char* kUnsupportedHfKeys[] = {"add_cross_attention",
                                              "alibi",
                                              "attention_multiplier",
                                              "clip_qkv",
                                              "embedding_multiplier",
                                              "logit_scale",
                                              "logits_scaling",
                                              "num_experts",
                                              "num_local_experts",
                                              "quantization_config",
                                              "residual_multiplier",
                                              "rope_interleaved",
                                              "scale_attn_by_inverse_layer_idx",
                                              "use_bidirectional_attention",
                                              "use_qk_norm",
                                              "qk_layernorm",
                                              "use_mrope"};

}  // namespace

FeedForwardActivation ReadHfActivation(JsonKeys& keys, const char* key, const std::string& name) {
  if (name == "silu" || name == "swish") return FeedForwardActivation::kSilu;
  if (name == "relu") return FeedForwardActivation::kRelu;
  if (name == "gelu") return FeedForwardActivation::kGelu;
  if (name == "gelu_new" || name == "gelu_fast" || name == "gelu_pytorch_tanh") {
    return FeedForwardActivation::kGeluTanh;
  }
  keys.Refuse(key, "\"" + name +
                       "\" is not supported; weft has silu, relu, gelu, gelu_new and "
                       "gelu_pytorch_tanh");
}

void RequireHfFlag(JsonKeys& keys, const char* key, bool value) {
  if (keys.Bool(key).value_or(value) != value) {
    keys.Refuse(key, std::string(value ? "false" : "true") + " is not supported");
  }
}

void ReportOtherHfKeys(JsonKeys& keys) {
  for (const char* key : kUnsupportedHfKeys) {
    const JsonValue* value = keys.Find(key);
    int64_t number = -1;
    if (value && !(value->IsBool() && !value->AsBool()) &&
        !(value->GetInteger(number) && number == 0)) {
      keys.Refuse(key, "is not supported");
    }
  }
  for (const char* key : kIrrelevantHfKeys) keys.Find(key);
  if (const auto unread = keys.Unread(); !unread.empty()) {
    LogWarn(keys.file() + ": unknown keys are ignored: " + Join(unread, ", "));
  }
}

}  // namespace weft
