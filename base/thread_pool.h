// The one thread budget of a process. A ThreadPool owns budget - 1 workers; the calling thread is
// the last one. Work is given as a fixed number of tasks, so results never depend on how many
// threads there are. Workers run in the default floating-point mode (nearest, denormals kept); a
// caller that changes its own breaks equality between threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace weft {

// A non-owning reference to a callable void(int64_t begin, int64_t end): no allocation, one
// indirect call per range.
class RangeFunction {
 public:
  template <class F>
  RangeFunction(F& function)  // NOLINT(google-explicit-constructor): binds lambdas at the call
      : object_(&function), call_([](void* object, int64_t begin, int64_t end) {
          (*static_cast<F*>(object))(begin, end);
        }) {}
  void operator()(int64_t begin, int64_t end) const { call_(object_, begin, end); }

 private:
  void* object_;
  void (*call_)(void*, int64_t, int64_t);
};

class ThreadPool {
 public:
  // threads >= 1, counting the caller. Workers spin for a bounded time after work, then sleep on a
  // futex.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls function on disjoint ranges that cover [0, count), each a multiple of grain but the last,
  // and returns when all are done. Ranges are handed out evenly and in order: thread t gets the
  // t-th contiguous share. The first exception of the lowest range is rethrown. One caller at a
  // time; a nested call runs inline.
  void ParallelFor(int64_t count, int64_t grain, RangeFunction function);

  // As ParallelFor, but a thread that is done goes on with pieces of what the others have not
  // begun: for long work, where a core that others use too, or a slower one, would be waited for.
  void ParallelForBalanced(int64_t count, int64_t grain, RangeFunction function);

  // As ParallelFor, but ranges of `grain` are claimed one by one: for tasks of uneven length
  // (environment steps).
  void ParallelForDynamic(int64_t count, int64_t grain, RangeFunction function);

 private:
  struct State;
  void Share(int64_t count, int64_t grain, RangeFunction function, bool balanced);

  int threads_;
  std::unique_ptr<State> state_;
};

}  // namespace weft
