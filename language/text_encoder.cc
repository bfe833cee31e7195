#include "language/text_encoder.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/check.h"
#include "language/model_name.h"
#include "language/safetensors_folder.h"
#include "language/transformer_pages.h"
#include "tensor/kernels.h"
#include "tensor/ops_check.h"

namespace weft {

using kernels::AttentionSpan;
using ops::Floats;

// The weights of a folder, each read when it is asked for.
class TextEncoder::Reader {
 public:
  Reader(const std::string& path, const EncoderConfig& config)
      : folder_(OpenSafetensorsFolder(path)) {
    std::vector<StoredTensor> layout;
    for (const WeightSpec& weight : EncoderWeights(config)) {
      layout.push_back({.name = weight.name, .shape = weight.shape, .parts = {{weight, {}}}});
    }
    // Heads of pretraining, and BERT's own way to pool, which embeddings of texts do not use.
    const auto beyond = [](const FoundTensor& tensor) -> std::string {
      for (const char* head : {"cls.", "pooler.", "bert.pooler."}) {
        if (tensor.name.starts_with(head)) return "";
      }
      return tensor.name;
    };
    for (FoundTensor& tensor : folder_.tensors) UseTodaysName(tensor.name);
    for (StoredWeight& weight :
         JoinLayout(layout, "bert.", std::move(folder_.tensors), beyond, folder_.file)) {
      std::string name = weight.name();
      weights_.emplace(std::move(name), std::move(weight));
    }
  }

  std::vector<float> Read(const std::string& name) const {
    return weights_.at("bert." + name).Read();
  }
  Tensor Table(const std::string& name) const {
    const auto& shape = weights_.at("bert." + name + ".weight").shape();
    Tensor table = Tensor::Empty({shape[0], shape[1]});
    std::ranges::copy(Read(name + ".weight"), table.data<float>().begin());
    return table;
  }
  Tensor Vector(const std::string& name) const {
    const std::vector<float> values = Read(name);
    return Tensor::From<float>({std::ssize(values)}, values);
  }
  Norm ReadNorm(const std::string& name) const {
    return {.weight = Vector(name + ".LayerNorm.weight"), .bias = Vector(name + ".LayerNorm.bias")};
  }
  // Matrices that read the same rows, side by side.
  Projection Linear(const std::vector<std::string>& names) const {
    int64_t in = 0, out = 0;
    for (const std::string& name : names) {
      const auto& shape = weights_.at("bert." + name + ".weight").shape();
      out += shape[0];
      in = shape[1];
    }
    Projection projection(in, out, true, Precision::kFloat32);
    int64_t first = 0;
    for (const std::string& name : names) {
      projection.SetRows(first, Read(name + ".weight"));
      const std::vector<float> bias = Read(name + ".bias");
      std::ranges::copy(bias, projection.bias().data<float>().begin() + first);
      first += std::ssize(bias);
    }
    return projection;
  }

 private:
  // BERT's first files, which came from TensorFlow, have its names of a norm's two vectors.
  static void UseTodaysName(std::string& name) {
    for (const auto& [old, today] :
         {std::pair<std::string_view, const char*>{"LayerNorm.gamma", "LayerNorm.weight"},
          {"LayerNorm.beta", "LayerNorm.bias"}}) {
      if (name.ends_with(old)) name.replace(name.size() - old.size(), old.size(), today);
    }
  }

