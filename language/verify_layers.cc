#include "language/verify_layers.h"

#include <algorithm>
#include <vector>

#include "language/projection.h"
#include "language/recorded_cases.h"
#include "language/sampling.h"
#include "tensor/kernels_transformer.h"

namespace weft {
namespace {

using Floats = std::vector<float>;

constexpr double kRelative = 1e-5, kAbsolute = 1e-6;  // the page's, of layers
constexpr const char* kNoSuchLayer = "not a layer by itself of a language model here";

float* Data(Tensor& x) {
  return x.data<float>().data();
}
const float* Data(const Tensor& x) {
  return x.data<float>().data();
}

// A matrix in torch's layout [out, in] with a gradient; bias may be empty.
Projection MakeProjection(const Context& context, int64_t in, const Floats& rows,
                          const Floats& bias) {
  const int64_t out = std::ssize(rows) / in;
  Projection projection(in, out, !bias.empty(), Precision::kFloat32);
  projection.SetRows(0, rows);
  if (!bias.empty()) std::ranges::copy(bias, Data(projection.bias()));
  projection.EnableGradient();
  projection.Refresh(context);
  return projection;
}

// d W in torch's layout.
Floats WeightGradient(Projection& projection) {
  const Tensor d = projection.d_weight().ToLayout(Layout::kRowMajor);  // [in, out]
  Floats rows(static_cast<size_t>(d.elements()));
  for (int64_t out = 0; out < projection.out(); ++out) {
    for (int64_t in = 0; in < projection.in(); ++in) {
      rows[static_cast<size_t>(out * projection.in() + in)] = Data(d)[in * projection.out() + out];
    }
  }
  return rows;
}

void CheckLinear(const Context& context, RecordedCases& cases, const std::string& name) {
  const Tensor x = cases.At(name + ".x").Clone(), d_y = cases.At(name + ".cotangent").Clone();
  const bool bias = cases.Has(name + ".b");
  Projection layer = MakeProjection(context, x.dim(1), cases.Floats(name + ".w"),
                                    bias ? cases.Floats(name + ".b") : Floats());
  Tensor y = Tensor::Empty(d_y.shape()), d_x = Tensor::Empty(x.shape());
  layer.Forward(context, x, nullptr, y);
  layer.Backward(context, x, d_y, false, Data(d_x));
  cases.Check(name + ".output", y.data<float>(), kRelative, kAbsolute);
  cases.Check(name + ".grad.x", d_x.data<float>(), kRelative, kAbsolute);
  cases.Check(name + ".grad.w", WeightGradient(layer), kRelative, kAbsolute);
  if (bias) cases.Check(name + ".grad.b", layer.d_bias().data<float>(), kRelative, kAbsolute);
}

void CheckLayerNorm(const Context& context, RecordedCases& cases, const std::string& name,
                    bool large_offset) {
  const Tensor x = cases.At(name + ".x"), w = cases.At(name + ".w"), b = cases.At(name + ".b");
  const int64_t rows = x.dim(0), columns = x.dim(1);
  const auto epsilon = static_cast<float>(cases.Parameter(name, "eps", 1e-5));
  Tensor y = Tensor::Empty(x.shape()), d_x = y.Clone(), mean = Tensor::Empty({rows});
  Tensor rstd = mean.Clone(), d_w = Tensor::Empty({columns}), d_b = d_w.Clone();
  kernels::LayerNorm(context, rows, columns, Data(x), Data(w), Data(b), epsilon, {Data(y), false},
                     Data(mean), Data(rstd));
  // The float32 input alone is good for 1e-2 where the mean is 1e5 times the deviation.
  cases.Check(name + ".output", y.data<float>(), large_offset ? 0 : kRelative,
              large_offset ? 5e-2 : kAbsolute);
  if (large_offset) return;
  kernels::LayerNormGradient(context, rows, columns, Data(x), Data(w), Data(mean), Data(rstd),
                             Data(cases.At(name + ".cotangent")), false, Data(d_x), Data(d_w),
                             Data(d_b));
  cases.Check(name + ".grad.x", d_x.data<float>(), kRelative, kAbsolute);
  cases.Check(name + ".grad.w", d_w.data<float>(), kRelative, kAbsolute);
  cases.Check(name + ".grad.b", d_b.data<float>(), kRelative, kAbsolute);
}

void CheckRmsNorm(const Context& context, RecordedCases& cases, const std::string& name,
                  float offset) {
  const Tensor x = cases.At(name + ".x"), w = cases.At(name + ".w");
  const int64_t rows = x.dim(0), columns = x.dim(1);
  const auto epsilon = static_cast<float>(cases.Parameter(name, "eps", 1e-6));
  Tensor y = Tensor::Empty(x.shape()), d_x = y.Clone(), rstd = Tensor::Empty({rows});
  Tensor d_w = Tensor::Zeros({columns});
  kernels::RmsNorm(context, rows, columns, columns, Data(x), Data(w), offset, epsilon,
                   {Data(y), false}, Data(rstd));
  kernels::RmsNormGradient(context, rows, columns, Data(x), Data(w), offset, Data(rstd),
                           Data(cases.At(name + ".cotangent")), false, Data(d_x), Data(d_w));
  cases.Check(name + ".output", y.data<float>(), kRelative, kAbsolute);
  cases.Check(name + ".grad.x", d_x.data<float>(), kRelative, kAbsolute);
  cases.Check(name + ".grad.w", d_w.data<float>(), kRelative, kAbsolute);
}

VerifyReport VerifyDense(const Context& context, const std::string& folder) {
  RecordedCases cases(folder, "layers_dense");
  CheckLinear(context, cases, "linear");
  CheckLinear(context, cases, "linear_large");
  CheckLayerNorm(context, cases, "layernorm", false);
  CheckLayerNorm(context, cases, "layernorm_large_offset", true);
  CheckRmsNorm(context, cases, "rmsnorm", 0);
  CheckRmsNorm(context, cases, "rmsnorm_one_plus", 1);
  CheckRmsNorm(context, cases, "rmsnorm_tiny", 0);
  return cases.Report(kNoSuchLayer);
}

void CheckActivation(const Context& context, RecordedCases& cases, const std::string& name,
                     Unary activation) {
  const Tensor x = cases.At(name + ".x");
  const int64_t count = x.elements();
  Tensor y = Tensor::Empty({count}), slope = Tensor::Empty({count});
  const Floats ones(static_cast<size_t>(count), 1.0f);
  kernels::Gate(context, 1, count, activation, false, Data(x), {Data(y), false});
  kernels::GateGradient(context, 1, count, activation, false, Data(x), ones.data(),
                        {Data(slope), false});
  cases.Check(name + ".y", y.data<float>(), kRelative, kAbsolute);
  cases.Check(name + ".dy_dx", slope.data<float>(), kRelative, kAbsolute);
}

// down(act(gate x) * up x), gate and up side by side as in a layer of the engine.
void CheckGated(const Context& context, RecordedCases& cases, const std::string& name,
                Unary activation) {
  const Tensor x = cases.At(name + ".x").Clone(), d_y = cases.At(name + ".cotangent").Clone();
  const int64_t rows = x.dim(0), inner = cases.At(name + ".wg").dim(0);
  Floats both = cases.Floats(name + ".wg");
  const Floats up_rows = cases.Floats(name + ".wu");
  both.insert(both.end(), up_rows.begin(), up_rows.end());
  Projection up = MakeProjection(context, x.dim(1), both, {});
  Projection down = MakeProjection(context, inner, cases.Floats(name + ".wd"), {});
  Tensor wide = Tensor::Empty({rows, 2 * inner}), active = Tensor::Empty({rows, inner});
  Tensor y = Tensor::Empty(d_y.shape());
  up.Forward(context, x, nullptr, wide);
  kernels::Gate(context, rows, inner, activation, true, Data(wide), {Data(active), false});
  down.Forward(context, active, nullptr, y);
  Tensor d_active = active.Clone(), d_wide = wide.Clone(), d_x = Tensor::Empty(x.shape());
  down.Backward(context, active, d_y, false, Data(d_active));
  kernels::GateGradient(context, rows, inner, activation, true, Data(wide), Data(d_active),
                        {Data(d_wide), false});
  up.Backward(context, x, d_wide, false, Data(d_x));
  cases.Check(name + ".output", y.data<float>(), kRelative, kAbsolute);
  cases.Check(name + ".grad.x", d_x.data<float>(), kRelative, kAbsolute);
  const Floats d_up = WeightGradient(up);
  const std::span<const float> d_rows(d_up);
  cases.Check(name + ".grad.wg", d_rows.first(d_rows.size() / 2), kRelative, kAbsolute);
  cases.Check(name + ".grad.wu", d_rows.last(d_rows.size() / 2), kRelative, kAbsolute);
  cases.Check(name + ".grad.wd", WeightGradient(down), kRelative, kAbsolute);
}

// The loss as the output layer forms it, by what each token's log-probability weighs.
void CheckCrossEntropy(const Context& context, RecordedCases& cases, const std::string& name,
                       bool mean) {
  Tensor logits = cases.At(name + ".logits").Clone();
  const int64_t rows = logits.dim(0), columns = logits.dim(1);
  std::vector<int32_t> targets;
  for (const double label : cases.Doubles(name + ".labels")) {
    targets.push_back(label < 0 ? -1 : static_cast<int32_t>(label));
  }
  const auto wanted = std::ranges::count_if(targets, [](int32_t id) { return id >= 0; });
  Tensor log_sum = Tensor::Empty({rows}), entropy = Tensor::Zeros({rows});
  kernels::LogitStatistics(context, rows, columns, 1, 0, Data(logits), Data(log_sum), nullptr);
  const double weight = mean ? 1 / static_cast<double>(std::max<int64_t>(wanted, 1)) : 1;
  double loss = 0;
  Floats d_log_p(targets.size());
  for (int64_t r = 0; r < rows; ++r) {
    if (targets[r] < 0) continue;
    loss -= weight * static_cast<double>(Data(logits)[r * columns + targets[r]] - Data(log_sum)[r]);
    d_log_p[r] = static_cast<float>(-weight);
  }
  Tensor d = Tensor::Empty(logits.shape());
  kernels::LogitGradient(context, rows, columns, 1, 0, Data(logits), Data(log_sum), Data(entropy),
                         targets.data(), d_log_p.data(), nullptr, {Data(d), false});
  if (wanted == 0) {  // 0 / 0 elsewhere; here nothing was asked and nothing is learnt
    const std::vector<double> all(d.data<float>().begin(), d.data<float>().end());
    cases.Check(name + ".torch_loss", std::vector<double>{loss}, std::vector<double>{0}, 0, 0);
    cases.Check(name + ".torch_loss", all, std::vector<double>(all.size()), 0, 0);
    return;
  }
  cases.Check(name + ".loss", std::vector<double>{loss}, kRelative, kAbsolute);
  cases.Check(name + ".grad.logits", d.data<float>(), kRelative, kAbsolute);
}

void CheckLogSoftmax(const Context& context, RecordedCases& cases, const std::string& name) {
  Tensor x = cases.At(name + ".x").Clone();
  const int64_t rows = x.dim(0), columns = x.dim(1);
  Tensor log_sum = Tensor::Empty({rows});
  kernels::LogitStatistics(context, rows, columns, 1, 0, Data(x), Data(log_sum), nullptr);
  cases.Check(name + ".logsumexp", log_sum.data<float>(), kRelative, kAbsolute);
  Tensor y = Tensor::Empty(x.shape());
  kernels::LogSoftmax(context, rows, columns, Data(x), Data(y));
  cases.Check(name + ".log_softmax", y.data<float>(), kRelative, kAbsolute);
}

VerifyReport VerifyActivations(const Context& context, const std::string& folder) {
  RecordedCases cases(folder, "layers_activations");
  CheckActivation(context, cases, "gelu_tanh", Unary::kGelu);
  CheckActivation(context, cases, "gelu_erf", Unary::kGeluErf);
  CheckActivation(context, cases, "silu", Unary::kSilu);
  CheckActivation(context, cases, "relu", Unary::kRelu);
  CheckGated(context, cases, "swiglu_mlp", Unary::kSilu);
  CheckGated(context, cases, "geglu_mlp", Unary::kGelu);
  CheckLogSoftmax(context, cases, "softmax_extreme");
  CheckCrossEntropy(context, cases, "cross_entropy.mean", true);
  CheckCrossEntropy(context, cases, "cross_entropy.sum", false);
  CheckCrossEntropy(context, cases, "cross_entropy.all_ignored", true);
  return cases.Report(kNoSuchLayer);
}

// The distribution that the next token is drawn from. Where libraries break ties in ways of their
// own only the number of tokens that are left is defined.
VerifyReport VerifySampling(const std::string& folder) {
  RecordedCases cases(folder, "sampling");
  for (const std::string name :
       {"temperature", "cold", "top_k", "top_p", "top_p_small", "min_p", "repetition", "all"}) {
    const SamplingOptions options{
        .temperature = cases.Parameter(name, "temperature", 1),
        .top_k = static_cast<int64_t>(cases.Parameter(name, "top_k", 0)),
        .top_p = cases.Parameter(name, "top_p", 1),
        .min_p = cases.Parameter(name, "min_p", 0),
        .repetition_penalty = cases.Parameter(name, "repetition_penalty", 1)};
    const Tensor logits = cases.At(name + ".logits").Clone();
    const int64_t vocabulary = logits.dim(1);
    const std::vector<double> previous = cases.Doubles(name + ".previous_ids");
    const std::vector<double> wanted = cases.Doubles(name + ".probabilities");
    const std::vector<double> defined = cases.Doubles(name + ".agrees_with_transformers");
    const size_t before = previous.size() / static_cast<size_t>(logits.dim(0));
    for (int64_t row = 0; row < logits.dim(0); ++row) {
      Tensor line = logits.Row(row).Clone();
      const auto* const first = previous.data() + static_cast<size_t>(row) * before;
      const std::vector<int32_t> ids(first, first + before);
      ApplyPenalties(options, ids, {}, line.data<float>());
      const Candidates kept = Truncate({}, options, line.data<float>());
      std::vector<double> got(static_cast<size_t>(vocabulary));
      for (size_t i = 0; i < kept.ids.size(); ++i) got[kept.ids[i]] = kept.probabilities[i];
      const std::span<const double> want = std::span(wanted).subspan(
          static_cast<size_t>(row * vocabulary), static_cast<size_t>(vocabulary));
      const auto count = [](std::span<const double> p) {
        return static_cast<double>(std::ranges::count_if(p, [](double v) { return v > 0; }));
      };
      if (defined[static_cast<size_t>(row)] == 0) {
        cases.Check(name + ".probabilities", std::vector<double>{count(got)},
                    std::vector<double>{count(want)}, 0, 0);
      } else {
        cases.Check(name + ".probabilities", got, want, 0, 1e-6);
      }
    }
  }
  return cases.Report("draws are of weft's own random numbers");
}

}  // namespace

VerifyReport VerifyLayers(const Context& context, const std::string& folder) {
  VerifyReport report = VerifyDense(context, folder);
  Merge(VerifyAttentionLayers(context, folder), report);
  Merge(VerifyActivations(context, folder), report);
  Merge(VerifySampling(folder), report);
  return report;
}

}  // namespace weft
