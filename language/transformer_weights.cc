// The weights of a transformer: under their canonical names for files, as trained tensors for
// optimisers.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "language/transformer.h"

namespace weft {
namespace {

using WeightSlot = Transformer::WeightSlot;

WeightSlot VectorSlot(std::string name, Tensor vector) {
  const int64_t size = vector.dim(0);
  return {.name = std::move(name),
          .rows = size,
          .columns = 1,
          .set =
              [vector](int64_t begin, std::span<const float> values) mutable {
                std::copy(values.begin(), values.end(), vector.data<float>().begin() + begin);
              },
          .get =
              [vector](int64_t begin, std::span<float> values) {
                std::copy_n(vector.data<float>().begin() + begin, values.size(), values.begin());
              }};
}

WeightSlot TableSlot(std::string name, Tensor table) {
  const int64_t columns = table.dim(1);
  return {.name = std::move(name),
          .rows = table.dim(0),
          .columns = columns,
          .set =
              [table, columns](int64_t begin, std::span<const float> values) mutable {
                std::copy(values.begin(), values.end(),
                          table.data<float>().begin() + begin * columns);
              },
          .get =
              [table, columns](int64_t begin, std::span<float> values) {
                std::copy_n(table.data<float>().begin() + begin * columns, values.size(),
                            values.begin());
              }};
}

// Rows [first, first + rows) of a projection.
WeightSlot PartSlot(std::string name, Projection& projection, int64_t first, int64_t rows) {
  Projection* const whole = &projection;
  return {.name = std::move(name),
          .rows = rows,
          .columns = projection.in(),
          .set = [whole, first](
                     int64_t begin,
                     std::span<const float> values) { whole->SetRows(first + begin, values); },
          .get = [whole, first](int64_t begin,
                                std::span<float> values) { whole->GetRows(first + begin, values); },
          .projection = whole,
          .first = first};
}

}  // namespace

std::vector<WeightSlot> Transformer::Weights() {
  std::vector<WeightSlot> weights;
  const auto norm = [&](const std::string& name, const Norm& n) {
    if (!n.used()) return;
    weights.push_back(VectorSlot(name + ".weight", n.weight));
    if (n.bias.defined()) weights.push_back(VectorSlot(name + ".bias", n.bias));
  };
  const auto part = [&](const std::string& name, Projection& projection, int64_t first,
                        int64_t rows) {
    weights.push_back(PartSlot(name + ".weight", projection, first, rows));
    if (projection.has_bias()) {
      weights.push_back(VectorSlot(name + ".bias", projection.bias().Slice(first, first + rows)));
    }
  };
  if (embedding_.defined()) {
    weights.push_back(TableSlot("model.embed_tokens.weight", embedding_));
  } else {
    part("model.embed_tokens", head_, 0, config_.vocabulary);
  }
  if (positions_.defined()) {
    weights.push_back(TableSlot("model.embed_positions.weight", positions_));
  }
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    const std::string prefix = "model.layers." + std::to_string(i) + ".";
    norm(prefix + "input_layernorm", layer.attention_norm);
    part(prefix + "self_attn.q_proj", layer.qkv, 0, query_width());
    part(prefix + "self_attn.k_proj", layer.qkv, query_width(), key_width());
    part(prefix + "self_attn.v_proj", layer.qkv, query_width() + key_width(), key_width());
    norm(prefix + "self_attn.q_norm", layer.q_norm);
    norm(prefix + "self_attn.k_norm", layer.k_norm);
    part(prefix + "self_attn.o_proj", layer.attention_out, 0, config_.hidden);
    norm(prefix + "post_attention_norm", layer.attention_post);
    norm(prefix + "post_attention_layernorm", layer.feed_forward_norm);
    if (config_.gated) part(prefix + "mlp.gate_proj", layer.up, 0, config_.intermediate);
    part(prefix + "mlp.up_proj", layer.up, config_.gated ? config_.intermediate : 0,
         config_.intermediate);
    part(prefix + "mlp.down_proj", layer.down, 0, config_.hidden);
    norm(prefix + "post_feedforward_norm", layer.feed_forward_post);
  }
  norm("model.norm", final_norm_);
  if (!config_.tied) {
    part(config_.labels > 0 ? "score" : "lm_head", head_, 0, head_.out());
  }
  return weights;
}

