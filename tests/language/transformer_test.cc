// The backward pass against differences of the loss, and the invariances that the law promises.
#include "language/transformer.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

#include "language/language_head.h"
#include "tests/language/tiny_model.h"

namespace weft {
namespace {

using kernels::AttentionSpan;

struct Batch {
  std::vector<int32_t> ids, positions, targets;
  std::vector<AttentionSpan> spans;

  void Add(int64_t length, int32_t first) {
    spans.push_back({std::ssize(ids), length, 0, nullptr});
    for (int64_t i = 0; i < length; ++i) {
      ids.push_back(static_cast<int32_t>((first + 11 * i) % 60));
      positions.push_back(static_cast<int32_t>(i));
      targets.push_back(i + 1 < length ? static_cast<int32_t>((first + 11 * (i + 1)) % 60) : -1);
    }
  }
  TokenBatch tokens() const { return {.ids = ids, .positions = positions, .spans = spans}; }
};

double Loss(Transformer& model, const Batch& batch, TransformerTrace* trace, Tensor* d_final) {
  const Tensor rows = model.Forward({}, batch.tokens(), trace);
  double loss = 0;
  const HeadLoss head = [&](const HeadBlock& block) {
    for (size_t i = 0; i < block.rows.size(); ++i) {
      loss -= block.log_probability[i] + 0.1 * block.entropy[i];
      block.d_log_probability[i] = -1;
      block.d_entropy[i] = -0.1f;
    }
  };
  if (trace == nullptr) {
    const TokenScores scores =
        ScoreTokens({}, model, rows, batch.targets, {.temperature = 0.9f, .entropy = true});
    for (size_t i = 0; i < batch.targets.size(); ++i) {
      loss -= scores.log_probability.data<float>()[i] + 0.1 * scores.entropy.data<float>()[i];
    }
    return loss;
  }
  ScoreTokens({}, model, rows, batch.targets, {.temperature = 0.9f, .entropy = true}, head,
              d_final);
  return loss;
}

ModelConfig Variant(int which) {
  ModelConfig config = TinyConfig();
  if (which == 1) {  // GPT-NeoX and OPT together
    config.norm = NormKind::kLayerNorm;
    config.gated = false;
    config.activation = FeedForwardActivation::kGelu;
    config.qkv_bias = config.attention_output_bias = config.feed_forward_bias = true;
    config.parallel_residual = true;
    config.tied = false;
    config.rope.rotary_dimensions = 4;
    config.rope.inverse_frequencies.resize(2);
    config.learned_positions = 100;
    config.learned_position_offset = 2;
  }
  if (which == 2) {  // Gemma 2 with Qwen 3's norms
    config.norm_offset = config.post_norms = config.query_key_norm = true;
    config.activation = FeedForwardActivation::kGeluTanh;
    config.attention_softcap = 3;
    config.final_softcap = 5;
    config.embedding_scale = 1.5f;
    config.windows = {4, 0};
  }
  return config;
}

class Variants : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Variants, Variants, testing::Values(0, 1, 2));

TEST_P(Variants, GradientsAreThoseOfDifferences) {
  const auto model = MakeTiny(Variant(GetParam()));
  model->EnableGradient();
  Batch batch;
  batch.Add(9, 1);
  batch.Add(5, 7);
  TransformerTrace trace;
  Tensor d_final;
  Loss(*model, batch, &trace, &d_final);
  model->Backward({}, batch.tokens(), trace, d_final);
  auto parameters = model->Parameters();
  const auto gradients = model->Gradients();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto values = parameters[i].tensor->data<float>();
    const auto gradient = gradients[i].data<float>();
    // Along the gradient the loss must rise by its square.
    double square = 0;
    for (const float g : gradient) square += static_cast<double>(g) * g;
    if (square < 1e-8) continue;  // a key's bias: the softmax does not see it
    const double step = 2e-3 / std::sqrt(square);
    const std::vector<float> before(values.begin(), values.end());
    const auto moved = [&](double by) {
      for (size_t e = 0; e < values.size(); ++e) {
        values[e] = static_cast<float>(before[e] + by * gradient[e]);
      }
      model->Refresh({});
      return Loss(*model, batch, nullptr, nullptr);
    };
    const double slope = (moved(step) - moved(-step)) / (2 * step);
    moved(0);
    EXPECT_NEAR(slope / square, 1, 0.02) << parameters[i].name.text();
  }
}

