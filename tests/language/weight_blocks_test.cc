#include "language/weight_blocks.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "language/gguf.h"
#include "tests/nn/reference.h"

namespace weft {
namespace {

TEST(Half, ConvertsEveryValueBackToItself) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = HalfToFloat(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(value)))) << bits;
    } else {
      EXPECT_EQ(FloatToHalf(value), half) << value;
    }
  }
  EXPECT_EQ(HalfToFloat(0x3C00), 1.0f);
  EXPECT_EQ(HalfToFloat(0x0001), 0x1p-24f);
  EXPECT_EQ(HalfToFloat(0x7BFF), 65504.0f);
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(FloatToHalf(1.0f + 0x1p-11f), 0x3C00);      // a tie, down to even
  EXPECT_EQ(FloatToHalf(1.0f + 3 * 0x1p-11f), 0x3C02);  // a tie, up to even
  EXPECT_EQ(FloatToHalf(std::nextafter(1.0f + 0x1p-11f, 2.0f)), 0x3C01);
  EXPECT_EQ(FloatToHalf(0x1p-25f), 0x0000);  // half of the least, to even
  EXPECT_EQ(FloatToHalf(std::nextafter(0x1p-25f, 1.0f)), 0x0001);
  EXPECT_EQ(FloatToHalf(65519.99f), 0x7BFF);
  EXPECT_EQ(FloatToHalf(-65520.0f), 0xFC00);
}

// d = 0.5, the values 0 to 31 written by hand.
TEST(WeightBlocks, ReadsABlockWrittenByHand) {
  std::vector<uint8_t> q4_1 = {0x00, 0x38, 0x00, 0xC0};  // d 0.5, m -2
  std::vector<uint8_t> q5_0 = {0x00, 0x38, 0x00, 0x00, 0xFF, 0xFF};
  for (int i = 0; i < 16; ++i) {
    q4_1.push_back(static_cast<uint8_t>(i | (15 - i) << 4));
    q5_0.push_back(static_cast<uint8_t>(i | i << 4));
  }
  std::vector<float> out(32);
  DequantiseRow(WeightType::kQ4_1, q4_1.data(), 32, out.data());
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(out[i], 0.5f * static_cast<float>(i) - 2);
    EXPECT_EQ(out[16 + i], 0.5f * static_cast<float>(15 - i) - 2);
  }
  DequantiseRow(WeightType::kQ5_0, q5_0.data(), 32, out.data());
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[i], 0.5f * static_cast<float>(i - 16));
}

TEST(WeightBlocks, ErrorIsAtMostHalfALevel) {
  Rng rng(Rng::State{7, 0, 0});
  std::vector<float> in(320), out(320);
  for (float& value : in) value = static_cast<float>(rng.Normal());
  struct Case {
    WeightType type;
    double levels;  // of the range from the least to the greatest value, or of twice the largest
    bool symmetric;
  };
  for (const Case& c : {Case{WeightType::kQ4_1, 15, false}, Case{WeightType::kQ5_1, 31, false},
                        Case{WeightType::kQ8_0, 254, true}}) {
    std::vector<uint8_t> blocks(RowBytes(c.type, 320));
    QuantiseRow(c.type, in.data(), 320, blocks.data());
    DequantiseRow(c.type, blocks.data(), 320, out.data());
    for (int b = 0; b < 10; ++b) {
      double least = 1e9, greatest = -1e9, largest = 0;
      for (int i = 32 * b; i < 32 * b + 32; ++i) {
        least = std::min<double>(least, in[i]);
        greatest = std::max<double>(greatest, in[i]);
        largest = std::max<double>(largest, std::abs(in[i]));
      }
      const double step = (c.symmetric ? 2 * largest : greatest - least) / c.levels;
      // The scale and the minimum are halves: 2^-11 of their size more.
      const double bound = step / 2 + 0x1p-11 * (std::abs(least) + 2 * largest);
      for (int i = 32 * b; i < 32 * b + 32; ++i) {
        EXPECT_LE(std::abs(out[i] - in[i]), bound) << Info(c.type).name << " element " << i;
      }
    }
  }
}

TEST(WeightBlocks, RefusesToWriteKQuants) {
  const std::vector<float> in(256);
  std::vector<uint8_t> out(256);
  EXPECT_THROW(QuantiseRow(WeightType::kQ4_K, in.data(), 256, out.data()), Error);
}

// Rows of a tensor as f32.
std::vector<float> Dequantised(const GgufTensor& tensor, int64_t rows) {
  const int64_t columns = tensor.shape.back();
  std::vector<float> out(static_cast<size_t>(rows * columns));
  const int64_t row_bytes = RowBytes(tensor.type, columns);
  for (int64_t row = 0; row < rows; ++row) {
    DequantiseRow(tensor.type, tensor.bytes.data() + row * row_bytes, columns,
                  out.data() + row * columns);
  }
  return out;
}

TEST(WeightBlocks, EqualTheReferenceBitForBit) {
  WEFT_REQUIRE_REFERENCE();
  const std::string folder = ReferencePath("language/gguf/");
  int compared = 0;
  for (const std::string& name : ListDirectory(folder)) {
    if (!name.ends_with(".gguf") ||
        !FileExists(folder + name.substr(0, name.size() - 5) + ".expected.safetensors")) {
      continue;
    }
    const GgufFile file(folder + name);
    const TensorMap expected =
        ReadSafetensors(folder + name.substr(0, name.size() - 5) + ".expected.safetensors");
    for (const GgufTensor& tensor : file.tensors()) {
      const Tensor* reference = expected.Find("dequantised." + tensor.name);
      if (!reference) continue;
      const int64_t rows = reference->elements() / tensor.shape.back();  // some hold two rows only
      const std::vector<float> values = Dequantised(tensor, rows);
      const auto wanted = reference->data<float>();
      ASSERT_EQ(values.size(), wanted.size()) << name << " " << tensor.name;
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), std::bit_cast<uint32_t>(wanted[i]))
            << name << " " << tensor.name << " element " << i;
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, 300);
}

TEST(WeightBlocks, QuantiseAsTheReferenceBitForBit) {
  WEFT_REQUIRE_REFERENCE();
  const GgufFile file(ReferencePath("language/gguf/blocks.gguf"));
  const TensorMap expected =
      ReadSafetensors(ReferencePath("language/gguf/blocks.expected.safetensors"));
  for (const char* type : {"q4_0", "q4_1", "q5_0", "q5_1", "q8_0"}) {
    const GgufTensor* tensor = file.FindTensor(std::string("edge.") + type);
    const Tensor* source = expected.Find(std::string("edge_source.") + type);
    ASSERT_TRUE(tensor && source) << type;
    std::vector<uint8_t> blocks(tensor->bytes.size());
    QuantiseRow(tensor->type, source->data<float>().data(), source->elements(), blocks.data());
    EXPECT_TRUE(std::ranges::equal(blocks, tensor->bytes)) << type;
  }
}

}  // namespace
}  // namespace weft
