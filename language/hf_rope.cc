#include "language/hf_rope.h"

#include <cmath>

#include "language/model_family.h"

namespace weft {
namespace {

double Positive(JsonKeys& keys, std::string_view key, std::optional<double> fallback = {}) {
  const auto value = keys.Number(key);
  if (!value && !fallback) keys.Fail(key, "is missing");
  const double number = value ? *value : *fallback;
  if (!(number > 0)) keys.Fail(key, "must be above 0");
  return number;
}

double Factor(JsonKeys& keys) {
  const double factor = Positive(keys, "factor");
  if (factor < 1) keys.Fail("factor", "must be at least 1");
  return factor;
}

std::optional<double> OptionalPositive(JsonKeys& keys, std::string_view key) {
  if (!keys.Has(key)) return std::nullopt;
  return Positive(keys, key);
}

void ReadLlama3(JsonKeys& keys, RopeSettings& rope) {
  rope.kind = RopeKind::kLlama3;
  rope.factor = Factor(keys);
  rope.low_frequency_factor = Positive(keys, "low_freq_factor");
  rope.high_frequency_factor = Positive(keys, "high_freq_factor");
  if (rope.high_frequency_factor <= rope.low_frequency_factor) {
    keys.Fail("high_freq_factor", "must be above low_freq_factor");
  }
  rope.original_context = keys.RequiredInteger("original_max_position_embeddings", 1, kMaxContext);
}

void ReadYarn(JsonKeys& keys, int64_t context, RopeSettings& rope) {
  rope.kind = RopeKind::kYarn;
  rope.factor = Factor(keys);
  rope.original_context =
      keys.Integer("original_max_position_embeddings", 1, kMaxContext).value_or(context);
  rope.beta_fast = Positive(keys, "beta_fast", 32);
  rope.beta_slow = Positive(keys, "beta_slow", 1);
  rope.truncate = keys.Bool("truncate").value_or(true);
  rope.attention_factor = OptionalPositive(keys, "attention_factor");
  rope.mscale = keys.Number("mscale");
  rope.mscale_all_dimensions = keys.Number("mscale_all_dim");
  if (!(rope.theta > 1)) keys.Fail("rope_theta", "must be above 1 for yarn");
}

// Two lists of divisors, for contexts up to the original one and beyond: one model only when they
// are equal, or when the context never goes beyond.
void ReadLongrope(JsonKeys& keys, std::optional<int64_t> original, int64_t context, size_t count,
                  RopeSettings& rope) {
  rope.kind = RopeKind::kFactors;
  const auto inside = keys.Integer("original_max_position_embeddings", 1, kMaxContext);
  const int64_t trained = inside.value_or(original.value_or(context));
  const std::vector<float> longer = keys.Floats("long_factor");
  rope.factors = keys.Floats("short_factor");
  for (const char* key : {"short_factor", "long_factor"}) {
    const auto& list = key[0] == 's' ? rope.factors : longer;
    if (list.size() != count) {
      keys.Fail(key, "must have " + std::to_string(count) + " numbers, not " +
                         std::to_string(list.size()));
    }
    for (const float value : list) {
      if (!(value > 0) || !std::isfinite(value))
        keys.Fail(key, "holds a number that is not above 0");
    }
  }
  if (context > trained && rope.factors != longer) {
    keys.Refuse("long_factor",
                "differs from short_factor, so frequencies depend on the length of "
                "the text beyond " +
                    std::to_string(trained) + " tokens, which weft does not do");
  }
  rope.attention_factor = OptionalPositive(keys, "attention_factor");
  if (!rope.attention_factor) {
    const double given = keys.Number("factor").value_or(0);
    const double factor =
        given > 0 ? given : static_cast<double>(context) / static_cast<double>(trained);
    rope.attention_factor =
        factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(trained)));
  }
}

}  // namespace

