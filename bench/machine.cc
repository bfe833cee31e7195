#include "bench/machine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <sys/mman.h>
#include <vector>

#include "base/check.h"
#include "base/thread_pool.h"
#include "tensor/kernels_bf16.h"
#include "tensor/kernels_split.h"

namespace weft {
namespace {

constexpr double kSecondsEach = 0.15;
constexpr int64_t kBytes = int64_t{256} << 20;  // beyond the caches of a server's core complex
// A share is small, so that threads walk neighbouring memory: regions a large power of two apart
// share banks and halve the bandwidth.
constexpr int64_t kChunkBytes = int64_t{1} << 20;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The best rate of work() / its time over kSecondsEach; work returns what it did.
template <class F>
double BestRate(F&& work) {
  double best = 0;
  for (const double end = Now() + kSecondsEach; Now() < end;) {
    const double begin = Now();
    const double done = work();
    best = std::max(best, done / (Now() - begin));
  }
  return best;
}

class HugePages {
 public:
  HugePages()
      : data_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (data_ == MAP_FAILED) {
      throw Error(ErrorCode::kUnavailable, "bench machine needs 256 MiB of free memory");
    }
    madvise(data_, kBytes, MADV_HUGEPAGE);
    std::fill_n(floats(), kBytes / 4, 1.0f);
  }
  ~HugePages() { munmap(data_, kBytes); }
  HugePages(const HugePages&) = delete;
  HugePages& operator=(const HugePages&) = delete;
  float* floats() const { return static_cast<float*>(data_); }

 private:
  void* data_;
};

double Gflops(ThreadPool& pool, const kernels::KernelTable& table) {
  constexpr int64_t kSteps = 10000;  // about 30 us
  std::atomic<double> sink{0};
  return 1e-9 * BestRate([&] {
           double operations = 0;
           auto run = [&](int64_t begin, int64_t end) {
             for (int64_t i = begin; i < end; ++i) {
               float result = 0;
               const double count = table.multiply_add(kSteps, &result);
               sink.store(result, std::memory_order_relaxed);
               if (i == 0) operations = count;
             }
           };
           pool.ParallelFor(pool.threads(), 1, run);
           return operations * pool.threads();
         });
}

// Of a matrix product whose operands the second-level cache holds, a copy of it on each thread.
double Bf16Gflops(ThreadPool& pool) {
  constexpr int64_t kRows = 256, kIn = 576, kOut = 256, kTimes = 8;
  const Tensor x = Tensor::Zeros({kRows, kIn}, DType::kBFloat16);
  const Tensor w = Tensor::Zeros({PanelElements(kIn, kOut)}, DType::kBFloat16);
  return 1e-9 * BestRate([&] {
           auto run = [&](int64_t begin, int64_t end) {
             Tensor y = Tensor::Empty({kRows, kOut});
             for (int64_t i = begin * kTimes; i < end * kTimes; ++i) {
               kernels::DenseBf16({}, kRows, kIn, kOut, reinterpret_cast<const BFloat16*>(x.raw()),
                                  reinterpret_cast<const BFloat16*>(w.raw()), nullptr, 0,
                                  y.data<float>().data());
             }
           };
           pool.ParallelFor(pool.threads(), 1, run);
           return 2.0 * kRows * kIn * kOut * kTimes * pool.threads();
         });
}

double Gbytes(ThreadPool& pool, const kernels::KernelTable& table, const HugePages& memory) {
  std::atomic<double> sink{0};
  return 1e-9 * BestRate([&] {
           auto read = [&](int64_t begin, int64_t end) {
             sink.store(table.sum((end - begin) / 4, memory.floats() + begin / 4),
                        std::memory_order_relaxed);
           };
           pool.ParallelForDynamic(kBytes, kChunkBytes, read);
           return static_cast<double>(kBytes);
         });
}

}  // namespace

MachineFigures MeasureMachine(int threads) {
  ThreadPool one(1), all(threads);
  const kernels::KernelTable& table = kernels::TableOf({.isa = BestIsa()});
  const HugePages memory;
  return {.gflops_1 = Gflops(one, table),
          .gflops_n = Gflops(all, table),
          .bf16_gflops_1 = Bf16Gflops(one),
          .bf16_gflops_n = Bf16Gflops(all),
          .gbytes_1 = Gbytes(one, table, memory),
          .gbytes_n = Gbytes(all, table, memory),
          .threads = threads};
}

}  // namespace weft
