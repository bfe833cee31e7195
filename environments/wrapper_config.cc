#include "environments/wrapper_config.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace weft {
namespace {

using Batch = std::unique_ptr<BatchEnvironment>;

struct Kind {
  const char* name;
  void (*fields)(WrapperConfig& config, FieldVisitor& visitor);
  Batch (*wrap)(Batch batch, const WrapperConfig& config, const BatchOptions& options);
};

void NoFields(WrapperConfig&, FieldVisitor&) {}

void BoundFields(WrapperConfig& config, FieldVisitor& visitor) {
  visitor.Field("low", config.low, "lower bound");
  visitor.Field("high", config.high, "upper bound");
}

void SizeFields(WrapperConfig& config, FieldVisitor& visitor) {
  visitor.Field("width", config.width, "of the picture that is observed", Range::Between(1, 4096));
  visitor.Field("height", config.height, "of the picture that is observed",
                Range::Between(1, 4096));
}

constexpr Kind kKinds[] = {
    {"action_repeat",
     [](WrapperConfig& config, FieldVisitor& visitor) {
       visitor.Field("count", config.count, "steps that one action is held for",
                     Range::Between(1, 1024));
     },
     // The batch itself holds the action.
     [](Batch batch, const WrapperConfig&, const BatchOptions&) { return batch; }},
    {"agent_id", NoFields,
     [](Batch batch, const WrapperConfig&, const BatchOptions&) {
       return AgentId(std::move(batch));
     }},
    {"clip_action", NoFields,
     [](Batch batch, const WrapperConfig&, const BatchOptions&) {
       return ClipAction(std::move(batch));
     }},
    {"clip_observation", BoundFields,
     [](Batch batch, const WrapperConfig& config, const BatchOptions&) {
       return ClipObservation(std::move(batch), config.low, config.high);
     }},
    {"clip_reward", BoundFields,
     [](Batch batch, const WrapperConfig& config, const BatchOptions&) {
       return ClipReward(std::move(batch), config.low, config.high);
     }},
    {"flatten", NoFields,
     [](Batch batch, const WrapperConfig&, const BatchOptions&) {
       return Flatten(std::move(batch));
     }},
    {"frame_stack",
     [](WrapperConfig& config, FieldVisitor& visitor) {
       visitor.Field("count", config.count, "observations that are stacked, the oldest first",
                     Range::Between(1, 1024));
     },
     [](Batch batch, const WrapperConfig& config, const BatchOptions&) {
       return FrameStack(std::move(batch), config.count);
     }},
    {"grayscale", NoFields,
     [](Batch batch, const WrapperConfig&, const BatchOptions& options) {
       return Grayscale(std::move(batch), options.pool);
     }},
    {"pixels",
     [](WrapperConfig& config, FieldVisitor& visitor) {
       SizeFields(config, visitor);
       visitor.Field("camera", config.camera,
                     "name or number of one of the model's; empty: the usual one");
       visitor.Field("keep_state", config.keep_state, "observe what there was before, too");
     },
     [](Batch batch, const WrapperConfig& config, const BatchOptions& options) {
       return ObservePixels(std::move(batch), {.width = config.width,
                                               .height = config.height,
                                               .camera = config.camera,
                                               .keep_state = config.keep_state,
                                               .pool = options.pool});
     }},
    {"resize", SizeFields,
     [](Batch batch, const WrapperConfig& config, const BatchOptions& options) {
       return Resize(std::move(batch), config.width, config.height, options.pool);
     }},
    {"reward_shaping",
     [](WrapperConfig& config, FieldVisitor& visitor) {
       visitor.Field("scale", config.shaping.scale, "factor of a reward");
       visitor.Field("shift", config.shaping.shift, "added to a reward");
       visitor.Field("potential", config.shaping.potential,
                     "weights of the observation's elements: what the potential gains is added");
       visitor.Field("gamma", config.shaping.gamma,
                     "discount of the potential, the algorithm's own", Range::Between(0, 1));
     },
     [](Batch batch, const WrapperConfig& config, const BatchOptions&) {
       return ShapeReward(std::move(batch), config.shaping);
     }},
    {"scale_action", NoFields,
     [](Batch batch, const WrapperConfig&, const BatchOptions&) {
       return ScaleAction(std::move(batch));
     }},
    {"share_reward",
     [](WrapperConfig& config, FieldVisitor& visitor) {
       visitor.Choice("share", config.share, {"mean", "sum"},
                      "what of the team's rewards each gets");
     },
     [](Batch batch, const WrapperConfig& config, const BatchOptions&) {
       return ShareReward(std::move(batch), config.share == "mean");
     }},
    {"sticky_actions",
     [](WrapperConfig& config, FieldVisitor& visitor) {
       visitor.Field("probability", config.probability, "that the last action is carried out again",
                     Range::Between(0, 0.999));
     },
     [](Batch batch, const WrapperConfig& config, const BatchOptions& options) {
       return StickyActions(std::move(batch), config.probability, options);
     }},
};

const Kind& KindOf(const std::string& name) {
  const auto* const kind =
      std::ranges::find_if(kKinds, [&](const Kind& of) { return name == of.name; });
  if (kind != std::end(kKinds)) return *kind;
  std::vector<std::string> names;
  for (const Kind& of : kKinds) names.emplace_back(of.name);
  throw Error(ErrorCode::kConfig,
              "there is no wrapper \"" + name + "\"; there are " + Join(names, ", "));
}

}  // namespace

WrapperConfig::WrapperConfig(const std::string& wrapper_name) : name(KindOf(wrapper_name).name) {
  if (name == "clip_observation") {
    low = -10;
    high = 10;
  }
}

void WrapperConfig::Fields(FieldVisitor& visitor) {
  KindOf(name).fields(*this, visitor);
}

void WrapperConfig::Check() const {
  if (!(low < high)) throw ConfigProblem("high", "must be above low");
}

std::unique_ptr<BatchEnvironment> WrapperConfig::Wrap(std::unique_ptr<BatchEnvironment> batch,
                                                      const BatchOptions& options) const {
  return KindOf(name).wrap(std::move(batch), *this, options);
}

}  // namespace weft
