// U+2581, which SentencePiece writes for a space.
#pragma once

#include <string_view>

namespace weft {

inline constexpr std::string_view kSpaceMarker = "\xE2\x96\x81";

// True when text has a marker directly behind something else than a marker.
inline bool HasInnerMarker(std::string_view text) {
  for (size_t at = text.find(kSpaceMarker); at != std::string_view::npos;
       at = text.find(kSpaceMarker, at + kSpaceMarker.size())) {
    if (at > 0 && !text.substr(0, at).ends_with(kSpaceMarker)) return true;
  }
  return false;
}

}  // namespace weft
