// Small text helpers shared by messages to users.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// "; did you mean "gamma"?" for the nearest of choices by edit distance, "" if none is near.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& choices);

std::string Join(const std::vector<std::string>& words, std::string_view separator);

// 64-bit FNV-1a, for names and structural keys; never for security.
uint64_t Fnv1a(std::string_view bytes, uint64_t seed = 14695981039346656037ULL);

// 1234567.0 -> "1.23M", 950 -> "950".
std::string HumanCount(double value);
// 75.2 -> "1m 15s".
std::string HumanSeconds(double seconds);
// 1536 -> "1.5 KiB".
std::string HumanBytes(double bytes);

}  // namespace weft