template <class F>
void Transformer::ForProjections(F&& function) {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const std::string prefix = "model.layers." + std::to_string(i) + ".";
    function(prefix + "self_attn.qkv_proj", layers_[i].qkv);
    function(prefix + "self_attn.o_proj", layers_[i].attention_out);
    function(prefix + "mlp.up_proj", layers_[i].up);
    function(prefix + "mlp.down_proj", layers_[i].down);
  }
  function(config_.tied ? "model.embed_tokens" : "lm_head", head_);
}

template <class F>
void Transformer::ForNorms(F&& function) {
  const auto visit = [&](const std::string& name, Norm& norm) {
    if (norm.used()) function(name, norm);
  };
  for (size_t i = 0; i < layers_.size(); ++i) {
    const std::string prefix = "model.layers." + std::to_string(i) + ".";
    visit(prefix + "input_layernorm", layers_[i].attention_norm);
    visit(prefix + "self_attn.q_norm", layers_[i].q_norm);
    visit(prefix + "self_attn.k_norm", layers_[i].k_norm);
    visit(prefix + "post_attention_norm", layers_[i].attention_post);
    visit(prefix + "post_attention_layernorm", layers_[i].feed_forward_norm);
    visit(prefix + "post_feedforward_norm", layers_[i].feed_forward_post);
  }
  visit("model.norm", final_norm_);
}

template <class F>
void Transformer::ForTrained(F&& function) {
  if (embedding_.defined()) function("model.embed_tokens.weight", embedding_);
  if (positions_.defined()) function("model.embed_positions.weight", positions_);
  ForProjections([&](const std::string& name, Projection& projection) {
    function(name + ".weight", projection.weight());
    if (projection.has_bias()) function(name + ".bias", projection.bias());
  });
  ForNorms([&](const std::string& name, Norm& norm) {
    function(name + ".weight", norm.weight);
    if (norm.bias.defined()) function(name + ".bias", norm.bias);
  });
}

TensorMap Transformer::Snapshot() {
  TensorMap snapshot;
  const auto share = [&](const std::string& name, const Tensor& tensor) {
    if (tensor.defined()) snapshot.Set(name, tensor);
  };
  ForProjections([&](const std::string& name, Projection& projection) {
    share(name + ".weight", projection.inference_weight());
    if (projection.has_bias()) share(name + ".bias", projection.bias());
  });
  ForNorms([&](const std::string& name, Norm& norm) {
    share(name + ".weight", norm.weight);
    share(name + ".bias", norm.bias);
  });
  share("embedding", embedding_);
  share("positions", positions_);
  for (const AdapterSlot& slot : adapters_) {
    Projection::Adapter& adapter = *slot.adapter;
    const auto rank = static_cast<float>(adapter.a.out());
    snapshot.Set(slot.name + ".lora", Tensor::From<float>({2}, {rank, adapter.scale}));
    share(slot.name + ".lora_A.weight", adapter.a.inference_weight());
    share(slot.name + ".lora_B.weight", adapter.b.inference_weight());
  }
  return snapshot;
}

void Transformer::LetGo() {
  TensorMap nothing;
  for (const auto& [name, tensor] : Snapshot()) {
    nothing.Set(name, name.text().ends_with(".lora") ? tensor : Tensor::Empty({0}, tensor.dtype()));
  }
  Adopt(nothing);
}

