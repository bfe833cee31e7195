#include "language/gguf_rope.h"

#include <cmath>
#include <cstring>

#include "base/check.h"
#include "language/gguf_keys.h"
#include "language/hf_rope.h"
#include "language/model_family.h"

namespace weft {
namespace {

// rope_theta and rope_scaling as config.json has them, for what GGUF's own keys do not tell.
constexpr std::string_view kScalingKey = "weft.rope";
constexpr std::string_view kDivisors = "rope_freqs.weight";

std::vector<float> ReadDivisors(const GgufFile& file, int64_t count) {
  const GgufTensor* tensor = file.FindTensor(kDivisors);
  if (!tensor) return {};
  if (tensor->type != WeightType::kF32 || tensor->shape != std::vector<int64_t>{count}) {
    throw Error(ErrorCode::kCorrupt, file.name() + ": tensor " + std::string(kDivisors) +
                                         " must be F32 [" + std::to_string(count) + "]");
  }
  std::vector<float> divisors(static_cast<size_t>(count));
  if (count > 0) std::memcpy(divisors.data(), tensor->bytes.data(), tensor->bytes.size());
  for (const float divisor : divisors) {
    if (!(divisor > 0) || !std::isfinite(divisor)) {
      throw Error(ErrorCode::kCorrupt, file.name() + ": tensor " + std::string(kDivisors) +
                                           " holds a number that is not above 0");
    }
  }
  return divisors;
}

bool Equal(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::abs(a[i] - b[i]) > 1e-5f * b[i]) return false;
  }
  return true;
}

// Llama 3.1 and 3.2 themselves, whose GGUFs have nothing but the divisors.
bool FindLlama3(const std::vector<float>& divisors, int64_t dimensions, RopeSettings& rope) {
  for (const double factor : {8.0, 32.0}) {
    RopeSettings candidate;
    candidate.kind = RopeKind::kLlama3;
    candidate.theta = rope.theta;
    candidate.factor = factor;
    candidate.original_context = 8192;
    if (!Equal(Llama3Divisors(candidate, dimensions), divisors)) continue;
    rope = candidate;
    return true;
  }
  return false;
}

}  // namespace

void ReadGgufRope(const GgufFile& file, const std::string& prefix, ModelDescription& description) {
  const GgufKeys keys(file);
  ModelConfig& config = description.config;
  RopeSettings& rope = description.rope;
  const auto positive = [&](const char* name) {
    const auto value = keys.Number(prefix + name);
    if (value && !(*value > 0)) keys.Fail(prefix + name, "must be above 0");
    return value;
  };
  config.rope.rotary_dimensions =
      keys.Integer(prefix + "rope.dimension_count", 1, kMaxHidden).value_or(config.head_dimension);
  CheckModelSizes(config, file.name());
  rope.theta = positive("rope.freq_base").value_or(10000);
  const std::vector<float> divisors = ReadDivisors(file, config.rope.rotary_dimensions / 2);

  // What weft wrote says it all, as long as base and divisors are still those that it gives.
  if (const auto text = keys.String(kScalingKey)) {
    const std::string name = file.name() + ": " + std::string(kScalingKey);
    const JsonValue scaling = ParseJson(*text, name);
    JsonKeys inner(scaling, name);
    ModelDescription exact;
    exact.config = config;
    ReadHfRope(inner, rope.theta,
               static_cast<double>(config.rope.rotary_dimensions) /
                   static_cast<double>(config.head_dimension),
               exact);
    const bool same_base = static_cast<float>(exact.rope.theta) == static_cast<float>(rope.theta);
    if (same_base && (exact.rope.kind != RopeKind::kLlama3 ||
                      Equal(Llama3Divisors(exact.rope, config.rope.rotary_dimensions), divisors))) {
      rope = exact.rope;
      config.rope = MakeRope(rope, config.rope.rotary_dimensions);
      return;
    }
  }

  const std::string type = keys.String(prefix + "rope.scaling.type").value_or("none");
  const auto attention = positive("rope.scaling.attn_factor");
  const auto factor = positive("rope.scaling.factor");
  const auto old_factor = positive("rope.scale_linear");
  if (type == "yarn") {
    rope.kind = RopeKind::kYarn;
    rope.factor = factor.value_or(1);
    rope.original_context =
        keys.Integer(prefix + "rope.scaling.original_context_length", 1, kMaxContext)
            .value_or(config.context);
    rope.beta_fast = positive("rope.scaling.yarn_beta_fast").value_or(32);
    rope.beta_slow = positive("rope.scaling.yarn_beta_slow").value_or(1);
    if (attention && *attention != 1) {  // beside the factor that yarn itself gives
      rope.attention_factor = *attention * (rope.factor <= 1 ? 1 : 0.1 * std::log(rope.factor) + 1);
    }
    if (!divisors.empty() || !(rope.theta > 1)) {
      keys.Fail(prefix + "rope.scaling.type",
                "is yarn, which does not fit the other rope settings");
    }
  } else if (type == "linear" || (type == "none" && old_factor)) {
    rope.kind = RopeKind::kLinear;
    rope.factor = factor.value_or(old_factor.value_or(1));
    if (!divisors.empty() || (attention && *attention != 1)) {
      keys.Fail(prefix + "rope.scaling.type", "is linear, beside other scaling");
    }
  } else if (type != "none" && type != "longrope") {
    throw Error(ErrorCode::kInvalidArgument, file.name() + ": " + prefix + "rope.scaling.type: \"" +
                                                 type.substr(0, 40) + "\" is not supported");
  } else if (!divisors.empty() || (attention && *attention != 1)) {
    const bool llama3 = !attention && FindLlama3(divisors, config.rope.rotary_dimensions, rope);
    if (!llama3) {
      rope.kind = RopeKind::kFactors;
      rope.factors = divisors;
      rope.attention_factor = attention.value_or(1);
      if (divisors.empty()) {
        rope.factors.assign(static_cast<size_t>(config.rope.rotary_dimensions / 2), 1.0f);
      }
    }
  }
  config.rope = MakeRope(rope, config.rope.rotary_dimensions);
}