TEST_P(Variants, RecomputingGivesTheSameBits) {
  const auto model = MakeTiny(Variant(GetParam()));
  model->EnableGradient();
  Batch batch;
  batch.Add(9, 1);
  batch.Add(5, 7);
  std::vector<std::vector<float>> first;
  for (const bool recompute : {false, true}) {
    TransformerTrace trace{.recompute = recompute};
    Tensor d_final;
    Loss(*model, batch, &trace, &d_final);
    model->Backward({}, batch.tokens(), trace, d_final);
    const auto gradients = model->Gradients();
    for (size_t i = 0; i < gradients.size(); ++i) {
      const auto values = gradients[i].data<float>();
      if (recompute) {
        EXPECT_TRUE(SameBits({values.begin(), values.end()}, first[i]));
      } else {
        first.emplace_back(values.begin(), values.end());
      }
    }
    model->ClearGradients();
  }
  for (const Tensor& gradient : model->Gradients()) {
    for (const float g : gradient.data<float>()) ASSERT_EQ(g, 0);
  }
}

// A sequence gives the same rows alone, in any batch, at every level and with any threads.
TEST_P(Variants, RowsDependOnTheirSequenceAlone) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    const auto model = MakeTiny(Variant(GetParam()), precision);
    Batch alone, batch;
    alone.Add(30, 3);
    batch.Add(13, 8);
    batch.Add(30, 3);
    batch.Add(2, 4);
    std::vector<float> want;
    ForEveryContext([&](const Context& context) {
      const auto logits = [&](const Batch& b, int64_t first) {
        const Tensor rows = model->Forward(context, b.tokens(), nullptr);
        const Tensor all = Logits(context, *model, rows);
        const Tensor part = all.Slice(first, first + 30);
        return std::vector<float>(part.data<float>().begin(), part.data<float>().end());
      };
      if (want.empty()) want = logits(alone, 0);
      EXPECT_TRUE(SameBits(logits(alone, 0), want));
      EXPECT_TRUE(SameBits(logits(batch, 13), want));
    });
  }
}

// Answers that share their prompt's rows, which may go on from another span's: the bits of separate
// sequences, and the same gradients.
TEST_P(Variants, AnswersMayShareTheirPrompt) {
  const auto model = MakeTiny(Variant(GetParam()));
  model->EnableGradient();
  for (const auto& [prompt, beginning] :
       std::vector<std::pair<int64_t, int64_t>>{{5, 0}, {20, 0}, {20, 7}, {80, 64}, {80, 70}}) {
    const std::vector<int64_t> lengths = {4, 1, 7};
    if (prompt + 7 > model->config().context) continue;
    Batch shared, apart;
    shared.Add(prompt, 3);
    std::fill(shared.targets.begin(), shared.targets.end(), -1);
    if (beginning > 0) {
      shared.spans[0].rows = beginning;
      shared.spans.push_back({beginning, prompt - beginning, beginning, nullptr, 0});
    }
    const auto parent = std::ssize(shared.spans) - 1;
    std::vector<int64_t> first;  // of each answer in `apart`
    for (size_t i = 0; i < lengths.size(); ++i) {
      shared.spans.push_back({std::ssize(shared.ids), lengths[i], prompt, nullptr, parent});
      apart.Add(prompt, 3);
      first.push_back(std::ssize(apart.ids));
      apart.spans.back().rows += lengths[i];
      for (int64_t t = 0; t < lengths[i]; ++t) {
        const auto id = static_cast<int32_t>((7 * i + 5 * t + 2) % 60);
        for (Batch* batch : {&shared, &apart}) {
          batch->ids.push_back(id);
          batch->positions.push_back(static_cast<int32_t>(prompt + t));
          batch->targets.push_back(static_cast<int32_t>((id + 9) % 60));
        }
      }
    }
    for (size_t i = 0; i < lengths.size(); ++i) {
      std::fill(apart.targets.begin() + first[i] - prompt, apart.targets.begin() + first[i], -1);
    }
    const Tensor joint = model->Forward({}, shared.tokens(), nullptr);
    const Tensor single = model->Forward({}, apart.tokens(), nullptr);
    int64_t row = prompt;
    for (size_t i = 0; i < lengths.size(); ++i) {
      for (int64_t t = 0; t < lengths[i]; ++t, ++row) {
        const Tensor a = joint.Row(row), b = single.Row(first[i] + t);
        EXPECT_TRUE(std::ranges::equal(a.data<float>(), b.data<float>())) << i << ", " << t;
      }
    }
    std::vector<std::vector<float>> want;
    for (const Batch* batch : {&apart, &shared}) {
      TransformerTrace trace;
      Tensor d_final;
      Loss(*model, *batch, &trace, &d_final);
      model->Backward({}, batch->tokens(), trace, d_final);
      const auto gradients = model->Gradients();
      for (size_t i = 0; i < gradients.size(); ++i) {
        const auto got = gradients[i].data<float>();
        if (batch == &apart) {
          want.emplace_back(got.begin(), got.end());
        } else {
          float largest = 1e-3f;
          for (const float g : want[i]) largest = std::max(largest, std::fabs(g));
          for (size_t e = 0; e < got.size(); ++e) {
            ASSERT_NEAR(got[e], want[i][e], 2e-5f * largest) << "gradient " << i;
          }
        }
      }
      model->ClearGradients();
    }
  }
}

