#include "dataflow/cut.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace weft {
namespace {

Tensor Integer(int64_t value) {
  return Tensor::From<int64_t>(Shape{}, {value});
}

int64_t ReadInteger(const Tensor& tensor) {
  if (tensor.dtype() != DType::kInt64 || tensor.elements() != 1) {
    throw Error(ErrorCode::kCorrupt, "a counter in a saved channel is no single I64");
  }
  return tensor.data<int64_t>()[0];
}

}  // namespace

TensorMap PackMessages(const LinkContents& contents) {
  TensorMap map;
  for (size_t i = 0; i < contents.messages.size(); ++i) {
    const std::string prefix = std::to_string(i);
    map.Set(prefix + ".version", Integer(contents.messages[i].version));
    map.Merge(prefix + ".body", contents.messages[i].body);
  }
  if (contents.uses > 0) map.Set("uses", Integer(contents.uses));
  return map;
}

LinkContents UnpackMessages(const TensorMap& map) {
  LinkContents contents;
  size_t used = 0;
  for (int i = 0;; ++i) {
    const std::string prefix = std::to_string(i);
    const Tensor* version = map.Find(prefix + ".version");
    if (version == nullptr) break;
    Message message{.body = map.Extract(prefix + ".body"), .version = ReadInteger(*version)};
    used += 1 + message.body.size();
    contents.messages.push_back(std::move(message));
  }
  if (const Tensor* uses = map.Find("uses")) {
    contents.uses = static_cast<int>(ReadInteger(*uses));
    ++used;
  }
  if (used != map.size())
    throw Error(ErrorCode::kCorrupt, "a saved channel holds more than its messages");
  return contents;
}

LinkContents Unread(LinkContents written, bool newest_only, uint64_t read, int uses) {
  if (newest_only) {
    written.uses = written.first == read ? uses : 0;
    return written;
  }
  const uint64_t gone =
      std::min<uint64_t>(read > written.first ? read - written.first : 0, written.messages.size());
  written.messages.erase(written.messages.begin(),
                         written.messages.begin() + static_cast<int64_t>(gone));
  written.first += gone;
  return written;
}

int64_t SavedSteps(const Cut& cut, const std::string& replica_key) {
  const auto runtime = cut.find("runtime");
  if (runtime == cut.end()) return 0;
  const Tensor* steps = runtime->second.Find("steps." + replica_key);
  return steps == nullptr ? 0 : ReadInteger(*steps);
}

void SaveSteps(Cut* cut, const std::string& replica_key, int64_t steps) {
  (*cut)["runtime"].Set("steps." + replica_key, Integer(steps));
}

}  // namespace weft
