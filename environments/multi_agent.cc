#include "environments/multi_agent.h"

#include "base/check.h"

namespace weft {

void MultiAgentEnvironment::Render(Canvas&) const {
  throw Error(ErrorCode::kConfig, spec().id + " draws no pictures");
}

void MultiAgentEnvironment::Save(Writer& out) const {
  std::vector<double> state;
  GetState(state);
  out.Write(std::span<const double>(state));
}

void MultiAgentEnvironment::Load(Reader& in) {
  SetState(in.ReadVector<double>());
}

}  // namespace weft
