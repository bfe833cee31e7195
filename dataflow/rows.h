// Row blocks of a message: the copying half of the Rows contract.
#pragma once

#include <span>
#include <string>

#include "dataflow/message.h"

namespace weft {

// One message whose tensors are those of parts laid end to end along dim, in order. The parts hold
// the same leaves in the same order, of the same dtype and, but for dim, the same shape; throws
// naming edge and leaf otherwise. The version is that of the parts, which must agree unless
// mixed_versions, when it is the largest.
Message ConcatenateRows(std::span<Message> parts, int dim, bool mixed_versions,
                        const std::string& edge);

// Part `index` of `parts` equal blocks along dim: a view when dim is 0, else a copy. Throws naming
// edge and leaf when the rows do not divide.
Message SplitRows(const Message& message, int dim, int index, int parts, const std::string& edge);

}  // namespace weft
