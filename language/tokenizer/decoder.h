// The decoders of tokenizer files: from the spelling of tokens back to text. A chain of steps that
// take one token at a time, so a stream and a whole text are decoded by the same code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "language/tokenizer/normaliser.h"

namespace weft {

struct DecoderStep {
  enum class Kind : uint8_t {
    kByteLevel,     // bytes spelled as code points; ill-formed text becomes U+FFFD
    kByteFallback,  // runs of <0xHH>
    kFuse,          // from here on all is one token
    kReplace,       // pattern by content
    kStrip,         // content (a code point): up to start from the front, up to stop from the back
    kMetaspace,     // content to spaces; drop_first: nothing in the first token
    kWordPiece,     // a space before tokens without the prefix `content`; cleanup of English
    kBpeSuffix,     // content at the end of a word to a space
    kJoin,          // a space between tokens: files without a decoder
  };
  Kind kind = Kind::kJoin;
  Pattern pattern;
  std::string content;
  int64_t start = 0, stop = 0;
  bool drop_first = false, cleanup = false;
  bool fused = false;  // stands behind a kFuse
};

class DecodeState {
 public:
  explicit DecodeState(const std::vector<DecoderStep>& steps) : steps_(&steps) { Reset(); }

  void Add(std::string_view token, std::string& out) { Push(0, token, out); }
  // Gives out what is held back and begins anew.
  void Finish(std::string& out);

 private:
  struct Held {
    int64_t tokens = 0;  // seen so far; code points stripped by a fused kStrip
    bool begun = false;
    std::string text;
  };
  void Reset() { held_.assign(steps_->size(), Held{}); }
  void Push(size_t step, std::string_view token, std::string& out);
  void PushStripped(size_t step, std::string_view token, std::string& out);
  void ReleaseBytes(size_t step, std::string& out);

  const std::vector<DecoderStep>* steps_;
  std::vector<Held> held_;  // one per step
};

}  // namespace weft
