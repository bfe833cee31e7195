#include "language/tokenizer/split.h"

#include <cstddef>

namespace weft {

void ApplyBehaviour(std::vector<Match>& matches, SplitBehaviour behaviour, bool invert,
                    std::vector<Piece>& out) {
  const size_t first = out.size();
  bool last_matches = false;
  const auto joins = [&](bool match) {
    switch (behaviour) {
      case SplitBehaviour::kMergedWithPrevious:
        return match && !last_matches;
      case SplitBehaviour::kMergedWithNext:
        return last_matches && !match;
      case SplitBehaviour::kContiguous:
        return match == last_matches;
      default:
        return false;
    }
  };
  for (const Match& found : matches) {
    const bool match = found.matches != invert;
    if (out.size() > first && joins(match)) {
      out.back().end = found.piece.end;
    } else if (!match || behaviour != SplitBehaviour::kRemoved) {
      out.push_back(found.piece);
    }
    last_matches = match;
  }
  std::erase_if(out, [](const Piece& piece) { return piece.begin == piece.end; });
}

}  // namespace weft
