// The program as a library: a user's own binary that links weft::main, or calls Main itself, is a
// full weft with its own registrations; worker processes start the same executable again.
#pragma once

#include <cstdint>

namespace weft {

// Runs the subcommand in argv and returns the exit status: 0 done, 75 checkpointed and to be
// started again, 70 internal, 78 configuration, 65 diverged, 130 stopped before anything was there
// to save. allocations: how many operator new has made so far on this thread, where a program
// counts them.
int Main(int argc, char** argv, int64_t (*allocations)() = nullptr);

}  // namespace weft
