// Attention and rotary positions against recorded outputs and gradients. Recordings are [B, heads,
// T, D] with padding on the left; the engine's rows are tokens without padding, one sequence each.
#include <algorithm>
#include <cmath>
#include <vector>

#include "language/recorded_cases.h"
#include "language/rope.h"
#include "language/verify_layers.h"
#include "tensor/kernels_attention.h"

namespace weft {
namespace {

using kernels::AttentionShape;
using kernels::AttentionSpan;

constexpr double kRelative = 1e-5, kAbsolute = 1e-6;  // the page's, of layers

// One sequence of a case: keys [first, keys), queries the last `queries` of them.
class AttentionCase {
 public:
  AttentionCase(RecordedCases& cases, std::string name) : cases_(cases), name_(std::move(name)) {
    const Tensor &q = cases.At(name_ + ".q"), &k = cases.At(name_ + ".k");
    batch_ = q.dim(0);
    queries_ = q.dim(2);
    keys_ = k.dim(2);
    shape_ = {.heads = q.dim(1),
              .kv_heads = k.dim(1),
              .head_dimension = q.dim(3),
              .scale = static_cast<float>(cases.Parameter(name_, "scale", 1)),
              .softcap = static_cast<float>(cases.Parameter(name_, "softcap", 0)),
              .window = static_cast<int64_t>(cases.Parameter(name_, "sliding_window", 0))};
  }

  void Check(const Context& context, double relative) {
    const std::vector<double> padding = cases_.Doubles(name_ + "_mask.first_valid");
    for (int64_t b = 0; b < batch_; ++b) {
      CheckSequence(context, b, static_cast<int64_t>(padding[static_cast<size_t>(b)]), relative);
    }
  }

 private:
  // Calls visit(where in a recording [batch, heads, T, D] of `steps` steps, where in our rows) for
  // the numbers of one token; `column` is that of the first head.
  template <class Visit>
  void ForNumbers(int64_t b, int64_t heads, int64_t steps, int64_t step, int64_t row,
                  int64_t stride, int64_t column, Visit visit) const {
    const int64_t d = shape_.head_dimension;
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < d; ++i) {
        visit(static_cast<size_t>(((b * heads + h) * steps + step) * d + i),
              static_cast<size_t>(row * stride + column + h * d + i));
      }
    }
  }

  void CheckSequence(const Context& context, int64_t b, int64_t first, double relative) {
    const int64_t d = shape_.head_dimension, rows = keys_ - first;
    const int64_t width = shape_.heads * d, kv_width = shape_.kv_heads * d;
    const int64_t stride = width + 2 * kv_width;
    const int64_t past = std::max<int64_t>(keys_ - queries_ - first, 0);  // rows without a query
    // Those have queries of zero and outputs that nothing depends on.
    std::vector<float> qkv(static_cast<size_t>(rows * stride));
    std::vector<float> d_y(static_cast<size_t>(rows * width));
    const auto load = [&](const char* what, int64_t heads, int64_t steps, int64_t to_stride,
                          int64_t column, std::vector<float>& to) {
      const std::vector<float> from = cases_.Floats(name_ + what);
      for (int64_t step = 0; step < steps; ++step) {
        const int64_t row = keys_ - steps + step - first;
        if (row < 0) continue;
        ForNumbers(b, heads, steps, step, row, to_stride, column,
                   [&](size_t theirs, size_t ours) { to[ours] = from[theirs]; });
      }
    };
    load(".q", shape_.heads, queries_, stride, 0, qkv);
    load(".k", shape_.kv_heads, keys_, stride, width, qkv);
    load(".v", shape_.kv_heads, keys_, stride, width + kv_width, qkv);
    load(".cotangent", shape_.heads, queries_, width, 0, d_y);

    std::vector<std::byte> page(static_cast<size_t>(shape_.page_bytes()));
    std::byte* const pages[] = {page.data()};
    const AttentionSpan whole{0, rows, 0, pages}, asked{past, rows - past, past, pages};
    std::vector<float> y(d_y.size(), NAN), over_cache(d_y.size(), NAN);
    std::vector<float> log_sum(static_cast<size_t>(rows * shape_.heads)), d_qkv(qkv.size());
    kernels::StoreKeys(context, shape_, {&whole, 1}, 0, stride, qkv.data() + width,
                       qkv.data() + width + kv_width);
    kernels::Attention(context, shape_, {&asked, 1}, 0, stride, qkv.data(),
                       {over_cache.data(), false}, nullptr);
    kernels::Attention(context, shape_, {&whole, 1}, 0, stride, qkv.data(), {y.data(), false},
                       log_sum.data());
    const AttentionSpan bare{0, rows, 0, nullptr};
    kernels::AttentionGradient(context, shape_, {&bare, 1}, stride, qkv.data(), qkv.data() + width,
                               qkv.data() + width + kv_width, {y.data(), false}, log_sum.data(),
                               d_y.data(), d_qkv.data(), d_qkv.data() + width,
                               d_qkv.data() + width + kv_width);

    const auto compare = [&](const char* what, int64_t heads, int64_t steps, int64_t from_stride,
                             int64_t column, const std::vector<float>& from, double allowed) {
      const std::vector<double> recorded = cases_.Doubles(name_ + what);
      std::vector<double> got, want;
      for (int64_t step = 0; step < steps; ++step) {
        const int64_t row = keys_ - steps + step - first;
        if (row < 0) continue;
        ForNumbers(b, heads, steps, step, row, from_stride, column,
                   [&](size_t theirs, size_t ours) {
                     got.push_back(static_cast<double>(from[ours]));
                     want.push_back(recorded[theirs]);
                   });
      }
      double largest = 0;
      for (const double value : recorded) largest = std::max(largest, std::fabs(value));
      cases_.Check(name_ + what, got, want, 0, allowed * largest + kAbsolute);
    };
    compare(".output", shape_.heads, queries_, width, 0, over_cache, kRelative);
    compare(".grad.q", shape_.heads, queries_, stride, 0, d_qkv, relative);
    compare(".grad.k", shape_.kv_heads, keys_, stride, width, d_qkv, relative);
    compare(".grad.v", shape_.kv_heads, keys_, stride, width + kv_width, d_qkv, relative);
  }

