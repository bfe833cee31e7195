// Quantised rows as codes: what they stand for is what DequantiseRow gives, and a model that keeps
// them says the same.
#include "language/weight_codes.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

#include "base/random.h"
#include "language/language_head.h"
#include "language/language_model.h"
#include "language/weight_blocks.h"
#include "tests/language/reference_files.h"

namespace weft {
namespace {

class Codes : public testing::TestWithParam<WeightType> {
 protected:
  // Any bits are valid codes; scales (whose places depend on the type) must be finite halves.
  std::vector<uint8_t> Blocks(int64_t count) const {
    const WeightTypeInfo& info = Info(GetParam());
    std::vector<uint8_t> bytes(static_cast<size_t>(count * info.block_bytes));
    Rng rng(1, Purpose::kInitialise, static_cast<uint64_t>(info.ggml));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng.Below(256));
    for (int64_t b = 0; b < count; ++b) {
      for (const int64_t at : Halves()) bytes[b * info.block_bytes + at + 1] &= 0xbb;
    }
    return bytes;
  }
  std::vector<int64_t> Halves() const {
    switch (GetParam()) {
      case WeightType::kQ2_K:
        return {80, 82};
      case WeightType::kQ3_K:
        return {108};
      case WeightType::kQ6_K:
        return {208};
      case WeightType::kQ4_0:
      case WeightType::kQ5_0:
      case WeightType::kQ8_0:
        return {0};
      default:
        return {0, 2};
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Types, Codes,
                         testing::Values(WeightType::kQ4_0, WeightType::kQ4_1, WeightType::kQ5_0,
                                         WeightType::kQ5_1, WeightType::kQ8_0, WeightType::kQ2_K,
                                         WeightType::kQ3_K, WeightType::kQ4_K, WeightType::kQ5_K,
                                         WeightType::kQ6_K),
                         [](const auto& type) { return std::string(Info(type.param).name); });

TEST_P(Codes, StandForTheWeightsThatDequantisingGives) {
  constexpr int64_t kBlocks = 20;
  const std::vector<uint8_t> bytes = Blocks(kBlocks);
  const int64_t elements = kBlocks * Info(GetParam()).block;
  std::vector<float> want(static_cast<size_t>(elements));
  DequantiseRow(GetParam(), bytes.data(), elements, want.data());
  CodedRow row(elements);
  ASSERT_TRUE(ReadCodes(GetParam(), bytes.data(), row));
  const kernels::CodeForm form = *CodeFormOf(GetParam());
  for (int64_t i = 0; i < elements; ++i) {
    const int code = row.codes[i];
    EXPECT_GE(code, form.bits == 4 ? 0 : -128);
    EXPECT_LE(code, form.bits == 4 ? 15 : 127);
    const float scale = HalfToFloat(row.scales[i / 32]) * row.factors[i / 16];
    const float offset = HalfToFloat(row.offsets[i / 32]) * row.offset_factors[i / 16];
    ASSERT_EQ(std::fma(scale, static_cast<float>(code), offset), want[i]) << i;
    if (form.runs) continue;
    ASSERT_EQ(row.factors[i / 16], 1);
    ASSERT_EQ(row.offset_factors[i / 16], 1);
  }
}

TEST_P(Codes, OfAScaleThatIsNotFiniteAreRefused) {
  std::vector<uint8_t> bytes = Blocks(2);
  const int64_t at = Info(GetParam()).block_bytes + Halves()[0];
  bytes[at] = 0;
  bytes[at + 1] = 0x7c;  // infinite
  CodedRow row(2 * Info(GetParam()).block);
  EXPECT_FALSE(ReadCodes(GetParam(), bytes.data(), row));
}

// The first nine positions' logits.
Tensor LogitsOf(const ModelFile& file, const LoadOptions& options, int64_t* taken = nullptr) {
  std::vector<int32_t> ids, positions;
  for (int32_t i = 0; i < 9; ++i) {
    ids.push_back((7 * i + 3) % static_cast<int32_t>(file.config().vocabulary));
    positions.push_back(i);
  }
  const std::vector<kernels::AttentionSpan> spans = {{.first_row = 0, .rows = 9, .past = 0}};
  const int64_t before = TensorAllocator().bytes_in_use;
  const auto model = LoadTransformer({}, file, options);
  if (taken != nullptr) *taken = TensorAllocator().bytes_in_use - before;
  return Logits({}, *model,
                model->Forward({}, {.ids = ids, .positions = positions, .spans = spans}, nullptr));
}

TEST(QuantisedModels, SayWhatTheirWeightsInBf16Say) {
  for (const char* name : {"llama_kquant-q4_k_m", "llama_gqa_untied-q4_1", "qwen2-q5_1"}) {
    const std::string path = ReferencePath("language/gguf/" + std::string(name) + ".gguf");
    if (path.empty()) GTEST_SKIP() << "WEFT_REFERENCE is unset: no quantised models";
    const auto file = ModelFile::Open(path);
    int64_t taken[2];
    Tensor logits[2];
    for (const bool kept : {false, true}) {
      logits[kept] = LogitsOf(*file, {.keep_quantised = kept}, &taken[kept]);
    }
    EXPECT_EQ(std::memcmp(logits[0].raw(), logits[1].raw(), logits[0].bytes()), 0) << name;
    EXPECT_LT(static_cast<double>(taken[1]), 0.85 * static_cast<double>(taken[0])) << name;
  }
}

// Near what they say in bf16, and not the same.
TEST(QuantisedModels, MayRoundWhatTheyMultiply) {
  for (const char* name : {"llama_kquant-q4_k_m", "llama_gqa_untied-q4_1", "qwen2-q5_1"}) {
    const std::string path = ReferencePath("language/gguf/" + std::string(name) + ".gguf");
    if (path.empty()) GTEST_SKIP() << "WEFT_REFERENCE is unset: no quantised models";
    const auto file = ModelFile::Open(path);
    const Tensor exact = LogitsOf(*file, {}), rounded = LogitsOf(*file, {.round_rows = true});
    double squares = 0, errors = 0;
    for (int64_t i = 0; i < exact.elements(); ++i) {
      const double value = exact.data<float>()[i], error = rounded.data<float>()[i] - value;
      squares += value * value;
      errors += error * error;
    }
    EXPECT_GT(errors, 0) << name;
    EXPECT_LT(errors, 4e-3 * squares) << name;
  }
}

}  // namespace
}  // namespace weft
