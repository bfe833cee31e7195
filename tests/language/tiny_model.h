// A transformer of a few thousand weights, the same every time.
#pragma once

#include <cmath>
#include <memory>

#include "language/transformer.h"
#include "tests/tensor/kernels_testing.h"

namespace weft {

inline ModelConfig TinyConfig() {
  ModelConfig config;
  config.family = "llama";
  config.vocabulary = 60;
  config.hidden = 32;
  config.layers = 2;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dimension = 8;
  config.intermediate = 48;
  config.context = 256;
  config.tied = true;
  config.rope.rotary_dimensions = 8;
  for (int i = 0; i < 4; ++i) {
    config.rope.inverse_frequencies.push_back(std::pow(100.0f, -static_cast<float>(i) / 4));
  }
  return config;
}

inline std::unique_ptr<Transformer> MakeTiny(const ModelConfig& config,
                                             Precision precision = Precision::kFloat32) {
  auto model = std::make_unique<Transformer>(config, precision);
  Numbers numbers(3);
  for (const Transformer::WeightSlot& slot : model->Weights()) {
    auto values = numbers.Vector(slot.rows * slot.columns, 0.4f);
    if (slot.columns == 1 && slot.name.ends_with(".weight")) {
      for (float& value : values) value += 1;
    }
    slot.set(0, values);
  }
  model->Refresh({});
  return model;
}

}  // namespace weft
