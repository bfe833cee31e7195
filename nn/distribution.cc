#include "nn/distribution.h"

#include <cmath>
#include <numbers>
#include <numeric>

#include "base/check.h"
#include "tensor/ops.h"

namespace weft {
namespace {

// Log-probability before normalisation of what a mask forbids: exp gives exactly 0, and 0 times it
// is 0, not NaN.
constexpr double kForbidden = -1e30;
constexpr float kMinLogStd = -20, kMaxLogStd = 2;  // Haarnoja et al. 2018
constexpr float kHalfLogTwoPi = 0.91893853320467274178f;
constexpr float kHalf = 0.5f;
constexpr float kTwoLogTwo = 2 * std::numbers::ln2_v<float>;
constexpr float kLargestAction = 1 - 0x1p-23f;  // whose atanh is about 8.3

bool Categorical(DistributionKind kind) {
  return kind == DistributionKind::kCategorical || kind == DistributionKind::kMultiCategorical;
}

int64_t Total(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
}

// A part without an allowed action has no distribution.
void CheckMask(const DistributionSpec& spec, const Tensor& mask) {
  const auto allowed = mask.data<uint8_t>();
  const int64_t rows = mask.dim(0);
  size_t at = 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (size_t part = 0; part < spec.sizes.size(); ++part) {
      uint8_t any = 0;
      for (int64_t i = 0; i < spec.sizes[part]; ++i) any |= allowed[at++];
      WEFT_CHECK(any != 0) << "the action mask of row " << row << " allows no action in part "
                           << part;
    }
  }
}

Tensor NormaliseParts(const DistributionSpec& spec, const Tensor& logits) {
  if (spec.sizes.size() == 1) return LogSoftmax(logits);
  std::vector<Tensor> parts;
  parts.reserve(spec.sizes.size());
  int64_t begin = 0;
  for (const int64_t size : spec.sizes) {
    parts.push_back(LogSoftmax(SliceLast(logits, begin, begin + size)));
    begin += size;
  }
  return ConcatLast(parts);
}

// The index at which the running sum of probabilities passes uniform times their total.
int64_t InvertCdf(std::span<const float> probabilities, float uniform, int64_t row) {
  float total = 0;
  for (const float p : probabilities) total += p;
  const float threshold = uniform * total;
  float sum = 0;
  int64_t last = -1;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    sum += probabilities[i];
    if (sum > threshold) return static_cast<int64_t>(i);
    if (probabilities[i] > 0) last = static_cast<int64_t>(i);
  }
  // Rounding can leave the whole sum at the threshold; NaN leaves nothing.
  if (last < 0) {
    throw Error(ErrorCode::kDiverged,
                "the logits of row " + std::to_string(row) + " are not finite");
  }
  return last;
}

Tensor SampleParts(const DistributionSpec& spec, const Tensor& log_probabilities,
                   const Tensor& noise) {
  const Tensor probabilities = Exp(log_probabilities.Detach());
  const int64_t rows = noise.dim(0);
  const auto parts = static_cast<int64_t>(spec.sizes.size());
  Tensor action = Tensor::Empty(spec.action_shape().Prepend(rows), DType::kInt64);
  const auto p = probabilities.data<float>();
  const auto u = noise.data<float>();
  const auto out = action.data<int64_t>();
  size_t at = 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t part = 0; part < parts; ++part) {
      const auto index = static_cast<size_t>(row * parts + part);
      const auto size = static_cast<size_t>(spec.sizes[static_cast<size_t>(part)]);
      out[index] = InvertCdf(p.subspan(at, size), u[index], row);
      at += size;
    }
  }
  return action;
}

// f32 [B, sum n] with 1 at each part's action.
Tensor OneHot(const DistributionSpec& spec, const Tensor& action) {
  const int64_t rows = action.dim(0), columns = Total(spec.sizes);
  Tensor one_hot = Tensor::Zeros({rows, columns});
  const auto out = one_hot.data<float>();
  const auto index = action.data<int64_t>();
  size_t at = 0;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t begin = row * columns;
    for (const int64_t size : spec.sizes) {
      const int64_t choice = index[at++];
      WEFT_CHECK(choice >= 0 && choice < size)
          << "action " << choice << " of row " << row << " is not in [0, " << size << ")";
      out[static_cast<size_t>(begin + choice)] = 1;
      begin += size;
    }
  }
  return one_hot;
}

