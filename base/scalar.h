// Text to numbers and back, as configs and the command line spell them. Every reader returns "" and
// fills value, or returns the reason, worded to follow the key ("must be a whole number, not
// \"abc\""), and leaves value alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

// Whole numbers in decimal (1_000_000, 1e6, 2048.0 are whole) or hexadecimal (0x40). A leading zero
// is refused, since YAML 1.1 reads 0256 as octal and YAML 1.2 as decimal.
std::string ParseNumber(std::string_view text, int64_t& value);
std::string ParseNumber(std::string_view text, uint64_t& value);
// Decimal, also .5, 1., 1e-4, .inf; correctly rounded. Neither .nan nor what overflows or vanishes.
std::string ParseNumber(std::string_view text, double& value);
// true or false alone: on, yes and 1 are refused with advice.
std::string ParseBool(std::string_view text, bool& value);

// The shortest text that ParseNumber reads back to the same double.
std::string NumberText(double value);

}  // namespace weft
