// What libweft_parquet.so has for libweft.so: one C function, so that Arrow's headers and libraries
// are needed by that file alone, and by nobody who reads no Parquet.
#pragma once

#include <cstdint>

extern "C" {

// Takes whole lines, each with its end; false: no more are wanted.
using WeftTakeLines = bool (*)(void* taker, const char* lines, uint64_t bytes);

// The rows of a Parquet file, each a JSON object on a line of its own, in the file's order. Only
// columns named in `columns` are read, in whatever case they are written; a null is an absent key.
// Returns null or, until the thread's next call, what is wrong with the file.
using WeftReadParquetFunction = const char* (*)(const uint8_t* file, uint64_t bytes,
                                                const char* const* columns, uint64_t column_count,
                                                WeftTakeLines take, void* taker);
}

namespace weft {

inline constexpr const char* kParquetLibrary = "libweft_parquet.so";
inline constexpr const char* kReadParquet = "WeftReadParquet";

}  // namespace weft