  SafetensorsFolder folder_;
  std::map<std::string, StoredWeight> weights_;
};

TextEncoder TextEncoder::Load(const std::string& name) {
  const std::string path = ResolveModel(name);
  const EncoderConfig config = ReadEncoderConfig(path);
  Tokenizer tokenizer = Tokenizer::Load(path);
  if (tokenizer.size() > config.vocabulary) {
    throw Error(ErrorCode::kCorrupt,
                path + ": the tokenizer has " + std::to_string(tokenizer.size()) +
                    " tokens, the model's vocabulary " + std::to_string(config.vocabulary));
  }
  const int64_t around = std::ssize(tokenizer.prefix()) + std::ssize(tokenizer.suffix());
  if (around == 0 || config.max_tokens <= around) {
    throw Error(ErrorCode::kInvalidArgument,
                path + ": the tokenizer puts " + std::to_string(around) +
                    " tokens around a text, which must be some and fewer than the longest text's " +
                    std::to_string(config.max_tokens));
  }
  return {config, std::move(tokenizer), Reader(path, config)};
}

TextEncoder::TextEncoder(const EncoderConfig& config, Tokenizer tokenizer, const Reader& weights)
    : config_(config), tokenizer_(std::move(tokenizer)) {
  words_ = weights.Table("embeddings.word_embeddings");
  positions_ = weights.Table("embeddings.position_embeddings");
  type_ = weights.Table("embeddings.token_type_embeddings").Slice(0, 1);
  embedding_norm_ = weights.ReadNorm("embeddings");
  for (int64_t i = 0; i < config.layers; ++i) {
    const std::string layer = "encoder.layer." + std::to_string(i) + ".";
    const std::string self = layer + "attention.self.";
    layers_.push_back({.qkv = weights.Linear({self + "query", self + "key", self + "value"}),
                       .attention_out = weights.Linear({layer + "attention.output.dense"}),
                       .up = weights.Linear({layer + "intermediate.dense"}),
                       .down = weights.Linear({layer + "output.dense"}),
                       .attention_norm = weights.ReadNorm(layer + "attention.output"),
                       .output_norm = weights.ReadNorm(layer + "output")});
  }
}

std::vector<int32_t> TextEncoder::Tokens(std::string_view text) const {
  std::vector<int32_t> ids = tokenizer_.Encode(text, {.add_special = true});
  if (const int64_t beyond = std::ssize(ids) - config_.max_tokens; beyond > 0) {
    const auto end = ids.end() - std::ssize(tokenizer_.suffix());
    ids.erase(end - beyond, end);
  }
  return ids;
}

Tensor TextEncoder::Normalise(const Context& context, const Norm& norm, const Tensor& x) const {
  const int64_t rows = x.dim(0);
  Tensor y = Tensor::Empty(x.shape()), statistics = Tensor::Empty({2, rows});
  kernels::LayerNorm(context, rows, config_.hidden, Floats(x), Floats(norm.weight),
                     Floats(norm.bias), config_.norm_epsilon, {Floats(y), false},
                     Floats(statistics), Floats(statistics) + rows);
  return y;
}

Tensor TextEncoder::Forward(const Context& context, std::span<const int32_t> ids,
                            std::span<const int64_t> lengths) const {
  const int64_t tokens = std::ssize(ids), hidden = config_.hidden;
  std::vector<AttentionSpan> spans;
  Tensor x = Tensor::Empty({tokens, hidden});
  int64_t row = 0;
  for (const int64_t length : lengths) {
    spans.push_back({.first_row = row, .rows = length, .past = 0});
    for (int64_t position = 0; position < length; ++position, ++row) {
      const float* const word = Floats(words_) + ids[row] * hidden;
      const float* const place = Floats(positions_) + position * hidden;
      float* const sum = Floats(x) + row * hidden;
      for (int64_t i = 0; i < hidden; ++i) sum[i] = word[i] + place[i] + Floats(type_)[i];
    }
  }
  x = Normalise(context, embedding_norm_, x);

  const int64_t dimension = hidden / config_.heads;
  const kernels::AttentionShape shape{
      .heads = config_.heads,
      .kv_heads = config_.heads,
      .head_dimension = dimension,
      .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(dimension))),
      .causal = false};
  const BatchPages pages(spans, shape);
  Tensor qkv = Tensor::Empty({tokens, 3 * hidden}), attended = Tensor::Empty({tokens, hidden});
  Tensor sum = Tensor::Empty({tokens, hidden}), up = Tensor::Empty({tokens, config_.intermediate});
  for (const Layer& layer : layers_) {
    layer.qkv.Forward(context, x, nullptr, qkv);
    const float* const q = Floats(qkv);
    pages.Store(context, shape, 0, 3 * hidden, q + hidden, q + 2 * hidden);
    kernels::Attention(context, shape, pages.spans, 0, 3 * hidden, q, To(attended), nullptr);
    layer.attention_out.Forward(context, attended, Floats(x), sum);
    const Tensor middle = Normalise(context, layer.attention_norm, sum);
    layer.up.Forward(context, middle, nullptr, up);
    kernels::UnaryForward(context, ActivationOf(config_.activation), up.elements(), Floats(up),
                          Floats(up));
    layer.down.Forward(context, up, Floats(middle), sum);
    x = Normalise(context, layer.output_norm, sum);
  }
  return x;
}

void TextEncoder::Pool(std::span<const float> rows, std::span<float> embedding) const {
  const size_t hidden = embedding.size(), count = rows.size() / hidden;
  std::vector<double> pooled(rows.begin(), rows.begin() + static_cast<int64_t>(hidden));
  if (config_.pooling != Pooling::kFirst) {
    const bool mean = config_.pooling == Pooling::kMean;
    for (size_t i = hidden; i < rows.size(); ++i) {
      double& value = pooled[i % hidden];
      value = mean ? value + rows[i] : std::max<double>(value, rows[i]);
    }
    for (double& value : pooled) value /= mean ? static_cast<double>(count) : 1;
  }
  double length = 1;
  if (config_.normalise) {
    double square = 0;
    for (const double value : pooled) square += value * value;
    length = std::max(std::sqrt(square), 1e-12);  // torch's normalize
  }
  for (size_t i = 0; i < hidden; ++i) embedding[i] = static_cast<float>(pooled[i] / length);
}

Tensor TextEncoder::Embed(const Context& context, std::span<const std::string> texts,
                          int64_t tokens_together) const {
  const int64_t hidden = config_.hidden;
  Tensor embeddings = Tensor::Empty({std::ssize(texts), hidden});
  int64_t done = 0;
  std::vector<int32_t> ids;
  std::vector<int64_t> lengths;
  const auto finish = [&] {
    const Tensor rows = Forward(context, ids, lengths);
    int64_t row = 0;
    for (const int64_t length : lengths) {
      Pool(rows.data<float>().subspan(row * hidden, length * hidden),
           embeddings.data<float>().subspan(done++ * hidden, hidden));
      row += length;
    }
    ids.clear();
    lengths.clear();
  };
  for (const std::string& text : texts) {
    const std::vector<int32_t> more = Tokens(text);
    if (!lengths.empty() && std::ssize(ids) + std::ssize(more) > tokens_together) finish();
    ids.insert(ids.end(), more.begin(), more.end());
    lengths.push_back(std::ssize(more));
  }
  if (!lengths.empty()) finish();
  return embeddings;
}

double Cosine(std::span<const float> a, std::span<const float> b) {
  WEFT_CHECK(a.size() == b.size()) << "vectors of " << a.size() << " and " << b.size();
  double dot = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    dot += static_cast<double>(a[i]) * b[i];
    aa += static_cast<double>(a[i]) * a[i];
    bb += static_cast<double>(b[i]) * b[i];
  }
  return aa > 0 && bb > 0 ? dot / std::sqrt(aa * bb) : 0;
}

}  // namespace weft
