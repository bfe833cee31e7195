// Keys for hashing positions (Zobrist 1970): a position's hash is the exclusive or of the keys of
// what is on the board.
#pragma once

#include <cstdint>

namespace weft {

// A bijection of 64 bits that scatters them: the finaliser of SplitMix64 (Steele et al. 2014).
constexpr uint64_t Scatter(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
  return bits ^ (bits >> 31);
}

// The key of thing number `index`; computed, as a table would take as long to read.
constexpr uint64_t ZobristKey(uint64_t index) {
  return Scatter((index + 1) * 0x9E3779B97F4A7C15u);
}

}  // namespace weft
