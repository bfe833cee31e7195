// Threads that carry out numbered tasks in the order in which they are posted, while the caller
// goes on: for work that is waited for piece by piece. What must be done before the caller goes on
// is the business of ThreadPool.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace weft {

// Looks for up to some 50 us whether ready() holds: what is about to come is cheaper so than by
// sleeping until it is there.
template <class Ready>
void SpinBriefly(Ready ready) {
  constexpr std::chrono::microseconds kPatience{50};
  const auto start = std::chrono::steady_clock::now();
  while (!ready() && std::chrono::steady_clock::now() - start < kPatience) {
  }
}

class TaskThreads {
 public:
  // threads >= 1. task is called on any of them, on several at once, and throws nothing.
  TaskThreads(int threads, std::function<void(int64_t)> task);
  // Waits for the tasks that have begun; those that have not are dropped.
  ~TaskThreads();
  TaskThreads(const TaskThreads&) = delete;
  TaskThreads& operator=(const TaskThreads&) = delete;

  void Post(std::span<const int64_t> tasks);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft
