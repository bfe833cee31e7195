// The inside of a Tokenizer: its parts, tables made from them, and buffers for threads.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "language/tokenizer/tokenizer_parts.h"
#include "language/tokenizer/word_cache.h"

namespace weft {

struct Tokenizer::Engine {
  // What one encoding at a time needs; kept from call to call for its memory and its words.
  struct Scratch {
    AlignedText text, slice;
    std::vector<AddedTokenMatcher::Found> raw, normalised;
    std::vector<Piece> pieces;
    PreTokenizerScratch pre_tokenizer;
    MergeScratch merge;
    std::vector<Token> tokens;
    WordCache cache;
  };
  struct Sink;  // what an encoding is written to

  // Throws Error(kCorrupt) when ids of the parts are no tokens.
  Engine(std::unique_ptr<TokenizerParts> made_of, const std::string& file);

  void Encode(std::string_view text, const EncodeOptions& options, Sink& sink) const;
  std::string_view Text(int32_t id) const;
  // What decoders see: Text, normalised for an added token that is looked for in normalised text.
  std::string_view Spelling(int32_t id) const;
  const AddedToken* Added(int32_t id) const;  // null for a token of the model

  const std::unique_ptr<TokenizerParts> parts;
  int32_t size = 0;

 private:
  void EncodeSegment(Scratch& scratch, const EncodeOptions& options, Sink& sink) const;
  void EncodeWords(AlignedText& text, Scratch& scratch, Sink& sink) const;
  void EncodeWord(const AlignedText& text, Piece word, Scratch& scratch, Sink& sink) const;
  std::unique_ptr<Scratch> Borrow() const;
  void Return(std::unique_ptr<Scratch> scratch) const;

  AddedTokenMatcher raw_, normalised_;
  std::vector<int32_t> added_;        // by id: index in parts->added, or -1
  std::vector<std::string> spelled_;  // by that index
  bool cuts_at_marker_ = false;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Scratch>> idle_;
};

}  // namespace weft
