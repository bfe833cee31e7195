// Rewrites of a list of gradient steps that change no value.
#pragma once

#include <vector>

#include "tensor/gradient_rules.h"
#include "tensor/gradient_step.h"

namespace weft {

// Lets the target of a copy be its source where no write to one is seen by a reader of the other,
// and lets element-wise steps whose kernel allows it work in place.
void RemoveCopies(std::vector<GradientStep>& steps, const std::vector<GradientSlot>& slots);

// The derivative of an activation right after the matrix product that made its argument becomes the
// product's epilogue.
void FuseActivations(std::vector<GradientStep>& steps, const std::vector<GradientSlot>& slots);

}  // namespace weft
