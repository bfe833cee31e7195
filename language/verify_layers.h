// The engine's layers against recorded outputs and gradients in double (the maths folder of
// reference/language): products, norms, attention, rotary positions, gated activations, cross
// entropy, and the choice of the next token. Tolerances are the page's.
#pragma once

#include <string>

#include "base/comparison.h"
#include "tensor/context.h"

namespace weft {

// folder: with layers_dense, layers_attention, layers_activations and sampling. Cases of layers
// that language models here do not have are skipped by name.
VerifyReport VerifyLayers(const Context& context, const std::string& folder);

// layers_attention alone.
VerifyReport VerifyAttentionLayers(const Context& context, const std::string& folder);

}  // namespace weft
