#include "environments/multi_agent.h"

namespace weft {

void MultiAgentEnvironment::Save(Writer& out) const {
  std::vector<double> state;
  GetState(state);
  out.Write(std::span<const double>(state));
}

void MultiAgentEnvironment::Load(Reader& in) {
  SetState(in.ReadVector<double>());
}

}  // namespace weft
