#include "tensor/context.h"

#include <cstdlib>
#include <string>

#include "base/check.h"
#include "tensor/cpu.h"

namespace weft {
namespace {

Isa CpuIsa() {
  if (CpuHasAvx512()) return Isa::kAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::kAvx2;
  return Isa::kPortable;
}

Isa AllowedIsa() {
  const Isa cpu = CpuIsa();
  const char* wish = std::getenv("WEFT_ISA");
  if (wish == nullptr || *wish == '\0') return cpu;
  for (const Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
    if (std::string(wish) == Name(isa)) return isa < cpu ? isa : cpu;
  }
  throw Error(ErrorCode::kConfig,
              "WEFT_ISA=" + std::string(wish) + ": choose portable, avx2 or avx512");
}

thread_local const Context* current = nullptr;

}  // namespace

Isa BestIsa() {
  static const Isa best = AllowedIsa();
  return best;
}

bool PlanByDefault() {
  static const bool plan = [] {
    const char* wish = std::getenv("WEFT_PLAN");
    return wish == nullptr || std::string(wish) != "off";
  }();
  return plan;
}

const char* Name(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return "portable";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "unknown";
}

const Context& CurrentContext() {
  if (current != nullptr) [[likely]] {
    return *current;
  }
  static const Context fallback;
  return fallback;
}

ContextScope::ContextScope(const Context& context) : previous_(current) {
  WEFT_CHECK(context.isa <= BestIsa())
      << Name(context.isa) << " asked for, this machine allows " << Name(BestIsa());
  current = &context;
}

ContextScope::~ContextScope() {
  current = previous_;
}

}  // namespace weft
