#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <gtest/gtest.h>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"

namespace weft {
namespace {

using Ranges = std::vector<std::pair<int64_t, int64_t>>;
using Method = void (ThreadPool::*)(int64_t, int64_t, RangeFunction);

constexpr Method kMethods[] = {&ThreadPool::ParallelFor, &ThreadPool::ParallelForBalanced,
                               &ThreadPool::ParallelForDynamic};

// The ranges of one call, sorted by their begin.
template <class Call>
Ranges Collect(Call call) {
  std::mutex mutex;
  Ranges ranges;
  auto add = [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    ranges.emplace_back(begin, end);
  };
  call(RangeFunction(add));
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

class ThreadPoolSize : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolSize, testing::Values(1, 2, 3, 8));

TEST_P(ThreadPoolSize, RangesCoverTheCountOnceInMultiplesOfTheGrain) {
  ThreadPool pool(GetParam());
  for (const int64_t count : {1, 2, 7, 64, 1000}) {
    for (const int64_t grain : {1, 3, 64, 5000}) {
      for (const Method method : kMethods) {
        const Ranges ranges = Collect([&](RangeFunction f) { (pool.*method)(count, grain, f); });
        int64_t expected = 0;
        for (const auto& [begin, end] : ranges) {
          EXPECT_EQ(begin, expected);
          EXPECT_EQ(begin % grain, 0);
          EXPECT_LT(begin, end);
          expected = end;
        }
        EXPECT_EQ(expected, count);
        if (method == &ThreadPool::ParallelForDynamic) {
          EXPECT_EQ(static_cast<int64_t>(ranges.size()), (count + grain - 1) / grain);
        } else if (method == &ThreadPool::ParallelFor) {
          EXPECT_LE(static_cast<int>(ranges.size()), GetParam());
        }
      }
    }
  }
}

TEST_P(ThreadPoolSize, ManyShortJobsEachRunEveryRangeOnce) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> sums(GetParam() * 8);
  int64_t total = 0;
  for (int64_t job = 1; job <= 20000; ++job) {
    auto add = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sums[i] += job;
    };
    (pool.*kMethods[job % 3])(static_cast<int64_t>(sums.size()), 1, add);
    total += job;
  }
  for (const int64_t sum : sums) EXPECT_EQ(sum, total);
}

TEST_P(ThreadPoolSize, WorkAfterSleepIsDone) {
  ThreadPool pool(GetParam());
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::atomic<int64_t> done{0};
    auto add = [&](int64_t begin, int64_t end) { done += end - begin; };
    pool.ParallelFor(100, 1, add);
    EXPECT_EQ(done, 100);
  }
}

TEST_P(ThreadPoolSize, ExceptionOfTheLowestRangeIsRethrownAndThePoolGoesOn) {
  ThreadPool pool(GetParam());
  auto fail = [](int64_t begin, int64_t) { throw std::runtime_error(std::to_string(begin)); };
  for (int i = 0; i < 100; ++i) {
    for (const Method method : kMethods) {
      try {
        (pool.*method)(64, 1, fail);
        FAIL() << "nothing was thrown";
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "0");
      }
    }
  }
  std::atomic<int> done{0};
  auto count = [&](int64_t begin, int64_t end) { done += static_cast<int>(end - begin); };
  pool.ParallelFor(64, 1, count);
  EXPECT_EQ(done, 64);
}

TEST_P(ThreadPoolSize, NestedCallsRunInline) {
  ThreadPool pool(GetParam());
  std::atomic<int64_t> done{0};
  auto outer = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto thread = std::this_thread::get_id();
      auto inner = [&](int64_t from, int64_t to) {
        EXPECT_EQ(std::this_thread::get_id(), thread);
        EXPECT_EQ(from, 0);
        EXPECT_EQ(to, 50);
        done += to - from;
      };
      pool.ParallelFor(50, 1, inner);
    }
  };
  pool.ParallelFor(16, 1, outer);
  EXPECT_EQ(done, 16 * 50);
}

// The thread that holds the first range waits until all others are done: someone else must do them.
TEST(ThreadPool, BalancedWorkIsTakenOverFromAThreadThatIsHeldUp) {
  ThreadPool pool(2);
  for (int i = 0; i < 100; ++i) {
    std::atomic<int64_t> done{0};
    auto wait = [&](int64_t begin, int64_t end) {
      const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
      while (begin == 0 && done < 64 - end && std::chrono::steady_clock::now() < give_up) {
        std::this_thread::yield();
      }
      done += end - begin;
      if (begin == 0) {
        EXPECT_EQ(done, 64);
      }
    };
    pool.ParallelForBalanced(64, 1, wait);
  }
}

TEST(ThreadPool, CallersOnSeveralThreadsDoNotDisturbEachOther) {
  ThreadPool pool(2);
  std::vector<std::thread> callers;
  std::atomic<int64_t> total{0};
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        std::atomic<int64_t> done{0};
        auto add = [&](int64_t begin, int64_t end) { done += end - begin; };
        pool.ParallelFor(10, 1, add);
        total += done;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 3 * 1000 * 10);
}

// Short jobs end before a sleeping worker is up, so they race with its way back to sleep: none may
// be lost for good.
TEST(ThreadPool, SharesRunOnSeveralThreadsAfterManyShortJobs) {
  ThreadPool pool(2);
  auto nothing = [](int64_t, int64_t) {};
  for (int round = 0; round < 5; ++round) {
    for (int job = 0; job < 300000; ++job) pool.ParallelFor(2, 1, nothing);
    std::atomic<int> inside{0};
    std::atomic<bool> met{false};
    auto meet = [&](int64_t, int64_t) {
      ++inside;
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (!met && std::chrono::steady_clock::now() < end) {
        if (inside == 2) met = true;
        std::this_thread::yield();
      }
    };
    pool.ParallelFor(2, 1, meet);
    ASSERT_TRUE(met) << "round " << round;
  }
}

TEST(ThreadPool, NothingToDoCallsNothing) {
  ThreadPool pool(2);
  auto never = [](int64_t, int64_t) { FAIL(); };
  pool.ParallelFor(0, 1, never);
  pool.ParallelForDynamic(0, 1, never);
}

TEST(ThreadPool, NeedsAtLeastOneThread) {
  EXPECT_THROW(ThreadPool(0), Error);
}

}  // namespace
}  // namespace weft
