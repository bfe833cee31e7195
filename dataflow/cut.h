// The form of a cut: how unread messages and the runtime's own counters are kept in tensors. Keys:
//   "learner.0"                           what Save of that replica returned
//   "channel:a.x -> b.y.<writer>.<reader>"  its unread messages: "<i>.version" and
//   "<i>.body.<leaf>", oldest first, and
//                                         for newest-only links "uses"; absent when there are none
//   "runtime"                             "steps.<fragment>.<replica>"
// Messages are kept as their writers sent them, so a cut fits every placement.
#pragma once

#include "dataflow/link.h"
#include "dataflow/runtime.h"

namespace weft {

TensorMap PackMessages(const LinkContents& contents);
// Throws kCorrupt when the map does not have that form.
LinkContents UnpackMessages(const TensorMap& map);

// A replica's unread messages, given what its writer's half holds and what the reader's half has
// read: `read` messages so far, or for newest-only links the number of the message read last,
// `uses` times.
LinkContents Unread(LinkContents written, bool newest_only, uint64_t read, int uses);

int64_t SavedSteps(const Cut& cut, const std::string& replica_key);  // 0 when unknown
void SaveSteps(Cut* cut, const std::string& replica_key, int64_t steps);

}  // namespace weft