Tensor ArgMaxParts(const DistributionSpec& spec, const Tensor& log_probabilities) {
  if (spec.kind == DistributionKind::kCategorical) return ArgMaxLast(log_probabilities);
  const int64_t rows = log_probabilities.dim(0);
  const auto parts = static_cast<int64_t>(spec.sizes.size());
  Tensor action = Tensor::Empty({rows, parts}, DType::kInt64);
  int64_t begin = 0;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t end = begin + spec.sizes[static_cast<size_t>(part)];
    const Tensor best = ArgMaxLast(SliceLast(log_probabilities, begin, end));
    for (int64_t row = 0; row < rows; ++row) {
      action.data<int64_t>()[static_cast<size_t>(row * parts + part)] =
          best.data<int64_t>()[static_cast<size_t>(row)];
    }
    begin = end;
  }
  return action;
}

// i64 of x's shape: 1 where x > threshold.
Tensor Above(const Tensor& x, std::span<const float> threshold) {
  Tensor result = Tensor::Empty(x.shape(), DType::kInt64);
  const auto from = x.data<float>();
  const auto to = result.data<int64_t>();
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] = from[i] > threshold[threshold.size() == 1 ? 0 : i] ? 1 : 0;
  }
  return result;
}

// Sum over dimensions of the standard normal log density of z, less log_std: [B].
Tensor NormalLogProb(const Tensor& z, const Tensor& log_std) {
  return Sub(Affine(Square(z), -kHalf, -kHalfLogTwoPi), log_std);
}

// log of the derivative of tanh, without cancellation where it saturates: 2 (log 2 - u -
// softplus(-2 u)).
Tensor LogTanhDerivative(const Tensor& u) {
  return Affine(Add(u, Softplus(Scale(u, -2))), -2, kTwoLogTwo);
}

}  // namespace

const char* Name(DistributionKind kind) {
  switch (kind) {
    case DistributionKind::kCategorical:
      return "categorical";
    case DistributionKind::kMultiCategorical:
      return "multi_categorical";
    case DistributionKind::kBernoulli:
      return "bernoulli";
    case DistributionKind::kGaussian:
      return "gaussian";
    case DistributionKind::kSquashedGaussian:
      return "squashed_gaussian";
  }
  return "unknown";
}

int64_t DistributionSpec::outputs() const {
  return Total(sizes) * (gaussian() && state_dependent_std ? 2 : 1);
}

int64_t DistributionSpec::noise() const {
  return Categorical(kind) ? static_cast<int64_t>(sizes.size()) : Total(sizes);
}

Shape DistributionSpec::action_shape() const {
  if (kind == DistributionKind::kCategorical) return Shape();
  return Shape({noise()});
}

DType DistributionSpec::action_dtype() const {
  return gaussian() ? DType::kFloat32 : DType::kInt64;
}

Distribution Distribution::Discrete(const DistributionSpec& spec, const Tensor& logits,
                                    const Tensor& mask) {
  WEFT_CHECK(!spec.gaussian()) << Name(spec.kind) << " made from logits";
  WEFT_CHECK_EQ(logits.shape().rank(), 2) << "logits are [rows, outputs]";
  WEFT_CHECK_EQ(logits.dim(1), spec.outputs()) << "logits of a " << Name(spec.kind);
  Distribution distribution;
  distribution.spec_ = &spec;
  Tensor allowed = logits;
  if (mask.defined()) {
    WEFT_CHECK(Categorical(spec.kind)) << "a " << Name(spec.kind) << " takes no action mask";
    WEFT_CHECK_EQ(mask.shape(), logits.shape()) << "action mask and logits";
    CheckMask(spec, mask);
    allowed = Select(mask, logits, Tensor::Full(logits.shape(), kForbidden));
  }
  distribution.parameters_ =
      Categorical(spec.kind) ? NormaliseParts(spec, allowed) : std::move(allowed);
  return distribution;
}

