// What a kernel runs with: the threads it may use and the instruction set it was chosen for. A
// thread has one current context; ops take it from there, kernels get it as their first argument.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace weft {

// Levels of the x86 instruction set. All levels give the same bits; tests run each level the CPU
// has.
enum class Isa : uint8_t { kPortable, kAvx2, kAvx512 };
Isa BestIsa();  // of this CPU; WEFT_ISA=portable|avx2|avx512 lowers it
const char* Name(Isa isa);

bool PlanByDefault();  // false when WEFT_PLAN=off: for tests

struct Context {
  ThreadPool* pool = nullptr;  // null: one thread
  Isa isa = BestIsa();
  bool plan = PlanByDefault();  // false: gradients are interpreted node by node
};

// The calling thread's context; a default one (one thread, best ISA) when none was set.
const Context& CurrentContext();

class ContextScope {
 public:
  explicit ContextScope(const Context& context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  const Context* previous_;
};

}  // namespace weft