  RecordedCases& cases_;
  std::string name_;
  AttentionShape shape_;
  int64_t batch_ = 0, queries_ = 0, keys_ = 0;
};

// Positions beyond this are where the page allows for angles in float32.
constexpr int64_t kFar = 1000;
constexpr double kFarTolerance = 5e-3;

void CheckRope(const Context& context, RecordedCases& cases, const std::string& kind_name,
               RopeKind kind) {
  const std::string name = "rope." + kind_name, table_name = "rope_table." + kind_name;
  RopeSettings settings;
  settings.kind = kind;
  settings.theta = cases.Parameter(name, "theta", 10000);
  settings.factor = cases.Parameter(name, "factor", 1);
  settings.low_frequency_factor = cases.Parameter(name, "low_freq_factor", 1);
  settings.high_frequency_factor = cases.Parameter(name, "high_freq_factor", 4);
  settings.original_context =
      static_cast<int64_t>(cases.Parameter(name, "original_max_position_embeddings", 0));
  settings.beta_fast = cases.Parameter(name, "beta_fast", 32);
  settings.beta_slow = cases.Parameter(name, "beta_slow", 1);
  const auto dimensions = static_cast<int64_t>(cases.Parameter(name, "dim", 0));
  const RopeConfig rope = MakeRope(settings, dimensions);
  cases.Check(table_name + ".inv_freq", std::span<const float>(rope.inverse_frequencies), kRelative,
              0);

  const std::vector<double> positions = cases.Doubles(table_name + ".positions");
  const std::vector<double> cosines = cases.Doubles(table_name + ".cos"),
                            sines = cases.Doubles(table_name + ".sin");
  Tensor x = cases.At(name + ".q").Clone(), d_x = cases.At(name + ".cotangent").Clone();
  const std::vector<double> turned = cases.Doubles(name + ".output"),
                            gradient = cases.Doubles(name + ".grad.q");
  const int64_t heads = x.dim(1), pairs = dimensions / 2;
  const size_t width = static_cast<size_t>(heads * x.dim(2)), half = static_cast<size_t>(pairs);
  const size_t columns = cosines.size() / positions.size();  // the pairs, once or twice
  std::vector<float> row(static_cast<size_t>(dimensions));
  for (size_t t = 0; t < positions.size(); ++t) {
    const bool far = positions[t] > kFar;
    const double absolute = far ? kFarTolerance : 2e-6, relative = far ? kFarTolerance : kRelative;
    MakeRotation(rope, static_cast<int64_t>(positions[t]), row);
    const std::vector<double> angles(row.begin(), row.end());
    const auto pick = [&](const std::vector<double>& recorded) {
      return std::span(recorded).subspan(t * columns, half);
    };
    cases.Check(table_name + ".cos", std::span(angles).first(half), pick(cosines), relative,
                absolute);
    cases.Check(table_name + ".sin", std::span(angles).last(half), pick(sines), relative, absolute);
    const int32_t zero = 0;  // of a table of one row
    const auto turn = [&](Tensor& rows, bool inverse, const std::vector<double>& recorded,
                          const std::string& what) {
      float* const token = rows.data<float>().data() + t * width;
      kernels::Rotate(context, 1, heads, x.dim(2), pairs, static_cast<int64_t>(width), row.data(),
                      &zero, inverse, token);
      cases.Check(name + what, std::vector<double>(token, token + width),
                  std::span(recorded).subspan(t * width, width), relative, 10 * absolute);
    };
    turn(x, false, turned, ".output");
    turn(d_x, true, gradient, ".grad.q");
  }
}

}  // namespace

VerifyReport VerifyAttentionLayers(const Context& context, const std::string& folder) {
  RecordedCases cases(folder, "layers_attention");
  for (const char* name : {"causal", "gqa", "sliding_window", "kv_cache_offset",
                           "kv_cache_offset_window", "softcap", "left_padding", "one_query"}) {
    AttentionCase(cases, name).Check(context, kRelative);
  }
  AttentionCase(cases, "large_scores").Check(context, 5e-4);
  CheckRope(context, cases, "default", RopeKind::kDefault);
  CheckRope(context, cases, "linear", RopeKind::kLinear);
  CheckRope(context, cases, "llama3", RopeKind::kLlama3);
  CheckRope(context, cases, "yarn", RopeKind::kYarn);
  return cases.Report("a model with such positions is refused when it is loaded");
}

}  // namespace weft
