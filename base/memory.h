// How much memory this process may take, and takes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace weft {

// What may still be taken, in bytes: the system's MemAvailable, or less where a control group
// (version 1 or 2) that holds the process leaves less; file pages count as free. -1 where the
// system does not say. root: what stands before /proc and /sys, for tests.
int64_t FreeMemory(const std::string& root = "");

// Takes a file's mapped bytes (base/file.h) out of the resident set; whoever reads them again has
// them read again, from the page cache as a rule.
void ReleasePages(std::span<const uint8_t> mapped);

// The largest resident set so far, in bytes: of this process, or of the largest child that ended.
int64_t PeakMemory();

}  // namespace weft
