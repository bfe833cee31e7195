// Tokenizers and chat templates against the recordings of the original libraries: everything has to
// be equal. docs/tokenizers.md and docs/chat_templates.md have the formats. A report counts cases;
// its field is named by the first that differs, and its tolerance is none.
#pragma once

#include <string>

#include "base/comparison.h"
#include "language/template/chat_template.h"
#include "language/tokenizer/tokenizer.h"

namespace weft {

// The tokenizer and the template of a path: a folder, a file of a folder, or a .gguf.
Tokenizer LoadAnyTokenizer(const std::string& path);
ChatTemplate LoadAnyTemplate(const std::string& path);

// cases: a .jsonl file of texts with ids, or of ids with texts; or a folder with cases.jsonl and
// decode_cases.jsonl. Throws Error when a file cannot be read or is of another form.
VerifyReport VerifyTokenizer(const std::string& path, const std::string& cases);

// expected: an expected.json, whose conversations.json lies beside it or one folder up.
VerifyReport VerifyTemplate(const std::string& path, const std::string& expected);
// Templates with variables and results in one file.
VerifyReport VerifyTemplates(const std::string& file);

// Every tokenizer, GGUF vocabulary and template of a folder of the form of reference/language.
VerifyReport VerifyTexts(const std::string& folder);

}  // namespace weft
