// A text encoder of BERT's kind: a text in, one vector out, such that texts of like meaning have
// vectors of like direction (Reimers and Gurevych 2019). Forward only, in f32. Rows are tokens of
// several texts one after another, without padding, and every row sees all of its text: what a text
// gives depends on itself alone, bit for bit, whatever else is in the batch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "language/encoder_config.h"
#include "language/projection.h"
#include "language/tokenizer/tokenizer.h"
#include "tensor/tensor.h"

namespace weft {

class TextEncoder {
 public:
  // A Hugging Face folder by its path, or a model by its name (model_name.h). Throws Error as
  // ReadEncoderConfig, JoinLayout and Tokenizer::Load do.
  static TextEncoder Load(const std::string& name);

  const EncoderConfig& config() const { return config_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }

  // With what the tokenizer puts around a text; of a long one the beginning, max_tokens in all.
  std::vector<int32_t> Tokens(std::string_view text) const;

  // [N, hidden]. At most tokens_together tokens go through the model at a time (a longer text
  // alone); the result does not depend on it. Thread-safe.
  Tensor Embed(const Context& context, std::span<const std::string> texts,
               int64_t tokens_together = 4096) const;

 private:
  struct Norm {
    Tensor weight, bias;  // [hidden]
  };
  struct Layer {
    Projection qkv, attention_out, up, down;
    Norm attention_norm, output_norm;
  };
  class Reader;

  TextEncoder(const EncoderConfig& config, Tokenizer tokenizer, const Reader& weights);

  Tensor Normalise(const Context& context, const Norm& norm, const Tensor& x) const;
  // The last layer's rows [T, hidden] of texts of these lengths.
  Tensor Forward(const Context& context, std::span<const int32_t> ids,
                 std::span<const int64_t> lengths) const;
  void Pool(std::span<const float> rows, std::span<float> embedding) const;

  EncoderConfig config_;
  Tokenizer tokenizer_;
  Tensor words_, positions_, type_;  // [vocabulary, hidden], [positions, hidden], [1, hidden]
  Norm embedding_norm_;
  std::vector<Layer> layers_;
};

// The cosine of the angle between two vectors; 0 where one of them is zero.
double Cosine(std::span<const float> a, std::span<const float> b);

}  // namespace weft
