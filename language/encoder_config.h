// What a text encoder of BERT's kind is (Devlin et al. 2019), and how the rows of a text become its
// embedding: config.json of a Hugging Face folder and, where they lie beside it, the files of
// sentence-transformers: modules.json, 1_Pooling/config.json, sentence_bert_config.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "language/model_config.h"
#include "language/weight_layout.h"

namespace weft {

inline constexpr const char* kEncoderType = "bert";  // model_type of config.json

enum class Pooling : uint8_t { kMean, kFirst, kMax };  // of a text's rows

struct EncoderConfig {
  int64_t vocabulary = 0;
  int64_t hidden = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t intermediate = 0;
  int64_t positions = 0;
  int64_t token_types = 0;
  FeedForwardActivation activation = FeedForwardActivation::kGelu;
  float norm_epsilon = 1e-12f;

  Pooling pooling = Pooling::kMean;
  bool normalise = false;  // embeddings to length 1
  int64_t max_tokens = 0;  // of a text, those that the tokenizer adds included
};

// Throws Error(kInvalidArgument) naming file and key for another kind of model and for what weft
// does not have, Error(kCorrupt) for wrong types and sizes, Error(kConfig) when `folder` is none.
EncoderConfig ReadEncoderConfig(const std::string& folder);

// All weights by the names of a BertForMaskedLM ("bert.encoder.layer.0.attention.self.query.bias"),
// in torch's shapes.
std::vector<WeightSpec> EncoderWeights(const EncoderConfig& config);
int64_t EncoderBytes(const EncoderConfig& config);  // of all weights, in f32

}  // namespace weft
