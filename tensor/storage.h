// The memory behind tensors: blocks with an intrusive reference count, handed out by a caching
// allocator. A block given back goes to a list of the thread that dropped it, so a step that
// repeats asks neither malloc nor the system. What a thread's lists cannot hold goes to lists that
// all threads share; what those cannot hold goes back to the system.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft {

class Tensor;

// The header in front of the elements. Blocks are aligned to 64 bytes, from 2 MiB on to 2 MiB with
// huge pages advised.
struct alignas(64) Storage {
  std::atomic<int32_t> references{1};
  int32_t size_class = 0;
  std::atomic<uint64_t> version{0};  // moved by whoever writes elements in place
  Storage* parent = nullptr;         // of a part: the block that holds the elements
  Tensor* transposed = nullptr;      // the other packing of a weight, made at transposed_version
  uint64_t transposed_version = 0;
  Storage* next = nullptr;  // in a free list

  std::byte* payload() { return reinterpret_cast<std::byte*>(this + 1); }
};

// A block with room for `bytes`, one reference, content undefined. Thread-safe. Throws
// std::bad_alloc.
Storage* AllocateStorage(size_t bytes);
// Gives back a block that nobody references any more. Thread-safe.
void FreeStorage(Storage* storage);

}  // namespace weft