void ReadHfRope(JsonKeys& keys, double default_theta, double rotary_fraction,
                ModelDescription& description) {
  RopeSettings& rope = description.rope;
  ModelConfig& config = description.config;
  const JsonValue* parameters = keys.Find("rope_parameters");
  const JsonValue* scaling = keys.Find("rope_scaling");
  if (parameters && scaling) keys.Refuse("rope_scaling", "stands beside rope_parameters");
  static const JsonValue kNothing = JsonValue::MakeObject();
  JsonKeys inner(parameters ? *parameters
                 : scaling  ? *scaling
                            : kNothing,
                 keys.file(), parameters ? "rope_parameters." : "rope_scaling.");

  const auto outer_theta = OptionalPositive(keys, "rope_theta");
  const auto inner_theta = OptionalPositive(inner, "rope_theta");
  if (outer_theta && inner_theta && *outer_theta != *inner_theta) {
    inner.Fail("rope_theta", "differs from the one outside");
  }
  rope.theta = inner_theta.value_or(outer_theta.value_or(default_theta));

  const auto outer_fraction = keys.Number("partial_rotary_factor");
  const double fraction =
      inner.Number("partial_rotary_factor").value_or(outer_fraction.value_or(rotary_fraction));
  if (!(fraction > 0) || fraction > 1) {
    keys.Fail("partial_rotary_factor", "must be above 0 and at most 1");
  }
  config.rope.rotary_dimensions =
      static_cast<int64_t>(static_cast<double>(config.head_dimension) * fraction);
  const auto original = keys.Integer("original_max_position_embeddings", 1, kMaxContext);

  auto type = inner.String("rope_type");
  const auto old_type = inner.String("type");
  if (type && old_type && *type != *old_type && *old_type != "su") {
    inner.Fail("type", "differs from rope_type");
  }
  if (!type) type = old_type.value_or("default");
  CheckModelSizes(config, keys.file());
  const auto frequencies = static_cast<size_t>(config.rope.rotary_dimensions / 2);
  if (*type == "linear") {
    rope.kind = RopeKind::kLinear;
    rope.factor = Factor(inner);
  } else if (*type == "llama3") {
    ReadLlama3(inner, rope);
  } else if (*type == "yarn") {
    ReadYarn(inner, config.context, rope);
  } else if (*type == "longrope" || *type == "su") {
    ReadLongrope(inner, original, config.context, frequencies, rope);
  } else if (*type != "default") {
    inner.Refuse("rope_type", "\"" + *type +
                                  "\" is not supported; weft has default, linear, llama3, "
                                  "yarn and longrope with equal lists");
  }
  // What other kinds use is harmless, but a number nobody read may have been meant.
  for (const char* known : {"finetuned", "original_max_position_embeddings", "attention_factor"}) {
    inner.Find(known);
  }
  for (const std::string& key : inner.Unread()) {
    inner.Refuse(key, "has no meaning for rope_type \"" + *type + "\"");
  }
  config.rope = MakeRope(rope, config.rope.rotary_dimensions);
}

void SetHfRope(const ModelDescription& description, JsonValue& config) {
  const RopeSettings& rope = description.rope;
  const ModelConfig& sizes = description.config;
  config.Set("rope_theta", JsonValue(rope.theta));
  JsonValue scaling;
  const auto begin = [&](const char* type) {
    scaling = JsonValue::MakeObject();
    scaling.Set("rope_type", JsonValue(type));
  };
  const auto set_optional = [&](const char* key, const std::optional<double>& number) {
    if (number) scaling.Set(key, JsonValue(*number));
  };
  switch (rope.kind) {
    case RopeKind::kDefault:
      break;
    case RopeKind::kLinear:
      begin("linear");
      scaling.Set("factor", JsonValue(rope.factor));
      break;
    case RopeKind::kLlama3:
      begin("llama3");
      scaling.Set("factor", JsonValue(rope.factor));
      scaling.Set("low_freq_factor", JsonValue(rope.low_frequency_factor));
      scaling.Set("high_freq_factor", JsonValue(rope.high_frequency_factor));
      scaling.Set("original_max_position_embeddings", JsonValue(rope.original_context));
      break;
    case RopeKind::kYarn:
      begin("yarn");
      scaling.Set("factor", JsonValue(rope.factor));
      scaling.Set("original_max_position_embeddings", JsonValue(rope.original_context));
      scaling.Set("beta_fast", JsonValue(rope.beta_fast));
      scaling.Set("beta_slow", JsonValue(rope.beta_slow));
      if (!rope.truncate) scaling.Set("truncate", JsonValue(false));
      set_optional("attention_factor", rope.attention_factor);
      set_optional("mscale", rope.mscale);
      set_optional("mscale_all_dim", rope.mscale_all_dimensions);
      break;
    case RopeKind::kFactors: {
      begin("longrope");
      std::vector<JsonValue> factors;
      for (const float factor : rope.factors) factors.emplace_back(factor);
      scaling.Set("short_factor", JsonValue::MakeArray(factors));
      scaling.Set("long_factor", JsonValue::MakeArray(factors));
      scaling.Set("attention_factor", JsonValue(rope.attention_factor.value_or(1)));
      scaling.Set("original_max_position_embeddings", JsonValue(sizes.context));
      break;
    }
  }
  config.Set("rope_scaling", std::move(scaling));
}

}  // namespace weft
