// Attention against plain loops in double, its gradient against differences, and the law: a row has
// the same bits however it is computed.
#include "tensor/kernels_attention.h"

#include <cmath>
#include <gtest/gtest.h>
#include <optional>
#include <vector>

#include "tests/tensor/kernels_testing.h"

namespace weft {
namespace {

using kernels::AttentionShape;
using kernels::AttentionSpan;

// Sequences one after another, rows of q, k and v side by side.
struct Problem {
  AttentionShape shape;
  std::vector<int64_t> lengths;
  std::vector<float> qkv;

  Problem(const AttentionShape& s, std::vector<int64_t> l) : shape(s), lengths(std::move(l)) {
    qkv = Numbers(7).Vector(tokens() * stride(), 1.5f);
  }
  int64_t tokens() const {
    int64_t sum = 0;
    for (const int64_t length : lengths) sum += length;
    return sum;
  }
  int64_t stride() const { return (shape.heads + 2 * shape.kv_heads) * shape.head_dimension; }
  int64_t k_at() const { return shape.heads * shape.head_dimension; }
  int64_t v_at() const { return k_at() + shape.kv_heads * shape.head_dimension; }
};

// y [T, heads * D] in double.
std::vector<double> Attend(const Problem& p, const std::vector<double>& qkv) {
  const AttentionShape& s = p.shape;
  std::vector<double> y(p.tokens() * s.heads * s.head_dimension);
  int64_t first = 0;
  for (const int64_t length : p.lengths) {
    for (int64_t row = 0; row < length; ++row) {
      for (int64_t h = 0; h < s.heads; ++h) {
        const int64_t kv = h / (s.heads / s.kv_heads);
        const double* q = &qkv[(first + row) * p.stride() + h * s.head_dimension];
        const int64_t begin = s.window > 0 ? std::max<int64_t>(0, row - s.window + 1) : 0;
        const int64_t end = s.causal ? row + 1 : length;
        std::vector<double> weight;
        double sum = 0;
        for (int64_t key = begin; key < end; ++key) {
          const double* k = &qkv[(first + key) * p.stride() + p.k_at() + kv * s.head_dimension];
          double score = 0;
          for (int64_t d = 0; d < s.head_dimension; ++d) score += q[d] * k[d];
          score *= s.scale;
          if (s.softcap > 0) score = s.softcap * std::tanh(score / s.softcap);
          weight.push_back(std::exp(score));
          sum += weight.back();
        }
        for (int64_t key = begin; key < end; ++key) {
          const double* v = &qkv[(first + key) * p.stride() + p.v_at() + kv * s.head_dimension];
          for (int64_t d = 0; d < s.head_dimension; ++d) {
            y[((first + row) * s.heads + h) * s.head_dimension + d] +=
                weight[key - begin] / sum * v[d];
          }
        }
      }
    }
    first += length;
  }
  return y;
}

// Pages of every sequence, and spans over rows of them.
struct Pages {
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::vector<std::byte*>> pointers;

  explicit Pages(const Problem& p) {
    for (const int64_t length : p.lengths) {
      auto& list = pointers.emplace_back();
      for (int64_t at = 0; at < length; at += 64) {
        list.push_back(memory.emplace_back(p.shape.page_bytes()).data());
      }
    }
  }
  std::vector<AttentionSpan> Whole(const Problem& p) const {
    std::vector<AttentionSpan> spans;
    int64_t first = 0;
    for (size_t i = 0; i < p.lengths.size(); ++i) {
      spans.push_back({first, p.lengths[i], 0, pointers[i].data()});
      first += p.lengths[i];
    }
    return spans;
  }
};

std::vector<float> AttendAll(const Context& context, const Problem& p,
                             const std::vector<AttentionSpan>& spans, float* log_sum) {
  std::vector<float> y(p.tokens() * p.shape.heads * p.shape.head_dimension, NAN);
  kernels::StoreKeys(context, p.shape, spans, 0, p.stride(), p.qkv.data() + p.k_at(),
                     p.qkv.data() + p.v_at());
  kernels::Attention(context, p.shape, spans, 0, p.stride(), p.qkv.data(), {y.data(), false},
                     log_sum);
  return y;
}

class Attention : public testing::TestWithParam<AttentionShape> {};
INSTANTIATE_TEST_SUITE_P(
    Shapes, Attention,
    testing::Values(
        AttentionShape{.heads = 4, .kv_heads = 2, .head_dimension = 16, .scale = 0.25f},
        AttentionShape{.heads = 3,
                       .kv_heads = 1,
                       .head_dimension = 20,
                       .scale = 0.2f,
                       .softcap = 2,
                       .window = 7},
        AttentionShape{
            .heads = 2, .kv_heads = 2, .head_dimension = 72, .scale = 0.1f, .window = 70},
        AttentionShape{
            .heads = 4, .kv_heads = 2, .head_dimension = 16, .scale = 0.25f, .bf16 = true},
        AttentionShape{
            .heads = 2, .kv_heads = 2, .head_dimension = 32, .scale = 0.2f, .causal = false}));

TEST_P(Attention, IsTheSoftmaxOfItsDefinitionWithTheSameBitsEverywhere) {
  const Problem p(GetParam(), {1, 63, 130, 5});
  const auto want = Attend(p, {p.qkv.begin(), p.qkv.end()});
  std::optional<std::vector<float>> first;
  ForEveryContext([&](const Context& context) {
    const Pages pages(p);
    const auto got = AttendAll(context, p, pages.Whole(p), nullptr);
    if (first) {
      EXPECT_TRUE(SameBits(got, *first));
      return;
    }
    first = got;
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], p.shape.bf16 ? 3e-2 : 3e-6) << "element " << i;
    }
  });
}

