#include "language/weight_type.h"

#include <algorithm>
#include <array>

namespace weft {
namespace {

// Numbers and sizes: ggml-common.h and gguf-py's GGML_QUANT_SIZES of llama.cpp.
constexpr std::array<WeightTypeInfo, 13> kTypes = {{
    {WeightType::kF32, "F32", 0, 1, 4, true},
    {WeightType::kF16, "F16", 1, 1, 2, true},
    {WeightType::kBF16, "BF16", 30, 1, 2, true},
    {WeightType::kQ4_0, "Q4_0", 2, 32, 18, true},
    {WeightType::kQ4_1, "Q4_1", 3, 32, 20, true},
    {WeightType::kQ5_0, "Q5_0", 6, 32, 22, true},
    {WeightType::kQ5_1, "Q5_1", 7, 32, 24, true},
    {WeightType::kQ8_0, "Q8_0", 8, 32, 34, true},
    {WeightType::kQ2_K, "Q2_K", 10, 256, 84, false},
    {WeightType::kQ3_K, "Q3_K", 11, 256, 110, false},
    {WeightType::kQ4_K, "Q4_K", 12, 256, 144, false},
    {WeightType::kQ5_K, "Q5_K", 13, 256, 176, false},
    {WeightType::kQ6_K, "Q6_K", 14, 256, 210, false},
}};

char Upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

}  // namespace

const WeightTypeInfo& Info(WeightType type) {
  return kTypes[static_cast<size_t>(type)];
}

const WeightTypeInfo* FindGgmlType(uint32_t ggml) {
  const auto found =
      std::ranges::find_if(kTypes, [&](const auto& info) { return info.ggml == ggml; });
  return found == kTypes.end() ? nullptr : &*found;
}

const WeightTypeInfo* FindWeightType(std::string_view name) {
  const auto found = std::ranges::find_if(
      kTypes, [&](const auto& info) { return std::ranges::equal(info.name, name, {}, {}, Upper); });
  return found == kTypes.end() ? nullptr : &*found;
}

int64_t RowBytes(WeightType type, int64_t elements) {
  const WeightTypeInfo& info = Info(type);
  return elements / info.block * info.block_bytes;
}

}  // namespace weft
