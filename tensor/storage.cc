#include "tensor/storage.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <sys/mman.h>

#include "tensor/cached_memory.h"
#include "tensor/tensor.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace weft {
namespace {

// Sizes in units of 64 bytes: 1 to 4, then four steps per doubling, so a block is at most a quarter
// too large.
constexpr int kClasses = 136;               // up to 2^40 bytes
constexpr int kLocalClasses = 44;           // up to 256 KiB: these have lists per thread
constexpr int64_t kLocalBytes = 4 << 20;    // that one thread keeps before it shares
constexpr int64_t kSharedBytes = 32 << 20;  // that may be held beyond 17/16 of the peak in use
constexpr size_t kPage = 4096, kHugePage = 2 << 20;
constexpr int32_t kBatch = 16;  // blocks moved from the shared to a local list at once

constexpr int ClassOf(size_t bytes) {
  const uint64_t units = bytes == 0 ? 0 : (bytes - 1) / 64;
  if (units < 4) return static_cast<int>(units);
  const int shift = static_cast<int>(std::bit_width(units)) - 3;
  return shift * 4 + static_cast<int>(units >> shift);
}

constexpr int64_t PayloadOf(int size_class) {
  if (size_class < 4) return (size_class + 1) * 64;
  const int shift = (size_class - 4) / 4;
  return (static_cast<int64_t>(size_class - shift * 4 + 1) << shift) * 64;
}

constexpr std::array<int64_t, kClasses> kBlockBytes = [] {
  std::array<int64_t, kClasses> bytes{};
  for (int c = 0; c < kClasses; ++c) {
    bytes[static_cast<size_t>(c)] = PayloadOf(c) + static_cast<int64_t>(sizeof(Storage));
  }
  return bytes;
}();
static_assert(PayloadOf(ClassOf(256 << 10)) == 256 << 10 &&
              ClassOf(256 << 10) == kLocalClasses - 1);

int64_t BlockBytes(int size_class) {
  return kBlockBytes[static_cast<size_t>(size_class)];
}

struct FreeList {
  Storage* head = nullptr;
  int64_t last_used = 0;  // of a shared list: when a block of its size was asked for last

