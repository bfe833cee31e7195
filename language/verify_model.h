// A model against the recordings of the original library (reference/language/README.md has the
// formats): logits, hidden states, log-probabilities, greedy continuations, the loss and its
// gradients, with activations in f32.
#pragma once

#include <string>

#include "base/comparison.h"
#include "tensor/context.h"

namespace weft {

// model: a folder or a .gguf file; expected: the recording beside it (expected.safetensors, or
// NAME.expected.safetensors of a GGUF). With a gradients.safetensors beside the model its gradients
// are compared too. Tolerances are the page's.
VerifyReport VerifyModel(const Context& context, const std::string& model,
                         const std::string& expected);

// Every model and GGUF that a folder of the form of reference/language holds.
VerifyReport VerifyModels(const Context& context, const std::string& folder);

}  // namespace weft
