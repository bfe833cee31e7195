#include "nn/running_statistics.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace weft {
namespace {

// Calls function(span of all elements) with the tensor's element type.
template <class Function>
void WithElements(const Tensor& x, const Function& function) {
  if (x.dtype() == DType::kFloat64) {
    function(x.data<double>());
  } else {
    function(x.data<float>());
  }
}

}  // namespace

RunningStatistics::RunningStatistics(int64_t features, double initial_count)
    : mean_(static_cast<size_t>(features), 0.0),
      variance_(static_cast<size_t>(features), 1.0),
      count_(initial_count) {
  WEFT_CHECK_GT(features, 0) << "features to normalise";
}

void RunningStatistics::Update(const Tensor& rows) {
  const size_t features = mean_.size();
  const size_t count = RowsOf(rows);
  if (count == 0) return;
  std::vector<double> mean(features, 0.0), squares(features, 0.0);
  WithElements(rows, [&](auto x) {
    for (size_t row = 0; row < count; ++row) {
      for (size_t j = 0; j < features; ++j) mean[j] += static_cast<double>(x[row * features + j]);
    }
    for (double& value : mean) value /= static_cast<double>(count);
    for (size_t row = 0; row < count; ++row) {
      for (size_t j = 0; j < features; ++j) {
        const double difference = static_cast<double>(x[row * features + j]) - mean[j];
        squares[j] += difference * difference;
      }
    }
  });
  const auto added = static_cast<double>(count);
  const double total = count_ + added;
  for (size_t j = 0; j < features; ++j) {
    const double delta = mean[j] - mean_[j];
    mean_[j] += delta * (added / total);
    variance_[j] =
        (variance_[j] * count_ + squares[j] + delta * delta * (count_ * (added / total))) / total;
  }
  count_ = total;
}

size_t RunningStatistics::RowsOf(const Tensor& x) const {
  WEFT_CHECK(x.dtype() == DType::kFloat32 || x.dtype() == DType::kFloat64)
      << "statistics of " << x.dtype() << " " << x.shape() << ": only f32 and f64 are normalised";
  WEFT_CHECK_EQ(x.elements() % features(), 0)
      << "rows of " << features() << " features in " << x.shape();
  return static_cast<size_t>(x.elements() / features());
}

Tensor RunningStatistics::Apply(const Tensor& x, bool centre, double clip, double epsilon) const {
  const size_t features = mean_.size();
  const size_t count = RowsOf(x);
  Tensor result = Tensor::Empty(x.shape());
  const auto out = result.data<float>();
  std::vector<double> scale(features);
  for (size_t j = 0; j < features; ++j) scale[j] = 1 / std::sqrt(variance_[j] + epsilon);
  WithElements(x, [&](auto in) {
    for (size_t row = 0; row < count; ++row) {
      for (size_t j = 0; j < features; ++j) {
        const size_t at = row * features + j;
        const double shifted = static_cast<double>(in[at]) - (centre ? mean_[j] : 0.0);
        out[at] = static_cast<float>(std::clamp(shifted * scale[j], -clip, clip));
      }
    }
  });
  return result;
}

Tensor RunningStatistics::Normalise(const Tensor& x, double clip, double epsilon) const {
  return Apply(x, /*centre=*/true, clip, epsilon);
}

Tensor RunningStatistics::Scale(const Tensor& x, double clip, double epsilon) const {
  return Apply(x, /*centre=*/false, clip, epsilon);
}

TensorMap RunningStatistics::Save() const {
  TensorMap state;
  state.Set("mean", Tensor::From<double>({features()}, mean_));
  state.Set("variance", Tensor::From<double>({features()}, variance_));
  state.Set("count", Tensor::From<double>({}, {count_}));
  return state;
}

void RunningStatistics::Load(const TensorMap& state) {
  for (const char* name : {"mean", "variance", "count"}) {
    const Tensor& tensor = state.At(name);
    const int64_t expected = std::string_view(name) == "count" ? 1 : features();
    WEFT_CHECK(tensor.dtype() == DType::kFloat64 && tensor.elements() == expected)
        << "running statistics of " << features() << " features meet " << name << " of "
        << tensor.dtype() << " " << tensor.shape();
  }
  std::ranges::copy(state.At("mean").data<double>(), mean_.begin());
  std::ranges::copy(state.At("variance").data<double>(), variance_.begin());
  count_ = state.At("count").Item();
}

}  // namespace weft