  void Push(Storage* storage) {
    storage->next = head;
    head = storage;
  }
  Storage* Pop() {
    Storage* storage = head;
    head = storage->next;
    return storage;
  }
};

// Written by its thread, read by anyone for statistics.
class Counter {
 public:
  void Add(int64_t amount) {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

enum class CacheState : uint8_t { kNew, kLive, kDead };

struct ThreadCache {
  std::array<FreeList, kLocalClasses> lists;
  Counter in_use;  // handed out less given back on this thread: negative where blocks only end
  Counter cached;
  CacheState state = CacheState::kNew;
  ThreadCache* next = nullptr;  // in Shared::threads
};

// Trivially destructible, so that tensors may be dropped at any time.
constinit thread_local ThreadCache cache [[gnu::tls_model("initial-exec")]];

struct Shared {
  std::mutex mutex;
  std::array<FreeList, kClasses> lists;
  int64_t cached = 0;
  int64_t in_use_of_dead = 0;  // and of threads without a cache
  int64_t peak = 0;            // of bytes in use, as seen when a local list was empty
  int64_t system_calls = 0;
  int64_t clock = 0;
  ThreadCache* threads = nullptr;

  int64_t InUse() const {
    int64_t sum = in_use_of_dead;
    for (const ThreadCache* thread = threads; thread != nullptr; thread = thread->next) {
      sum += thread->in_use.value();
    }
    return sum;
  }
};
constinit Shared shared;

#if defined(__SANITIZE_ADDRESS__)
void Poison(Storage* storage) {
  ASAN_POISON_MEMORY_REGION(storage->payload(),
                            static_cast<size_t>(PayloadOf(storage->size_class)));
}
void Unpoison(Storage* storage, size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(storage->payload(), bytes);
}
#else
void Poison(Storage*) {}
void Unpoison(Storage*, size_t) {}
#endif

// Large blocks are mapped each for itself: what is given back is the system's again, and leaves no
// holes in a heap.
bool Mapped(int size_class) {
  return size_class >= kLocalClasses;
}
size_t MappedBytes(int size_class) {
  return (static_cast<size_t>(BlockBytes(size_class)) + kPage - 1) / kPage * kPage;
}

// Huge pages lie only where the first use of a block fills them: a page that is touched counts
// whole.
std::byte* Map(size_t bytes, size_t used) {
  const size_t alignment = used > kHugePage ? kHugePage : kPage, spare = alignment - kPage;
  void* const all = mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(all);
  const size_t lead = (alignment - reinterpret_cast<uintptr_t>(begin) % alignment) % alignment;
  if (lead > 0) munmap(begin, lead);
  if (lead < spare) munmap(begin + lead + bytes, spare - lead);
  if (used > kHugePage) madvise(begin + lead, used / kHugePage * kHugePage, MADV_HUGEPAGE);
  return begin + lead;
}

void ToSystem(Storage* storage) {
  const int size_class = storage->size_class;
  Unpoison(storage, static_cast<size_t>(PayloadOf(size_class)));
  if (Mapped(size_class)) {
    munmap(storage, MappedBytes(size_class));
  } else {
    std::free(storage);
  }
}

Storage* FromSystem(int size_class, size_t used) {
  void* memory = nullptr;
  if (Mapped(size_class)) {
    memory = Map(MappedBytes(size_class), used + sizeof(Storage));
  } else if (posix_memalign(&memory, alignof(Storage),
                            static_cast<size_t>(BlockBytes(size_class))) != 0) {
    throw std::bad_alloc();
  }
  auto* storage = new (memory) Storage;
  storage->size_class = size_class;
  return storage;
}

// With the mutex held. When the lists are full, sizes that nobody asked for lately make room.
void PushShared(Storage* storage) {
  const int64_t bytes = BlockBytes(storage->size_class);
  const int64_t room = shared.peak + shared.peak / 16 + kSharedBytes - shared.InUse();
  while (shared.cached > 0 && shared.cached + bytes > room) {
    FreeList* oldest = nullptr;
    for (FreeList& list : shared.lists) {
      if (list.head != nullptr && (oldest == nullptr || list.last_used < oldest->last_used))
        oldest = &list;
    }
    shared.cached -= BlockBytes(oldest->head->size_class);
    ToSystem(oldest->Pop());
  }
  shared.lists[static_cast<size_t>(storage->size_class)].Push(storage);
  shared.cached += bytes;
}

void FlushToShared(FreeList& list) {
  const std::lock_guard lock(shared.mutex);
  while (list.head != nullptr) {
    cache.cached.Add(-BlockBytes(list.head->size_class));
    PushShared(list.Pop());
  }
}

// Gives a thread's blocks back when the thread ends.
struct Janitor {
  ~Janitor() {
    for (FreeList& list : cache.lists) FlushToShared(list);
    const std::lock_guard lock(shared.mutex);
    shared.in_use_of_dead += cache.in_use.value();
    ThreadCache** link = &shared.threads;
    while (*link != &cache) link = &(*link)->next;
    *link = cache.next;
    cache.state = CacheState::kDead;
  }
};

void RegisterThread() {
  static thread_local Janitor janitor;
  (void)&janitor;
  const std::lock_guard lock(shared.mutex);
  cache.next = shared.threads;
  shared.threads = &cache;
  cache.state = CacheState::kLive;
}

void CountInUse(int64_t bytes) {  // with the mutex held
  if (cache.state == CacheState::kLive) {
    cache.in_use.Add(bytes);
  } else {
    shared.in_use_of_dead += bytes;
  }
}

[[gnu::noinline]] Storage* AllocateSlow(int size_class, size_t used) {
  if (cache.state == CacheState::kNew) RegisterThread();
  const int64_t bytes = BlockBytes(size_class);
  const std::lock_guard lock(shared.mutex);
  CountInUse(bytes);
  shared.peak = std::max(shared.peak, shared.InUse());
  FreeList& list = shared.lists[static_cast<size_t>(size_class)];
  list.last_used = ++shared.clock;
  if (list.head != nullptr) {
    shared.cached -= bytes;
    Storage* storage = list.Pop();
    if (size_class < kLocalClasses && cache.state == CacheState::kLive) {
      for (int32_t i = 1; i < kBatch && list.head != nullptr; ++i) {
        cache.lists[static_cast<size_t>(size_class)].Push(list.Pop());
        cache.cached.Add(bytes);
        shared.cached -= bytes;
      }
    }
    return storage;
  }
  ++shared.system_calls;
  return FromSystem(size_class, used);
}

[[gnu::noinline]] void FreeSlow(Storage* storage) {
  if (cache.state == CacheState::kNew) RegisterThread();
  const int64_t bytes = BlockBytes(storage->size_class);
  if (storage->size_class < kLocalClasses && cache.state == CacheState::kLive) {
    FreeList& list = cache.lists[static_cast<size_t>(storage->size_class)];
    list.Push(storage);
    cache.in_use.Add(-bytes);
    cache.cached.Add(bytes);
    if (cache.cached.value() > kLocalBytes) FlushToShared(list);
    return;
  }
  const std::lock_guard lock(shared.mutex);
  CountInUse(-bytes);
  PushShared(storage);
}

}  // namespace

Storage* AllocateStorage(size_t bytes) {
  if (bytes > static_cast<size_t>(PayloadOf(kClasses - 1))) throw std::bad_alloc();
  const int size_class = ClassOf(bytes);
  Storage* storage = nullptr;
  if (size_class < kLocalClasses && cache.lists[static_cast<size_t>(size_class)].head != nullptr)
      [[likely]] {
    storage = cache.lists[static_cast<size_t>(size_class)].Pop();
    cache.in_use.Add(BlockBytes(size_class));
    cache.cached.Add(-BlockBytes(size_class));
  } else {
    storage = AllocateSlow(size_class, bytes);
  }
  storage->references.store(1, std::memory_order_relaxed);
  Unpoison(storage, bytes);
  return storage;
}

void FreeStorage(Storage* storage) {
  Poison(storage);
  const int64_t bytes = BlockBytes(storage->size_class);
  if (storage->size_class < kLocalClasses && cache.state == CacheState::kLive &&
      cache.cached.value() + bytes <= kLocalBytes) [[likely]] {
    cache.lists[static_cast<size_t>(storage->size_class)].Push(storage);
    cache.in_use.Add(-bytes);
    cache.cached.Add(bytes);
    return;
  }
  FreeSlow(storage);
}

void FreeCachedMemory() {
  for (FreeList& list : cache.lists) FlushToShared(list);
  const std::lock_guard lock(shared.mutex);
  for (FreeList& list : shared.lists) {
    while (list.head != nullptr) {
      shared.cached -= BlockBytes(list.head->size_class);
      ToSystem(list.Pop());
    }
  }
  shared.peak = shared.InUse();
}

AllocatorStatistics TensorAllocator() {
  const std::lock_guard lock(shared.mutex);
  AllocatorStatistics statistics{.bytes_in_use = shared.InUse(),
                                 .bytes_cached = shared.cached,
                                 .system_calls = shared.system_calls};
  for (const ThreadCache* thread = shared.threads; thread != nullptr; thread = thread->next) {
    statistics.bytes_cached += thread->cached.value();
  }
  return statistics;
}

}  // namespace weft
