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

// A LoRA adapter in PEFT's format against expected.safetensors in its folder: logits, loss and the
// gradients of its matrices. Its base is the folder that its config names, from there.
VerifyReport VerifyAdapter(const Context& context, const std::string& folder);

// The real chat model against the folder of its recorded conversations: ids, logits, hidden states,
// greedy answers, log-probabilities, a training step.
VerifyReport VerifyChatModel(const Context& context, const std::string& model,
                             const std::string& folder);

// Every model, adapter and GGUF that a folder of the form of reference/language holds, and the real
// chat model where it was fetched.
VerifyReport VerifyModels(const Context& context, const std::string& folder);

}  // namespace weft
