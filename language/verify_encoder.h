// A text encoder against embeddings that another implementation gave.
#pragma once

#include <string>

#include "base/comparison.h"
#include "tensor/context.h"

namespace weft {

// recording: a JSON file {"texts": [..], "embeddings": [[..], ..], "tolerance": 1e-5}, the last
// being the largest difference of a number. Throws Error when a file cannot be read or is of
// another form, and as TextEncoder::Load.
VerifyReport VerifyEncoder(const Context& context, const std::string& model,
                           const std::string& recording);

}  // namespace weft
