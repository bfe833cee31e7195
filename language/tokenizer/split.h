// Cutting a text into pieces at matches of a pattern, by the five behaviours of tokenizer files.
#pragma once

#include <cstdint>
#include <vector>

namespace weft {

// Bytes [begin, end) of a text.
struct Piece {
  uint32_t begin, end;
};

// A piece that a pattern matches or one between matches.
struct Match {
  Piece piece;
  bool matches;
};

enum class SplitBehaviour : uint8_t {
  kIsolated,            // each match a piece of its own
  kRemoved,             // matches are dropped
  kMergedWithPrevious,  // a match joins the gap before it
  kMergedWithNext,      // a match joins the gap behind it
  kContiguous,          // neighbours of one kind join
};

// Appends the pieces, empty ones left out. matches are in order and cover the text.
void ApplyBehaviour(std::vector<Match>& matches, SplitBehaviour behaviour, bool invert,
                    std::vector<Piece>& out);

}  // namespace weft