// Token by token over the cache, and in uneven pieces, as in one pass.
TEST_P(Attention, ARowOverTheCacheHasTheBitsOfTheBatch) {
  if (!GetParam().causal) return;  // a row needs those behind it
  const Problem p(GetParam(), {150});
  const Context context;
  const Pages whole(p);
  const auto want = AttendAll(context, p, whole.Whole(p), nullptr);
  for (const int64_t piece : {1, 7, 64, 100}) {
    const Pages pages(p);
    std::vector<float> got(want.size(), NAN);
    for (int64_t row = 0; row < 150; row += piece) {
      const AttentionSpan span{row, std::min<int64_t>(piece, 150 - row), row,
                               pages.pointers[0].data()};
      kernels::StoreKeys(context, p.shape, {&span, 1}, 0, p.stride(), p.qkv.data() + p.k_at(),
                         p.qkv.data() + p.v_at());
      kernels::Attention(context, p.shape, {&span, 1}, 0, p.stride(), p.qkv.data(),
                         {got.data(), false}, nullptr);
    }
    EXPECT_TRUE(SameBits(got, want)) << "pieces of " << piece;
  }
}

TEST_P(Attention, GradientIsThatOfDifferences) {
  if (!GetParam().causal) return;
  if (GetParam().bf16) return;  // of f32 sums over rounded numbers: the differences would see steps
  const Problem p(GetParam(), {3, 70});
  const int64_t width = p.shape.heads * p.shape.head_dimension;
  const auto d_y = Numbers(8).Vector(p.tokens() * width);
  std::vector<double> qkv(p.qkv.begin(), p.qkv.end());
  const auto loss = [&] {
    const auto y = Attend(p, qkv);
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += y[i] * d_y[i];
    return sum;
  };
  std::optional<std::vector<float>> first;
  ForEveryContext([&](const Context& context) {
    const Pages pages(p);
    const auto spans = pages.Whole(p);
    std::vector<float> log_sum(p.tokens() * p.shape.heads), got(p.qkv.size(), NAN);
    const auto y = AttendAll(context, p, spans, log_sum.data());
    kernels::AttentionGradient(context, p.shape, spans, p.stride(), p.qkv.data(),
                               p.qkv.data() + p.k_at(), p.qkv.data() + p.v_at(), {y.data(), false},
                               log_sum.data(), d_y.data(), got.data(), got.data() + p.k_at(),
                               got.data() + p.v_at());
    if (first) {
      EXPECT_TRUE(SameBits(got, *first));
      return;
    }
    first = got;
    for (size_t i = 0; i < qkv.size(); i += 37) {
      const double before = qkv[i], step = 1e-5;
      qkv[i] = before + step;
      const double up = loss();
      qkv[i] = before - step;
      const double slope = (up - loss()) / (2 * step);
      qkv[i] = before;
      ASSERT_NEAR(got[i], slope, 1e-4 * (1 + std::fabs(slope))) << "element " << i;
    }
  });
}

}  // namespace
}  // namespace weft
