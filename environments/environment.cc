#include "environments/environment.h"

#include "base/check.h"
#include "environments/batch_environment.h"
#include "environments/multi_agent.h"

namespace weft {

void Environment::Render(Canvas&) const {
  throw Error(ErrorCode::kConfig, spec().id + " draws no pictures");
}

void Environment::Save(Writer& out) const {
  std::vector<double> state;
  GetState(state);
  out.Write(std::span<const double>(state));
}

void Environment::Load(Reader& in) {
  SetState(in.ReadVector<double>());
}

EnvironmentSpec EnvironmentEntry::Spec(const Config& arguments) const {
  if (make) return make(arguments)->spec();
  if (make_multi_agent) return make_multi_agent(arguments)->spec();
  return make_batch(arguments, {})->spec();
}

Registry<EnvironmentEntry>& Environments() {
  // Never destroyed: entries are read while the process ends.
  static auto& registry = *new Registry<EnvironmentEntry>("environment");
  return registry;
}

Registry<EnvironmentScheme>& EnvironmentSchemes() {
  static auto& registry = *new Registry<EnvironmentScheme>("kind of environment");
  return registry;
}

EnvironmentEntry FindEnvironment(const std::string& id) {
  const size_t colon = id.find(':');
  if (colon == std::string::npos) return Environments().At(id);
  return EnvironmentSchemes().At(id.substr(0, colon))(id);
}

}  // namespace weft