void Transformer::AdoptBase(const TensorMap& snapshot) {
  ForProjections([&](const std::string& name, Projection& projection) {
    projection.inference_weight() = snapshot.At(name + ".weight");
    if (projection.has_bias()) projection.bias() = snapshot.At(name + ".bias");
  });
  ForNorms([&](const std::string& name, Norm& norm) {
    norm.weight = snapshot.At(name + ".weight");
    if (norm.bias.defined()) norm.bias = snapshot.At(name + ".bias");
  });
  if (embedding_.defined()) embedding_ = snapshot.At("embedding");
  if (positions_.defined()) positions_ = snapshot.At("positions");
}

void Transformer::Adopt(const TensorMap& snapshot) {
  AdoptBase(snapshot);
  for (const auto& [name, lora] : snapshot) {
    if (!name.text().ends_with(".lora")) continue;
    const std::string matrix(name.text().substr(0, name.text().size() - 5));
    Projection::Adapter& adapter = AdapterOf(matrix, lora);
    adapter.a.inference_weight() = snapshot.At(matrix + ".lora_A.weight");
    adapter.b.inference_weight() = snapshot.At(matrix + ".lora_B.weight");
  }
}

Projection::Adapter& Transformer::AdapterOf(const std::string& matrix, const Tensor& lora) {
  for (const AdapterSlot& slot : adapters_) {
    if (slot.name == matrix) return *slot.adapter;
  }
  const std::vector<WeightSlot> weights = Weights();
  const auto slot = std::ranges::find(weights, matrix + ".weight", &WeightSlot::name);
  WEFT_CHECK(slot != weights.end() && slot->projection != nullptr) << "adapter of " << matrix;
  Projection::Adapter& adapter = slot->projection->AddAdapter(
      slot->first, slot->rows, static_cast<int64_t>(lora.data<float>()[0]), lora.data<float>()[1]);
  adapters_.push_back({matrix, &adapter});
  return adapter;
}

void Transformer::Refresh(const Context& context) {
  ForProjections([&](const std::string&, Projection& projection) { projection.Refresh(context); });
}

void Transformer::EnableGradient(bool frozen) {
  ForProjections([&](const std::string&, Projection& p) { p.EnableGradient(frozen); });
  if (frozen) return;
  ForNorms([&](const std::string&, Norm& norm) {
    norm.d_weight = Tensor::Zeros(norm.weight.shape());
    if (norm.bias.defined()) norm.d_bias = Tensor::Zeros(norm.bias.shape());
  });
  if (embedding_.defined()) d_embedding_ = Tensor::Zeros(embedding_.shape());
  if (positions_.defined()) d_positions_ = Tensor::Zeros(positions_.shape());
}

void Transformer::AddAdapters(int64_t rank, float scale, std::span<const std::string> targets,
                              Rng& rng) {
  EnableGradient(true);
  for (const std::string& target : targets) {
    bool found = false;
    for (const WeightSlot& slot : Weights()) {
      if (slot.projection == nullptr || !slot.name.ends_with("." + target + ".weight")) continue;
      found = true;
      Projection::Adapter& adapter =
          slot.projection->AddAdapter(slot.first, slot.rows, rank, scale);
      const auto bound = static_cast<float>(1 / std::sqrt(static_cast<double>(slot.columns)));
      std::vector<float> a(rank * slot.columns);
      for (float& value : a) value = static_cast<float>(rng.Uniform(-bound, bound));
      adapter.a.SetRows(0, a);
      adapter.b.weight();
      adapter.a.EnableGradient();
      adapter.b.EnableGradient();
      adapters_.push_back({slot.name.substr(0, slot.name.size() - 7), &adapter});
    }
    if (!found) {
      throw Error(ErrorCode::kInvalidArgument,
                  "the model has no matrix " + target + " to put an adapter beside");
    }
  }
}

