// CRC-32C (Castagnoli polynomial, RFC 3720 appendix B.4) and SHA-256 (FIPS 180-4).
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/file.h"

#include "base/check.h"

namespace weft {
namespace {

constexpr auto kCrcTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? (crc >> 1) ^ 0x82F63B78 : crc >> 1;
    table[byte] = crc;
  }
  return table;
}();

uint32_t CrcByTable(uint32_t crc, std::span<const uint8_t> bytes) {
  for (const uint8_t byte : bytes) crc = (crc >> 8) ^ kCrcTable[(crc ^ byte) & 0xFF];
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t CrcByInstruction(uint32_t crc,
                                                            std::span<const uint8_t> bytes) {
  uint64_t wide = crc;
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  auto narrow = static_cast<uint32_t>(wide);
  for (; i < bytes.size(); ++i) narrow = _mm_crc32_u8(narrow, bytes[i]);
  return narrow;
}
#endif

uint32_t CrcUpdate(uint32_t crc, std::span<const uint8_t> bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return CrcByInstruction(crc, bytes);
#endif
  return CrcByTable(crc, bytes);
}

// FIPS 180-4, section 4.2.2: fractional parts of the cube roots of the first 64 primes.
constexpr std::array<uint32_t, 64> kShaRounds = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void ShaBlock(std::array<uint32_t, 8>& hash, const uint8_t* block) {
  std::array<uint32_t, 64> w;
  for (int t = 0; t < 16; ++t) {
    w[t] = uint32_t{block[4 * t]} << 24 | uint32_t{block[4 * t + 1]} << 16 |
           uint32_t{block[4 * t + 2]} << 8 | uint32_t{block[4 * t + 3]};
  }
  for (int t = 16; t < 64; ++t) {
    const uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    const uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = hash;
  for (int t = 0; t < 64; ++t) {
    const uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + kShaRounds[t] + w[t];
    const uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const std::array<uint32_t, 8> sum = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) hash[i] += sum[i];
}

}  // namespace

uint32_t Crc32c(std::span<const uint8_t> bytes, uint32_t seed) {
  return ~CrcUpdate(~seed, bytes);
}

FileSum SumOfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorCode::kIo, path + ": cannot be read");
  FileSum sum;
  std::vector<char> piece(size_t{1} << 20);
  while (file.read(piece.data(), std::ssize(piece)), file.gcount() > 0) {
    const auto count = static_cast<size_t>(file.gcount());
    sum.crc32c = Crc32c({reinterpret_cast<const uint8_t*>(piece.data()), count}, sum.crc32c);
    sum.bytes += count;
  }
  if (file.bad()) throw Error(ErrorCode::kIo, path + ": cannot be read to its end");
  return sum;
}

std::string Sha256(std::span<const uint8_t> bytes) {
  std::array<uint32_t, 8> hash = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  size_t done = 0;
  for (; done + 64 <= bytes.size(); done += 64) ShaBlock(hash, bytes.data() + done);
  // The tail: the rest, one bit, zeros, the length in bits as 64-bit big-endian.
  std::array<uint8_t, 128> tail{};
  const size_t rest = bytes.size() - done;
  if (rest > 0) std::memcpy(tail.data(), bytes.data() + done, rest);
  tail[rest] = 0x80;
  const size_t tail_size = rest < 56 ? 64 : 128;
  const uint64_t bits = uint64_t{bytes.size()} * 8;
  for (size_t i = 0; i < 8; ++i) tail[tail_size - 1 - i] = static_cast<uint8_t>(bits >> (8 * i));
  for (size_t i = 0; i < tail_size; i += 64) ShaBlock(hash, tail.data() + i);

  std::string text;
  for (const uint32_t word : hash) {
    for (int shift = 28; shift >= 0; shift -= 4) text += "0123456789abcdef"[(word >> shift) & 15];
  }
  return text;
}

}  // namespace weft
