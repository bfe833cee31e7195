// What the kernel tests share: contexts of every instruction set and thread count, numbers to feed,
// equality of bits.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "tensor/context.h"

namespace weft {

inline std::vector<Isa> IsaLevels() {
  std::vector<Isa> levels;
  for (const Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
    if (isa <= BestIsa()) levels.push_back(isa);
  }
  return levels;
}

// body(context) at every level with 1, 2 and 3 threads.
template <class F>
void ForEveryContext(F&& body) {
  static ThreadPool two(2), three(3);
  for (const Isa isa : IsaLevels()) {
    for (ThreadPool* pool : {static_cast<ThreadPool*>(nullptr), &two, &three}) {
      SCOPED_TRACE(std::string(Name(isa)) + ", threads " +
                   std::to_string(pool == nullptr ? 1 : pool->threads()));
      body(Context{.pool = pool, .isa = isa});
    }
  }
}

// Numbers from a fixed sequence, in (-scale, scale).
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed * 2 + 1) {}
  float Next(float scale = 1) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return scale * (static_cast<float>(state_ >> 40) / 8388608.0f - 1.0f);
  }
  std::vector<float> Vector(int64_t count, float scale = 1) {
    std::vector<float> values(count);
    for (float& value : values) value = Next(scale);
    return values;
  }

 private:
  uint64_t state_;
};

// Same bits, where any NaN equals any other.
inline testing::AssertionResult SameBits(const std::vector<float>& got,
                                         const std::vector<float>& want) {
  if (got.size() != want.size()) return testing::AssertionFailure() << "sizes differ";
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(want[i])) continue;
    if (std::bit_cast<uint32_t>(got[i]) != std::bit_cast<uint32_t>(want[i])) {
      return testing::AssertionFailure() << "element " << i << " of " << got.size() << ": "
                                         << std::hexfloat << got[i] << " instead of " << want[i];
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace weft
