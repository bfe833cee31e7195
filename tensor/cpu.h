// What this CPU can do.
#pragma once

namespace weft {

// Whether code compiled for the level x86-64-v4 runs here. Feature by feature: Clang 14 has no name
// for levels. Those left out (F16C, LZCNT, MOVBE) came with AVX2.
inline bool CpuHasAvx512() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

}  // namespace weft