void SetGgufRope(const ModelDescription& description, const std::string& prefix,
                 GgufWriter& writer) {
  const RopeSettings& rope = description.rope;
  const int64_t dimensions = description.config.rope.rotary_dimensions;
  writer.SetU32(prefix + "rope.dimension_count", dimensions);
  writer.SetF32(prefix + "rope.freq_base", rope.theta);
  std::vector<float> divisors;
  switch (rope.kind) {
    case RopeKind::kDefault:
      if (static_cast<double>(static_cast<float>(rope.theta)) == rope.theta) return;
      break;
    case RopeKind::kLinear:
      writer.SetString(prefix + "rope.scaling.type", "linear");
      writer.SetF32(prefix + "rope.scaling.factor", rope.factor);
      break;
    case RopeKind::kYarn: {
      writer.SetString(prefix + "rope.scaling.type", "yarn");
      writer.SetF32(prefix + "rope.scaling.factor", rope.factor);
      writer.SetU32(prefix + "rope.scaling.original_context_length", rope.original_context);
      writer.SetF32(prefix + "rope.scaling.yarn_beta_fast", rope.beta_fast);
      writer.SetF32(prefix + "rope.scaling.yarn_beta_slow", rope.beta_slow);
      const double own = rope.factor <= 1 ? 1 : 0.1 * std::log(rope.factor) + 1;
      const double attention = static_cast<double>(description.config.rope.attention_factor) / own;
      if (std::abs(attention - 1) > 1e-6) {
        writer.SetF32(prefix + "rope.scaling.attn_factor", attention);
      }
      break;
    }
    case RopeKind::kLlama3:
      divisors = Llama3Divisors(rope, dimensions);
      break;
    case RopeKind::kFactors:
      divisors = rope.factors;
      if (rope.attention_factor.value_or(1) != 1) {
        writer.SetF32(prefix + "rope.scaling.attn_factor", *rope.attention_factor);
      }
      break;
  }
  JsonValue spelled = JsonValue::MakeObject();
  SetHfRope(description, spelled);
  writer.SetString(kScalingKey, spelled.ToText());
  if (divisors.empty()) return;
  const auto count = static_cast<int64_t>(divisors.size());
  writer.AddTensor(std::string(kDivisors), {count}, WeightType::kF32,
                   [divisors = std::move(divisors)](std::span<uint8_t> out) {
                     std::memcpy(out.data(), divisors.data(), out.size());
                   });
}

}  // namespace weft
