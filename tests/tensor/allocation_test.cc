// A training step that repeats asks neither operator new nor the system for memory.
#include <cstdlib>
#include <gtest/gtest.h>
#include <new>
#include <vector>

#include "tensor/kernels.h"
#include "tests/tensor/gradient_check.h"

namespace {
thread_local int64_t allocations = 0;
}  // namespace

// Counts on the calling thread; the whole test program uses these. Sanitizers bring their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCounting = false;
#else
constexpr bool kCounting = true;

void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
#endif

namespace weft {
namespace {

TEST(Allocation, ATrainingStepAsksForNoMemory) {
  const int64_t rows = 64;
  const Tensor x = Random({rows, 17}, 1), advantage = Random({rows}, 2),
               old = Random({rows}, 3, -2, -1);
  const Tensor target = Random({rows, 1}, 4), observations = Random({1000, 17}, 5);
  Tensor action = Tensor::Zeros({rows}, DType::kInt64);
  std::vector<Tensor> p = {
      RandomWeight(17, 64, 6), Random({64}, 7), RandomWeight(64, 64, 8), Random({64}, 9),
      RandomWeight(64, 6, 10), Random({6}, 11), RandomWeight(64, 1, 12), Random({1}, 13),
      Random({64}, 14, 1, 2),  Random({64}, 15)};
  Tensor block = JoinMemory(Handles(p));
  Tape tape(Handles(p));
  Tensor first_moment = Tensor::Zeros(block.shape()), second_moment = Tensor::Zeros(block.shape());
  int64_t updates = 0;
  const auto step = [&] {
    const Tape::Recording recording(tape);
    Tensor h = Dense(GatherRows(observations, action), p[0], p[1], Activation::kTanh);
    h = LayerNorm(Dense(Add(h, Dense(x, p[0], p[1])), p[2], p[3], Activation::kRelu), p[8], p[9]);
    const Tensor log_probabilities = LogSoftmax(Dense(h, p[4], p[5]));
    const Tensor value = Dense(h, p[6], p[7]);
    const Tensor parts[] = {log_probabilities, value};
    const Tensor ratio = Exp(Sub(GatherLast(log_probabilities, action), old));
    const Tensor surrogate =
        Minimum(Mul(ratio, advantage), Mul(Clamp(ratio, 0.8f, 1.2f), advantage));
    const Tensor loss =
        Add(Sub(Mean(Square(Sub(value, target))), Mean(surrogate)), Mean(ConcatLast(parts)));
    tape.Gradient(loss, p);
    ++updates;
    const kernels::AdamStep adam{.learning_rate = 1e-3,
                                 .beta1 = 0.9,
                                 .beta2 = 0.999,
                                 .epsilon = 1e-8,
                                 .weight_decay = 0,
                                 .beta1_power = kernels::Power(0.9, updates),
                                 .beta2_power = kernels::Power(0.999, updates)};
    kernels::Adam(CurrentContext(), block.elements(), adam,
                  tape.FlatGradient().data<float>().data(), block.data<float>().data(),
                  first_moment.data<float>().data(), second_moment.data<float>().data());
    block.MarkWritten();
  };
  for (int i = 0; i < 3; ++i) step();
  const int64_t calls = TensorAllocator().system_calls, before = allocations;
  for (int i = 0; i < 10; ++i) step();
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(TensorAllocator().system_calls, calls);
  EXPECT_EQ(tape.statistics().plans_compiled, 1);
  EXPECT_EQ(before > 0, kCounting) << "the counter does not count";
}

}  // namespace
}  // namespace weft
