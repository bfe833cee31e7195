// Parquet files as the JSON lines that their rows would be, so that all else sees one kind of file.
// Apache Arrow reads them, in a library of its own (rlhf/parquet_library.cc) that is loaded when
// the first such file is met.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/file.h"

namespace weft {

bool IsParquet(std::span<const uint8_t> file);

// Line n is row n, with those of its columns that are named (in any case; a null is left out). The
// text lies in a file without a name in the folder for temporary files, which goes with the result.
// Throws, naming path, Error(kUnavailable) where the library is not built, Error(kCorrupt) for a
// file that is damaged or whose columns have values that JSON has not (binary, times, maps), and
// Error(kIo) where the text finds no room. Takes 5 s a GB of text.
std::unique_ptr<MappedFile> ParquetAsJsonLines(const std::string& path,
                                               std::span<const uint8_t> file,
                                               std::span<const char* const> columns);

// "" where Parquet files can be read, or why not and what to do.
std::string WhyNoParquet();

}  // namespace weft