Distribution Distribution::Gaussian(const DistributionSpec& spec, const Tensor& output,
                                    const Tensor& log_std) {
  WEFT_CHECK(spec.gaussian()) << Name(spec.kind) << " made from a mean";
  WEFT_CHECK_EQ(output.shape().rank(), 2) << "the output is [rows, outputs]";
  WEFT_CHECK_EQ(output.dim(1), spec.outputs()) << "output of a " << Name(spec.kind);
  WEFT_CHECK_EQ(log_std.defined(), !spec.state_dependent_std)
      << "log_std is given exactly when it does not depend on the state";
  const int64_t dims = Total(spec.sizes);
  Distribution distribution;
  distribution.spec_ = &spec;
  if (spec.state_dependent_std) {
    distribution.parameters_ = SliceLast(output, 0, dims);
    distribution.log_std_ = Clamp(SliceLast(output, dims, 2 * dims), kMinLogStd, kMaxLogStd);
  } else {
    WEFT_CHECK_EQ(log_std.shape(), Shape({dims})) << "log_std";
    distribution.parameters_ = output;
    distribution.log_std_ = log_std;
  }
  return distribution;
}

Tensor Distribution::Noise(std::span<Rng> rngs) const {
  WEFT_CHECK_EQ(static_cast<int64_t>(rngs.size()), rows()) << "one generator a row";
  const auto columns = static_cast<size_t>(spec_->noise());
  Tensor noise = Tensor::Empty({rows(), spec_->noise()});
  const auto out = noise.data<float>();
  for (size_t row = 0; row < rngs.size(); ++row) {
    const auto values = out.subspan(row * columns, columns);
    if (spec_->gaussian()) {
      rngs[row].FillNormal(values);
    } else {
      for (float& value : values) value = rngs[row].UniformFloat();
    }
  }
  return noise;
}

Tensor Distribution::Noise(Rng& rng) const {
  Tensor noise = Tensor::Empty({rows(), spec_->noise()});
  if (spec_->gaussian()) {
    rng.FillNormal(noise.data<float>());
  } else {
    rng.FillUniform(noise.data<float>());
  }
  return noise;
}

Tensor Distribution::Sample(const Tensor& noise) const {
  WEFT_CHECK_EQ(noise.shape(), Shape({rows(), spec_->noise()})) << "noise to sample from";
  switch (spec_->kind) {
    case DistributionKind::kCategorical:
    case DistributionKind::kMultiCategorical:
      return SampleParts(*spec_, parameters_, noise);
    case DistributionKind::kBernoulli:
      return Above(Sigmoid(parameters_.Detach()), noise.data<float>());
    case DistributionKind::kGaussian:
      return Add(parameters_, Mul(noise, Exp(log_std_)));
    case DistributionKind::kSquashedGaussian:
      return Tanh(Add(parameters_, Mul(noise, Exp(log_std_))));
  }
  return {};
}

SampledAction Distribution::SampleWithLogProb(const Tensor& noise) const {
  if (spec_->kind != DistributionKind::kSquashedGaussian) {
    const Tensor action = Sample(noise);
    return {action, LogProb(action)};
  }
  WEFT_CHECK_EQ(noise.shape(), Shape({rows(), spec_->noise()})) << "noise to sample from";
  const Tensor u = Add(parameters_, Mul(noise, Exp(log_std_)));
  // (u - mean) / std is the noise itself.
  return {Tanh(u), SumLast(Sub(NormalLogProb(noise, log_std_), LogTanhDerivative(u)))};
}

Tensor Distribution::Mode() const {
  switch (spec_->kind) {
    case DistributionKind::kCategorical:
    case DistributionKind::kMultiCategorical:
      return ArgMaxParts(*spec_, parameters_.Detach());
    case DistributionKind::kBernoulli: {
      const float zero = 0;
      return Above(parameters_, {&zero, 1});
    }
    case DistributionKind::kGaussian:
      return parameters_;
    case DistributionKind::kSquashedGaussian:
      return Tanh(parameters_);
  }
  return {};
}

