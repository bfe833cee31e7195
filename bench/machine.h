// What this machine can do at most, measured in about one second: the bar that every other figure
// is a share of. Peaks move with boost and neighbours, so compare only within one run.
#pragma once

namespace weft {

struct MachineFigures {
  double gflops_1 =
      0;  // f32 fused multiply-adds at the best instruction set, two operations each, one thread
  double gflops_n = 0;  // the same on `threads` threads
  double bf16_gflops_1 = 0;  // of products with operands in bf16, sums in f32, from the caches
  double bf16_gflops_n = 0;
  double gbytes_1 = 0;  // reading memory that no cache holds, 1e9 bytes per second, huge pages
  double gbytes_n = 0;
  int threads = 1;
};

// threads >= 1. Throws Error(kUnavailable) when the memory to read cannot be had.
MachineFigures MeasureMachine(int threads);

}  // namespace weft
