// Tokens that stand beside the model: found in the text before it is cut into words, and never cut
// themselves. Special ones (control tokens) are left out when decoding for people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "language/tokenizer/split.h"

namespace weft {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;
  bool single_word = false;             // only where no word character touches it
  bool lstrip = false, rstrip = false;  // takes the white space before or behind it along
  bool normalised = false;              // looked for in the normalised text, itself normalised
};

// Finds the leftmost of many texts, of those the longest.
class AddedTokenMatcher {
 public:
  // Looks for `text`, which is not empty, as tokens[index]; of equal texts the last counts.
  void Add(std::string_view text, uint32_t index);
  bool empty() const { return nodes_.empty(); }

  struct Found {
    Piece piece;
    int32_t token;  // index of the added token, -1 for text between them
  };
  // Appends what covers text, in order, by the rules of the tokens' flags. With skip_special,
  // special tokens are plain text.
  void Split(std::string_view text, const std::vector<AddedToken>& tokens, bool skip_special,
             std::vector<Found>& out) const;

 private:
  struct Node {
    uint32_t child = 0, sibling = 0;  // 0: none
    int32_t token = -1;
    char byte = 0;
  };
  struct Hit {
    int32_t token = -1;
    size_t end = 0;
  };
  Hit LongestAt(std::string_view text, size_t position) const;
  // Where the next token may begin.
  size_t NextCandidate(std::string_view text, size_t position) const;

  std::vector<Node> nodes_;  // a trie, nodes_[0] its root
  bool begins_[256] = {};    // first bytes
  std::string first_bytes_;
};

}  // namespace weft