Tensor Distribution::LogProb(const Tensor& action) const {
  WEFT_CHECK_EQ(action.shape(), spec_->action_shape().Prepend(rows()))
      << "action of a " << Name(spec_->kind);
  switch (spec_->kind) {
    case DistributionKind::kCategorical:
      return GatherLast(parameters_, action);
    case DistributionKind::kMultiCategorical:
      return SumLast(Mul(OneHot(*spec_, action), parameters_));
    case DistributionKind::kBernoulli: {
      // a x - softplus(x): the log of sigmoid(x) for 1, of sigmoid(-x) for 0.
      return SumLast(Sub(Mul(Cast(action, DType::kFloat32), parameters_), Softplus(parameters_)));
    }
    case DistributionKind::kGaussian: {
      const Tensor z = Mul(Sub(action, parameters_), Exp(Neg(log_std_)));
      return SumLast(NormalLogProb(z, log_std_));
    }
    case DistributionKind::kSquashedGaussian: {
      // atanh by its logarithms, half of log(1 + a) - log(1 - a).
      const Tensor a = Clamp(action, -kLargestAction, kLargestAction);
      return LogProbBeforeTanh(Scale(Sub(Log(Shift(a, 1)), Log(Affine(a, -1, 1))), kHalf));
    }
  }
  return {};
}

Tensor Distribution::LogProbBeforeTanh(const Tensor& value) const {
  WEFT_CHECK(spec_->kind == DistributionKind::kSquashedGaussian)
      << "a " << Name(spec_->kind) << " has no tanh";
  const Tensor z = Mul(Sub(value, parameters_), Exp(Neg(log_std_)));
  return SumLast(Sub(NormalLogProb(z, log_std_), LogTanhDerivative(value)));
}

Tensor Distribution::Entropy() const {
  switch (spec_->kind) {
    case DistributionKind::kCategorical:
    case DistributionKind::kMultiCategorical:
      return Neg(SumLast(Mul(Exp(parameters_), parameters_)));
    case DistributionKind::kBernoulli:
      return SumLast(Sub(Softplus(parameters_), Mul(Sigmoid(parameters_), parameters_)));
    case DistributionKind::kGaussian: {
      const Tensor terms = Shift(log_std_, kHalf + kHalfLogTwoPi);
      if (spec_->state_dependent_std) return SumLast(terms);
      return Add(Tensor::Zeros({rows()}), Sum(terms));  // the same for every row
    }
    case DistributionKind::kSquashedGaussian:
      WEFT_CHECK(false) << "the entropy of a squashed Gaussian has no closed form: estimate it by "
                           "the mean of -log_prob";
  }
  return {};
}

Tensor Distribution::KlTo(const Distribution& other) const {
  WEFT_CHECK(spec_->kind == other.spec_->kind && spec_->sizes == other.spec_->sizes)
      << "KL from a " << Name(spec_->kind) << " to a " << Name(other.spec_->kind)
      << " of another kind or size";
  const Tensor& p = parameters_;
  const Tensor& q = other.parameters_;
  switch (spec_->kind) {
    case DistributionKind::kCategorical:
    case DistributionKind::kMultiCategorical:
      return SumLast(Mul(Exp(p), Sub(p, q)));
    case DistributionKind::kBernoulli:
      return SumLast(Add(Mul(Sigmoid(p), Sub(p, q)), Sub(Softplus(q), Softplus(p))));
    case DistributionKind::kGaussian:
    case DistributionKind::kSquashedGaussian: {
      // log sq - log sp + (sp^2 + (mp - mq)^2) / (2 sq^2) - 1/2
      const Tensor spread = Add(Square(Sub(p, q)), Exp(Scale(log_std_, 2)));
      const Tensor ratio = Mul(spread, Exp(Scale(other.log_std_, -2)));
      return SumLast(Sub(Add(Affine(ratio, kHalf, -kHalf), other.log_std_), log_std_));
    }
  }
  return {};
}

}  // namespace weft
