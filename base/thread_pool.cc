#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <exception>
#include <limits>
#include <linux/futex.h>
#include <mutex>
#include <sched.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/check.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

// How long an idle worker spins before it sleeps: the longest time while work keeps arriving, half
// of it after each sleep down to the shortest.
constexpr microseconds kLongestSpin{50};
constexpr microseconds kShortestSpin{12};

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

int UsableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

// A share of the current job, handed to one worker through one word: job number * 4 + stage.
// Whoever moves it on from kOpen runs the share, so that the caller can take back what a sleeping
// or descheduled worker did not begin.
enum Stage : uint32_t { kOpen = 0, kTaken = 1, kDone = 2, kStageMask = 3 };

// The lowest range of those that a thread saw throw.
struct Failure {
  int64_t begin = std::numeric_limits<int64_t>::max();
  std::exception_ptr exception;

  void Add(const Failure& other) {
    if (other.begin < begin) *this = other;
  }
};

struct alignas(64) Slot {
  std::atomic<uint32_t> state{kDone};
  std::atomic<bool> sleeping{false};
  Failure failure;
};

// Pieces of a share that were claimed, by its own thread or by one that had finished its own.
struct alignas(64) Progress {
  std::atomic<int64_t> claimed{0};
};
// Of a share that is balanced: the last one may be waited for.
constexpr int64_t kPieces = 16;

void FutexWait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}
void FutexWake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

// True on a worker inside a share and on a caller inside its own: a nested call runs inline.
thread_local bool inside = false;

}  // namespace

struct ThreadPool::State {
  explicit State(int count_of_slots) : slots(count_of_slots), progress(count_of_slots + 1) {}

  std::atomic<bool> busy{false};
  std::atomic<bool> stop{false};
  bool oversubscribed = false;
  uint32_t job = 0;
  // The job; written before the slots are opened, read after one is taken.
  const RangeFunction* function = nullptr;
  int64_t count = 0, grain = 1, shares = 1;
  bool balanced = false;

  std::vector<Slot> slots;         // slots[i] belongs to share i + 1; the caller runs share 0
  std::vector<Progress> progress;  // of each share, when they are balanced
  std::vector<std::thread> workers;

  // Units [begin, end) of the job.
  void RunUnits(int64_t begin, int64_t end, Failure& failure) {
    if (begin == end) return;
    try {
      (*function)(begin * grain, std::min(count, end * grain));
    } catch (...) {
      failure.Add({begin, std::current_exception()});
    }
  }

  void RunShare(int64_t share, Failure& failure) {
    const int64_t units = (count + grain - 1) / grain;
    inside = true;
    if (!balanced) {
      RunUnits(units * share / shares, units * (share + 1) / shares, failure);
    } else {
      for (int64_t i = 0; i < shares; ++i) {
        const int64_t from = (share + i) % shares, end = units * (from + 1) / shares;
        const int64_t begin = units * from / shares;
        std::atomic<int64_t>& claimed = progress[from].claimed;
        while (claimed.load(std::memory_order_relaxed) < kPieces) {
          const int64_t piece = claimed.fetch_add(1, std::memory_order_relaxed);
          if (piece >= kPieces) break;
          RunUnits(begin + (end - begin) * piece / kPieces,
                   begin + (end - begin) * (piece + 1) / kPieces, failure);
        }
      }
    }
    inside = false;
  }

  // Waits until the slot is open and takes it; false when the pool stops.
  bool Take(Slot& slot, microseconds& patience) {
    auto start = Clock::now();
    for (int spins = 1;; ++spins) {
      uint32_t state = slot.state.load(std::memory_order_acquire);
      if ((state & kStageMask) == kOpen) {
        if (slot.state.compare_exchange_strong(state, state | kTaken, std::memory_order_acquire)) {
          patience = std::min(patience * 2, kLongestSpin);
          return true;
        }
        continue;
      }
      Pause();
      if (spins % 32 != 0) continue;
      if (stop.load(std::memory_order_acquire)) return false;
      if (oversubscribed) sched_yield();
      if (Clock::now() - start < patience) continue;
      // The caller takes `sleeping` after it opened the slot, this thread looks at both after it
      // set `sleeping`. So either this thread sees the slot or that its wake-up is spent, or the
      // futex sees the word change, or it is woken.
      slot.sleeping.store(true, std::memory_order_seq_cst);
      state = slot.state.load(std::memory_order_seq_cst);
      if ((state & kStageMask) != kOpen && slot.sleeping.load(std::memory_order_seq_cst) &&
          !stop.load(std::memory_order_seq_cst)) {
        FutexWait(slot.state, state);
        patience = std::max(patience / 2, kShortestSpin);
      }
      slot.sleeping.store(false, std::memory_order_relaxed);
      // Even when the caller has taken this share back by now, more are likely to follow.
      start = Clock::now();
    }
  }

