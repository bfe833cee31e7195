// What the runtime itself costs: a loop of two fragments that pass one message of five tensors
// round and round.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <gtest/gtest.h>
#include <iostream>
#include <new>

#include "dataflow/runtime.h"

namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

// The thread sanitizer follows memory through its own operators.
#ifndef __SANITIZE_THREAD__
void* operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
#endif

namespace weft::testing {
namespace {

using Clock = std::chrono::steady_clock;

struct Figures {
  double best_ns = 1e9;     // per step, least over chunks
  int64_t allocations = 0;  // after the first chunk
};

class Passer final : public Fragment {
 public:
  Passer(bool first, int64_t chunk, Figures* figures)
      : first_(first), chunk_(chunk), figures_(figures) {}
  void Start(Ports& ports) override {
    if (!first_) return;
    Message message;
    for (const char* name : {"observation", "reward", "discount", "first", "last"}) {
      message.body.Set(name, Tensor::Zeros(Shape{8, 4}));
    }
    ports.Write(0, std::move(message));
  }
  PortSet Needs() const override { return {0}; }
  void Step(Ports& ports) override {
    Message message = ports.Read(0);
    ++message.version;
    ports.Write(0, std::move(message));
    if (first_ && ++steps_ % chunk_ == 0) {
      const auto now = Clock::now();
      const int64_t count = allocations.load();
      if (steps_ > chunk_) {
        const double ns = std::chrono::duration<double, std::nano>(now - began_).count() /
                          static_cast<double>(2 * chunk_);
        figures_->best_ns = std::min(figures_->best_ns, ns);
        figures_->allocations += count - allocations_;
      }
      began_ = Clock::now();
      allocations_ = allocations.load();
    }
    if (steps_ == chunk_ * 20) ports.Stop("measured");
  }

 private:
  const bool first_;
  const int64_t chunk_;  // steps between two readings
  Figures* const figures_;
  int64_t steps_ = 0, allocations_ = 0;
  Clock::time_point began_;
};

Figures Measure(int runners, int64_t chunk) {
  Figures figures;
  const auto factory = [&figures, chunk](bool first) {
    return FragmentFactory{
        .ports = {.inputs = {{"in"}}, .outputs = {{.name = "out", .primed = first}}},
        .make = [first, chunk, &figures](const Replica&) {
          return std::make_unique<Passer>(first, chunk, &figures);
        }};
  };
  FragmentGraph graph;
  graph.Add("a", 1, factory(true));
  graph.Add("b", 1, factory(false));
  graph.Connect("a.out", "b.in", Rows());
  graph.Connect("b.out", "a.in", Rows());
  Placement placement;
  placement.runners.resize(static_cast<size_t>(runners));
  placement.runners[0].members.emplace_back(0, 0);
  placement.runners.back().members.emplace_back(1, 0);
  weft::Run(graph, placement, {});
  return figures;
}

TEST(Overhead, ASerialStepCostsLessThanAMicrosecondAndAllocatesNothing) {
  const Figures figures = Measure(1, 2000);
  std::cout << "serial step: " << figures.best_ns << " ns\n";
  EXPECT_EQ(figures.allocations, 0);
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(figures.best_ns, 1000);
#endif
}

TEST(Overhead, AStepOnThreadsAllocatesNothing) {
  const Figures figures = Measure(2, 50);
  std::cout << "step with a hand-over between threads: " << figures.best_ns << " ns\n";
  EXPECT_EQ(figures.allocations, 0);
}

}  // namespace
}  // namespace weft::testing
