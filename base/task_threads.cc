#include "base/task_threads.h"

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
  bool stop = false;
  std::vector<std::thread> threads;

  void Work() {
    std::fesetenv(FE_DFL_ENV);  // as the threads of a ThreadPool
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return stop || !waiting.empty(); });
      if (stop) return;
      const int64_t next = waiting.front();
      waiting.pop_front();
      lock.unlock();
      task(next);
      lock.lock();
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
  }
  if (tasks.size() == 1) {
    state_->changed.notify_one();
  } else {
    state_->changed.notify_all();
  }
}

}  // namespace weft