  void Work(int64_t share) {
    // Rounding to nearest, denormals kept: kernels give the same bits on every thread.
    std::fesetenv(FE_DFL_ENV);
    Slot& slot = slots[share - 1];
    microseconds patience = oversubscribed ? kShortestSpin : kLongestSpin;
    while (Take(slot, patience)) {
      const uint32_t taken = slot.state.load(std::memory_order_relaxed);
      RunShare(share, slot.failure);
      slot.state.store((taken & ~kStageMask) | kDone, std::memory_order_release);
    }
  }

  void Run(const RangeFunction& work) {
    function = &work;
    ++job;
    const uint32_t open = job << 2 | kOpen;
    if (balanced) {
      for (Progress& share : progress) share.claimed.store(0, std::memory_order_relaxed);
    }
    for (int64_t share = 1; share < shares; ++share) {
      Slot& slot = slots[share - 1];
      slot.state.store(open, std::memory_order_seq_cst);
      if (slot.sleeping.exchange(false, std::memory_order_seq_cst)) FutexWake(slot.state);
    }
    Failure failure;
    RunShare(0, failure);
    for (int64_t share = 1; share < shares; ++share) {
      Slot& slot = slots[share - 1];
      uint32_t expected = open;
      if (slot.state.compare_exchange_strong(expected, open | kDone, std::memory_order_acquire)) {
        RunShare(share, slot.failure);
      }
    }
    for (int64_t share = 1; share < shares; ++share) {
      Slot& slot = slots[share - 1];
      for (int spins = 1; slot.state.load(std::memory_order_acquire) != (open | kDone); ++spins) {
        Pause();
        if (spins % 1024 == 0) sched_yield();
      }
      failure.Add(std::exchange(slot.failure, {}));
    }
    if (failure.exception) {
      busy.store(false, std::memory_order_release);
      std::rethrow_exception(failure.exception);
    }
  }
};

ThreadPool::ThreadPool(int threads) : threads_(threads) {
  WEFT_CHECK_GE(threads, 1) << "threads of a pool, the caller counted";
  state_ = std::make_unique<State>(threads - 1);
  state_->oversubscribed = threads > UsableCores();
  for (int i = 1; i < threads; ++i) {
    state_->workers.emplace_back([state = state_.get(), i] { state->Work(i); });
  }
}

ThreadPool::~ThreadPool() {
  state_->stop.store(true, std::memory_order_seq_cst);
  for (Slot& slot : state_->slots) {
    // A sleeper waits for the word to change: give it a new one that is not open.
    slot.state.fetch_add(4, std::memory_order_seq_cst);
    FutexWake(slot.state);
  }
  for (std::thread& worker : state_->workers) worker.join();
}

void ThreadPool::ParallelFor(int64_t count, int64_t grain, RangeFunction function) {
  Share(count, grain, function, false);
}

void ThreadPool::ParallelForBalanced(int64_t count, int64_t grain, RangeFunction function) {
  Share(count, grain, function, true);
}

void ThreadPool::Share(int64_t count, int64_t grain, RangeFunction function, bool balanced) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t shares = std::min<int64_t>(threads_, (count - 1) / grain + 1);
  if (shares == 1 || inside || state_->busy.exchange(true, std::memory_order_acquire)) {
    function(0, count);
    return;
  }
  state_->count = count;
  state_->grain = grain;
  state_->shares = shares;
  state_->balanced = balanced;
  state_->Run(function);
  state_->busy.store(false, std::memory_order_release);
}

void ThreadPool::ParallelForDynamic(int64_t count, int64_t grain, RangeFunction function) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t ranges = (count - 1) / grain + 1;
  std::atomic<int64_t> next{0};
  std::mutex failure_mutex;
  Failure failure;
  auto claim = [&](int64_t, int64_t) {
    for (int64_t range; (range = next.fetch_add(1, std::memory_order_relaxed)) < ranges;) {
      try {
        function(range * grain, std::min(count, (range + 1) * grain));
      } catch (...) {
        const std::lock_guard lock(failure_mutex);
        failure.Add({range, std::current_exception()});
      }
    }
  };
  ParallelFor(std::min<int64_t>(threads_, ranges), 1, claim);
  if (failure.exception) std::rethrow_exception(failure.exception);
}

}  // namespace weft
