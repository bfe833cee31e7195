// Small tokenizer files for tests.
#pragma once

#include <string>

namespace weft {

// Byte-level BPE of GPT-2's kind: a, b, c, space, four merges and a control token.
inline std::string SmallTokenizerJson() {
  return R"({"added_tokens": [{"id": 9, "content": "<|end|>", "special": true}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    "post_processor": null,
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "dropout": null, "unk_token": null,
      "vocab": {"a": 0, "b": 1, "c": 2, "Ġ": 3, "ab": 4, "abc": 5, "Ġa": 6, "Ã": 7, "©": 8,
                "bc": 10, "aa": 11, "aaaa": 12},
      "merges": ["Ġ a", ["a", "b"], "ab c", ["b", "c"], "a a", "aa aa"]}})";
}

// The first `from` of SmallTokenizerJson replaced by `to`.
inline std::string SmallTokenizerWith(const std::string& from, const std::string& to) {
  std::string text = SmallTokenizerJson();
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace weft
