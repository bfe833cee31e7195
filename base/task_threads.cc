#include "base/task_threads.h"

#include <atomic>
#include <cfenv>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"

namespace weft {

struct TaskThreads::State {
  std::function<void(int64_t)> task;
  std::mutex mutex;  // of what follows
  std::condition_variable changed;
  std::deque<int64_t> waiting;
  std::atomic<bool> stop = false, any = false;  // any: of those that wait; written with the mutex
  std::vector<std::thread> threads;

  void Work() {
    std::fesetenv(FE_DFL_ENV);  // as the threads of a ThreadPool
    while (true) {
      SpinBriefly([&] { return stop || any; });
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return stop || !waiting.empty(); });
      if (stop) return;
      const int64_t next = waiting.front();
      waiting.pop_front();
      any = !waiting.empty();
      lock.unlock();
      task(next);
    }
  }
};

TaskThreads::TaskThreads(int threads, std::function<void(int64_t)> task)
    : state_(std::make_unique<State>()) {
  WEFT_CHECK_GE(threads, 1) << "threads for tasks";
  state_->task = std::move(task);
  for (int i = 0; i < threads; ++i)
    state_->threads.emplace_back([state = state_.get()] { state->Work(); });
}

TaskThreads::~TaskThreads() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->stop = true;
  }
  state_->changed.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

void TaskThreads::Post(std::span<const int64_t> tasks) {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->waiting.insert(state_->waiting.end(), tasks.begin(), tasks.end());
    state_->any = !state_->waiting.empty();
  }
  if (tasks.size() == 1) {
    state_->changed.notify_one();
  } else {
    state_->changed.notify_all();
  }
}

}  // namespace weft