TEST(Adapters, BeginAtZeroLearnAndMerge) {
  Batch batch;
  batch.Add(9, 1);
  batch.Add(5, 7);
  const auto plain = MakeTiny(TinyConfig());
  const double before = Loss(*plain, batch, nullptr, nullptr);
  const auto model = MakeTiny(TinyConfig());
  Rng rng(1, Purpose::kTest);
  const std::vector<std::string> targets = {"q_proj", "v_proj", "down_proj", "gate_proj"};
  model->AddAdapters(4, 2.0f, targets, rng);
  model->Refresh({});
  EXPECT_EQ(Loss(*model, batch, nullptr, nullptr), before);
  EXPECT_EQ(model->Adapters().size(), 8u);
  EXPECT_EQ(model->Parameters().size(), 16u);

  // With a B that is not zero, gradients are those of differences.
  for (const Transformer::AdapterSlot& slot : model->Adapters()) {
    std::vector<float> b(slot.adapter->b.out() * 4);
    Numbers numbers(slot.name.size());
    for (float& value : b) value = numbers.Next(0.1f);
    slot.adapter->b.SetRows(0, b);
  }
  model->Refresh({});
  TransformerTrace trace;
  Tensor d_final;
  const double loss = Loss(*model, batch, &trace, &d_final);
  EXPECT_NE(loss, before);
  model->Backward({}, batch.tokens(), trace, d_final);
  auto parameters = model->Parameters();
  const auto gradients = model->Gradients();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto values = parameters[i].tensor->data<float>();
    const auto gradient = gradients[i].data<float>();
    double square = 0;
    for (const float g : gradient) square += static_cast<double>(g) * g;
    ASSERT_GT(square, 0) << parameters[i].name.text();
    const double step = 2e-3 / std::sqrt(square);
    const std::vector<float> start(values.begin(), values.end());
    const auto moved = [&](double by) {
      for (size_t e = 0; e < values.size(); ++e) {
        values[e] = static_cast<float>(start[e] + by * gradient[e]);
      }
      model->Refresh({});
      return Loss(*model, batch, nullptr, nullptr);
    };
    const double slope = (moved(step) - moved(-step)) / (2 * step);
    moved(0);
    EXPECT_NEAR(slope / square, 1, 0.02) << parameters[i].name.text();
  }
  model->MergeAdapters({});
  EXPECT_NEAR(Loss(*model, batch, nullptr, nullptr), loss, 1e-4);
  Rng other(2, Purpose::kTest);
  const std::vector<std::string> wrong = {"w_proj"};
  EXPECT_THROW(model->AddAdapters(4, 2.0f, wrong, other), Error);
}

TEST(Transformer, TakesAnothersParametersOverWithoutACopy) {
  for (const int which : {0, 1}) {  // tied; untied with positions and biases
    const ModelConfig config = Variant(which);
    Batch batch;
    batch.Add(7, 3);
    for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
      const auto from = MakeTiny(config, precision);
      TensorMap parameters;
      for (const NamedParameter& parameter : from->Parameters()) {
        parameters.Set(parameter.name, *parameter.tensor);
      }
      Transformer to(config, precision);
      to.UseParameters(parameters);
      to.Refresh({});
      EXPECT_EQ(Loss(to, batch, nullptr, nullptr), Loss(*from, batch, nullptr, nullptr));
      const auto taken = to.Parameters(), given = from->Parameters();
      ASSERT_EQ(taken.size(), given.size());
      for (size_t i = 0; i < taken.size(); ++i) {
        EXPECT_EQ(taken[i].tensor->raw(), given[i].tensor->raw()) << taken[i].name.text();
      }
    }
  }
}

TEST(Transformer, RefusesIdsAndPositionsThatItDoesNotHave) {
  const auto model = MakeTiny(TinyConfig());
  Batch batch;
  batch.Add(3, 1);
  batch.ids[1] = 60;
  EXPECT_THROW(model->Forward({}, batch.tokens(), nullptr), Error);
  batch.ids[1] = 5;
  batch.positions[2] = 256;
  EXPECT_THROW(model->Forward({}, batch.tokens(), nullptr), Error);
}

TEST(Adapters, NeedNoMasterBesideThem) {
  constexpr int64_t kRows = 5, kIn = 34, kOut = 20, kRank = 2;
  std::vector<float> w(kIn * kOut), a(kRank * kIn), b(kOut * kRank);
  Rng rng(4, Purpose::kInitialise);
  for (std::vector<float>* values : {&w, &a, &b}) {
    for (float& value : *values) value = static_cast<float>(rng.Normal());
  }
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    Tensor x = Operand(precision, kRows, kIn), d_z = Operand(precision, kRows, kOut);
    x.Fill(0.5);
    d_z.Fill(0.25);
    std::vector<float> results[2];
    for (const bool free : {false, true}) {
      Projection projection(kIn, kOut, false, precision);
      projection.SetRows(0, w);
      projection.Refresh({});
      if (free) projection.FreeMaster();
      Projection::Adapter& adapter = projection.AddAdapter(0, kOut, kRank, 0.5f);
      adapter.a.SetRows(0, a);
      adapter.b.SetRows(0, b);
      projection.EnableGradient(/*frozen=*/true);
      adapter.a.EnableGradient();
      adapter.b.EnableGradient();
      for (int step = 0; step < 2; ++step) {
        projection.Refresh({});
        Tensor y = Tensor::Empty({kRows, kOut}), d_x = Tensor::Empty({kRows, kIn});
        projection.Forward({}, x, nullptr, y);
        projection.Backward({}, x, d_z, false, d_x.data<float>().data());
        for (const Tensor& tensor : {y, d_x, adapter.a.d_weight(), adapter.b.d_weight()}) {
          const auto values = tensor.data<float>();
          results[free].insert(results[free].end(), values.begin(), values.end());
        }
      }
    }
    EXPECT_EQ(results[0], results[1]);
  }
}

// In any precision, from the f32 weights, though nothing was refreshed for products yet.
TEST(Adapters, AreMergedIntoTheMasterWeights) {
  constexpr int64_t kIn = 34, kOut = 20, kRank = 2, kFirst = 4, kRows = 10;
  std::vector<float> w(kIn * kOut), a(kRank * kIn), b(kRows * kRank);
  Rng rng(3, Purpose::kInitialise);
  for (std::vector<float>* values : {&w, &a, &b}) {
    for (float& value : *values) value = static_cast<float>(rng.Normal());
  }
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    Projection projection(kIn, kOut, false, precision);
    projection.SetRows(0, w);
    Projection::Adapter& adapter = projection.AddAdapter(kFirst, kRows, kRank, 0.5f);
    adapter.a.SetRows(0, a);
    adapter.b.SetRows(0, b);
    projection.MergeAdapters();
    std::vector<float> merged(w.size());
    projection.GetRows(0, merged);
    for (int64_t n = 0; n < kOut; ++n) {
      for (int64_t k = 0; k < kIn; ++k) {
        double want = w[n * kIn + k];
        for (int64_t r = 0; r < kRank && n >= kFirst && n < kFirst + kRows; ++r) {
          want += 0.5 * b[(n - kFirst) * kRank + r] * a[r * kIn + k];
        }
        EXPECT_EQ(merged[n * kIn + k], static_cast<float>(want)) << n << ", " << k;
      }
    }
  }
}

}  // namespace
}  // namespace weft
