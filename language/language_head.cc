#include "language/language_head.h"

#include <algorithm>
#include <cstring>

#include "tensor/kernels_transformer.h"
#include "tensor/ops_check.h"

namespace weft {

using ops::Floats;

Tensor Logits(const Context& context, const Transformer& model, const Tensor& final_rows) {
  Tensor logits = Tensor::Empty({final_rows.dim(0), model.head().out()});
  model.head().Forward(context, final_rows, nullptr, logits);
  const float cap = model.config().final_softcap;
  if (cap > 0) {
    kernels::Affine(context, logits.elements(), 1 / cap, 0, Floats(logits), Floats(logits));
    kernels::UnaryForward(context, Unary::kTanh, logits.elements(), Floats(logits), Floats(logits));
    kernels::Affine(context, logits.elements(), cap, 0, Floats(logits), Floats(logits));
  }
  return logits;
}

TokenScores ScoreTokens(const Context& context, Transformer& model, const Tensor& final_rows,
                        std::span<const int32_t> targets, const HeadOptions& options,
                        const HeadLoss& loss, Tensor* d_final) {
  const int64_t tokens = std::ssize(targets), hidden = final_rows.dim(1);
  Projection& head = model.head();
  const int64_t vocabulary = head.out();
  TokenScores scores;
  scores.log_probability = Tensor::Zeros({tokens});
  if (options.entropy) scores.entropy = Tensor::Zeros({tokens});
  if (loss) *d_final = Tensor::Zeros({tokens, hidden});

  std::vector<int32_t> wanted;
  for (int64_t t = 0; t < tokens; ++t) {
    if (targets[t] >= 0) wanted.push_back(static_cast<int32_t>(t));
  }
  const int64_t element = final_rows.dtype() == DType::kBFloat16 ? 2 : 4;
  const float scale = 1 / options.temperature, cap = model.config().final_softcap;
  for (int64_t begin = 0; begin < std::ssize(wanted); begin += kHeadRows) {
    const int64_t rows = std::min(kHeadRows, std::ssize(wanted) - begin);
    const std::span block = std::span(wanted).subspan(begin, rows);
    Tensor x = Operand(model.precision(), rows, hidden);
    std::vector<int32_t> target(rows);
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(x.raw() + r * hidden * element, final_rows.raw() + block[r] * hidden * element,
                  hidden * element);
      target[r] = targets[block[r]];
    }
    Tensor logits = Tensor::Empty({rows, vocabulary}), log_sum = Tensor::Empty({rows});
    Tensor entropy = Tensor::Zeros({rows}), log_probability = Tensor::Empty({rows});
    head.Forward(context, x, nullptr, logits);
    kernels::LogitStatistics(context, rows, vocabulary, scale, cap, Floats(logits), Floats(log_sum),
                             options.entropy ? Floats(entropy) : nullptr);
    for (int64_t r = 0; r < rows; ++r) {
      const float log_p = Floats(logits)[r * vocabulary + target[r]] - Floats(log_sum)[r];
      Floats(log_probability)[r] = log_p;
      Floats(scores.log_probability)[block[r]] = log_p;
      if (options.entropy) Floats(scores.entropy)[block[r]] = Floats(entropy)[r];
    }
    if (!loss) continue;
    Tensor d_log_probability = Tensor::Zeros({rows}), d_entropy = Tensor::Zeros({rows});
    loss({.rows = block,
          .log_probability = log_probability.data<float>(),
          .entropy = entropy.data<float>(),
          .d_log_probability = d_log_probability.data<float>(),
          .d_entropy = d_entropy.data<float>()});
    Tensor d_logits = Operand(model.precision(), rows, vocabulary);
    kernels::LogitGradient(context, rows, vocabulary, scale, cap, Floats(logits), Floats(log_sum),
                           Floats(entropy), target.data(), Floats(d_log_probability),
                           options.entropy ? Floats(d_entropy) : nullptr,
                           {d_logits.raw(), d_logits.dtype() == DType::kBFloat16});
    Tensor d_x = Tensor::Empty({rows, hidden});
    head.Backward(context, x, d_logits, false, Floats(d_x));
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(Floats(*d_final) + block[r] * hidden, Floats(d_x) + r * hidden,
                  hidden * sizeof(float));
    }
  }
  return scores;
}

double MeanLoss(const Context& context, Transformer& model, const Tensor& final_rows,
                std::span<const int32_t> targets, Tensor* d_final) {
  const auto count =
      static_cast<double>(std::ranges::count_if(targets, [](int32_t id) { return id >= 0; }));
  double loss = 0;
  ScoreTokens(
      context, model, final_rows, targets, {},
      [&](const HeadBlock& block) {
        for (size_t i = 0; i < block.rows.size(); ++i) {
          loss -= static_cast<double>(block.log_probability[i]) / count;
          block.d_log_probability[i] = static_cast<float>(-1 / count);
        }
      },
      d_final);
  return loss;
}

}  // namespace weft