void Transformer::AttachAdapter(const Context& context, std::string_view name,
                                std::span<const float> a, std::span<const float> b, float scale) {
  const std::vector<WeightSlot> slots = Weights();
  const auto slot = std::ranges::find(slots, name, &WeightSlot::name);
  WEFT_CHECK(slot != slots.end() && slot->projection != nullptr) << "no matrix " << name;
  const int64_t rank = std::ssize(a) / slot->columns, even = (rank + 1) / 2 * 2;
  WEFT_CHECK(rank > 0 && std::ssize(a) == rank * slot->columns &&
             std::ssize(b) == slot->rows * rank)
      << "an adapter of rank " << rank << " beside " << name;
  // Products in bf16 go by pairs: an odd rank gets a column of zeros.
  std::vector<float> padded_a(a.begin(), a.end());
  padded_a.resize(static_cast<size_t>(even * slot->columns));
  std::vector<float> padded_b(static_cast<size_t>(slot->rows * even));
  for (int64_t row = 0; row < slot->rows; ++row) {
    std::copy_n(b.begin() + row * rank, rank, padded_b.begin() + row * even);
  }
  Projection::Adapter& adapter = slot->projection->AddAdapter(slot->first, slot->rows, even, scale);
  for (const auto& [part, values] : {std::pair{&adapter.a, &padded_a}, {&adapter.b, &padded_b}}) {
    part->SetRows(0, *values);
    part->Refresh(context);
    part->FreeMaster();
  }
}

std::vector<Transformer::AdapterSlot> Transformer::Adapters() {
  return adapters_;
}

void Transformer::MergeAdapters(const Context& context) {
  ForProjections([](const std::string&, Projection& p) { p.MergeAdapters(); });
  adapters_.clear();
  Refresh(context);
}

std::vector<NamedParameter> Transformer::Parameters() {
  std::vector<NamedParameter> parameters;
  const auto add = [&](const std::string& name, Tensor& tensor) {
    parameters.push_back({.name = TensorName(name), .tensor = &tensor});
  };
  for (const AdapterSlot& slot : adapters_) {
    add(slot.name + ".lora_A.weight", slot.adapter->a.weight());
    add(slot.name + ".lora_B.weight", slot.adapter->b.weight());
  }
  if (adapters_.empty()) ForTrained(add);
  return parameters;
}

void Transformer::UseParameters(const TensorMap& parameters) {
  ForTrained([&](const std::string& name, Tensor& tensor) {
    const Tensor& from = parameters.At(name);
    WEFT_CHECK(from.shape() == tensor.shape())
        << name << " " << from.shape() << ", the model's is " << tensor.shape();
    tensor = from.ToLayout(tensor.layout());
  });
}

std::vector<Tensor> Transformer::Gradients() {
  std::vector<Tensor> gradients;
  for (const AdapterSlot& slot : adapters_) {
    gradients.push_back(slot.adapter->a.d_weight());
    gradients.push_back(slot.adapter->b.d_weight());
  }
  if (!adapters_.empty()) return gradients;
  if (embedding_.defined()) gradients.push_back(d_embedding_);
  if (positions_.defined()) gradients.push_back(d_positions_);
  ForProjections([&](const std::string&, Projection& projection) {
    gradients.push_back(projection.d_weight());
    if (projection.has_bias()) gradients.push_back(projection.d_bias());
  });
  ForNorms([&](const std::string&, Norm& norm) {
    gradients.push_back(norm.d_weight);
    if (norm.bias.defined()) gradients.push_back(norm.d_bias);
  });
  return gradients;
}

void Transformer::ClearGradients() {
  for (const AdapterSlot& slot : adapters_) {
    slot.adapter->a.ClearGradient();
    slot.adapter->b.ClearGradient();
  }
  if (!adapters_.empty()) return;
  const auto clear = [](Tensor& gradient) {
    if (gradient.defined()) gradient.Fill(0);
  };
  clear(d_embedding_);
  clear(d_positions_);
  ForProjections([](const std::string&, Projection& projection) { projection.ClearGradient(); });
  ForNorms([&](const std::string&, Norm& norm) {
    clear(norm.d_weight);
    clear(norm.d_bias);
  });
}

}  // namespace weft
