// Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as
// easy as 1, 2, 3"). A generator is three integers (seed, stream, position), so draws depend on
// neither placement nor thread, and a checkpoint that stores the three resumes exactly. Nothing
// else in weft makes random numbers. No result depends on libm, whose last bits differ between
// machines.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>

namespace weft {

// What a stream is for. Streams of different purposes never meet, whatever the row.
enum class Purpose : uint32_t {
  kEnvironment = 1,  // index: global environment row
  kAction,           // index: global environment row
  kExploration,      // index: global environment row
  kLearner,          // index: 0
  kReplay,           // index: 0
  kInitialise,       // index: module number
  kEvaluation,       // index: evaluation row; disjoint from kEnvironment
  kTest,
  kEvaluationAction,  // index: evaluation row
  kSampling,          // index: sample; position: two draws for each token
};

// One Philox4x32-10 block: four 32-bit numbers that depend on all bits of counter and key.
// Constants of the paper's reference implementation.
constexpr std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter,
                                         std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

// One stream. A value of 48 bytes, copied freely; not thread-safe. Draw number p of a stream is
// word p % 4 of the Philox block with counter (p / 4, stream) and key seed.
// The seed of what was started again after a crash, so that it does not live through the same
// numbers twice; the first incarnation is 0 and keeps the run's seed.
constexpr uint64_t SeedOf(uint64_t seed, int incarnation) {
  return seed + static_cast<uint64_t>(incarnation) * 0x9E3779B97F4A7C15u;
}

class Rng {
 public:
  struct State {
    uint64_t seed = 0, stream = 0, position = 0;  // position counts 32-bit draws
    bool operator==(const State&) const = default;
  };

  Rng() = default;
  // index < 2^40.
  Rng(uint64_t seed, Purpose purpose, uint64_t index = 0)
      : Rng(State{seed, (static_cast<uint64_t>(purpose) << 40) + index, 0}) {}
  explicit Rng(const State& state) : state_(state) {}

  const State& state() const { return state_; }

  uint32_t NextU32() {
    const uint64_t block = state_.position / 4;
    if (block != block_) Refill(block);
    return draws_[state_.position++ % 4];
  }
  // Two draws, the first in the low half.
  uint64_t NextU64() {
    const uint64_t low = NextU32();
    return low | uint64_t{NextU32()} << 32;
  }
  // [0, 1), 53 bits; two draws.
  double Uniform() { return static_cast<double>(NextU64() >> 11) * 0x1p-53; }
  // [low, high), or low when both are equal; two draws.
  double Uniform(double low, double high) {
    const double value = low + (high - low) * Uniform();
    return value < high ? value : std::nextafter(high, low);  // the sum may round up to high
  }
  // [0, 1), 24 bits; one draw.
  float UniformFloat() { return static_cast<float>(NextU32() >> 8) * 0x1p-24f; }
  // Mean 0, standard deviation 1 (Box-Muller, the cosine half); four draws.
  double Normal();
  // [0, n), unbiased (Lemire 2019, "Fast random integer generation in an interval"); n > 0. One
  // draw for n < 2^32, two above, more with a probability below n / 2^32 (n / 2^64).
  uint64_t Below(uint64_t n);

  void FillUniform(std::span<float> out);   // each in [0, 1), as UniformFloat
  void FillNormal(std::span<float> out);    // Box-Muller pairs (cosine, sine); four draws a pair
  void Shuffle(std::span<int64_t> values);  // Fisher-Yates from the last element down

 private:
  void Refill(uint64_t block) {
    block_ = block;
    draws_ =
        Philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                static_cast<uint32_t>(state_.stream), static_cast<uint32_t>(state_.stream >> 32)},
               {static_cast<uint32_t>(state_.seed), static_cast<uint32_t>(state_.seed >> 32)});
  }

  State state_;
  uint64_t block_ = ~uint64_t{0};  // index of the block in draws_, ~0 when none
  std::array<uint32_t, 4> draws_{};
};

}  // namespace weft
