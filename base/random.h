// Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").
// A generator is three integers (seed, stream, position), so draws depend on neither placement nor thread, and a
// checkpoint that stores the three resumes exactly. Nothing else in weft makes random numbers.
#pragma once

#include <array>
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
};

class Rng {
 public:
  struct State {
    uint64_t seed = 0, stream = 0, position = 0;  // position counts 32-bit draws
    bool operator==(const State&) const = default;
  };

  Rng() = default;
  Rng(uint64_t seed, Purpose purpose, uint64_t index = 0)
      : Rng(State{seed, (static_cast<uint64_t>(purpose) << 40) + index, 0}) {}
  explicit Rng(const State& state) : state_(state) {}

  const State& state() const { return state_; }

  uint32_t NextU32();
  uint64_t NextU64();
  double Uniform();                        // [0, 1), 53 bits; two draws
  double Uniform(double low, double high);  // [low, high)
  float UniformFloat();                    // [0, 1), 24 bits; one draw
  double Normal();                         // mean 0, standard deviation 1; four draws, own log and sincos
  uint64_t Below(uint64_t n);              // [0, n), unbiased; n > 0

  void FillUniform(std::span<float> out);  // each in [0, 1), as UniformFloat
  void FillNormal(std::span<float> out);   // Box-Muller pairs; four draws a pair
  void Shuffle(std::span<int64_t> values);  // Fisher-Yates

 private:
  State state_;
  uint64_t block_ = ~uint64_t{0};  // index of the block in draws_, ~0 when none
  std::array<uint32_t, 4> draws_{};
};

// One Philox4x32-10 block.
std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

}  // namespace weft
