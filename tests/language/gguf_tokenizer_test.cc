#include "language/gguf_tokenizer.h"

#include <gtest/gtest.h>

#include "language/gguf.h"
#include "tests/nn/reference.h"

namespace weft {
namespace {

TEST(GgufTokenizer, ReadsAByteLevelOne) {
  WEFT_REQUIRE_REFERENCE();
  const GgufFile file(ReferencePath("language/gguf/gpt2-f32.gguf"));
  const GgufTokenizer tokenizer = ReadGgufTokenizer(file);
  EXPECT_EQ(tokenizer.model, "gpt2");
  EXPECT_EQ(tokenizer.pre, "gpt-2");
  ASSERT_EQ(tokenizer.tokens.size(), 320u);
  EXPECT_EQ(tokenizer.tokens[2], "<|endoftext|>");
  EXPECT_EQ(tokenizer.types[2], static_cast<int32_t>(GgufTokenType::kControl));
  EXPECT_EQ(tokenizer.merges[4], "e r");
  EXPECT_TRUE(tokenizer.scores.empty());
  EXPECT_EQ(tokenizer.bos, 1);
  EXPECT_EQ(tokenizer.eos, 2);
  EXPECT_EQ(tokenizer.padding, 0);
  EXPECT_EQ(tokenizer.unknown, -1);
  EXPECT_EQ(tokenizer.add_bos, false);
  EXPECT_FALSE(tokenizer.add_space_prefix.has_value());
  EXPECT_TRUE(tokenizer.chat_template.starts_with("{% for m in messages %}"));
}

TEST(GgufTokenizer, ReadsASentencePieceOne) {
  WEFT_REQUIRE_REFERENCE();
  const GgufFile file(ReferencePath("language/gguf/llama_gqa_untied-f32.gguf"));
  const GgufTokenizer tokenizer = ReadGgufTokenizer(file);
  EXPECT_EQ(tokenizer.model, "llama");
  EXPECT_EQ(tokenizer.scores.size(), tokenizer.tokens.size());
  EXPECT_EQ(tokenizer.types[3], static_cast<int32_t>(GgufTokenType::kByte));
  EXPECT_EQ(tokenizer.unknown, 0);
  EXPECT_EQ(tokenizer.add_bos, true);
  EXPECT_EQ(tokenizer.add_space_prefix, true);
}

TEST(GgufTokenizer, RefusesInconsistentOnes) {
  WEFT_REQUIRE_REFERENCE();
  for (const char* name : {"types_length_differs", "bos_out_of_range"}) {
    const GgufFile file(
        ReferencePath(std::string("hostile/gguf/tokenizer_keys-") + name + ".gguf"));
    EXPECT_THROW(ReadGgufTokenizer(file), Error) << name;
  }
}

}  // namespace
}  // namespace weft
