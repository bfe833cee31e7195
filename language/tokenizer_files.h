// The files of a tokenizer in a Hugging Face folder, made from or turned into what a GGUF carries.
// A GGUF that weft writes holds tokenizer.json itself too (tokenizer.huggingface.json), so nothing
// is lost on the way back.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "language/gguf.h"
#include "language/gguf_tokenizer.h"
#include "language/gguf_writer.h"

namespace weft {

// Whether the folder has a tokenizer.json. Error(kInvalidArgument) when it has a tokenizer in
// another form only (tokenizer.model, vocab.json), which weft does not read.
bool HasTokenizer(const std::string& folder);
bool HasTokenizer(const GgufFile& file);

// A folder's tokenizer in GGUF's words, with `vocabulary` tokens at least ("[PAD7]" fills gaps). A
// kind that GGUF has no words for is Error(kInvalidArgument) naming file and member.
GgufTokenizer MakeGgufTokenizer(const std::string& folder, int64_t vocabulary);

void SetGgufTokenizer(const GgufTokenizer& tokenizer, GgufWriter& writer);

// The text of a tokenizer.json; file stands for the tokenizer in messages.
std::string TokenizerJson(GgufTokenizer tokenizer, const std::string& file);

// File names and contents: tokenizer.json and tokenizer_config.json. context: what
// model_max_length says.
using TextFiles = std::vector<std::pair<std::string, std::string>>;
TextFiles MakeTokenizerFiles(const GgufFile& file, int64_t context);

// The tokenizer's files of a folder, as they are.
TextFiles CopyTokenizerFiles(const std::string& folder);

}  // namespace weft
