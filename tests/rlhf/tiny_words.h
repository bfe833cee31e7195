// A chat model of random weights whose answers end with <|im_end|>, as a folder, and prompts for
// it.
#pragma once

#include <string>

#include "base/file.h"
#include "tests/program/tiny_chat_model.h"

namespace weft {

inline void WriteTinyModel(const std::string& folder, const std::string& chat_template = "") {
  WriteTinyChatModel(folder, 512);
  const std::string path = folder + "/tokenizer_config.json";
  JsonValue config = ReadJsonFile(path);
  config.Set("eos_token", JsonValue("<|im_end|>"));
  if (!chat_template.empty()) config.Set("chat_template", JsonValue(chat_template));
  WriteFileAtomic(path, config.ToText());
}

// Six short chats, one a line.
inline void WritePrompts(const std::string& path) {
  std::string prompts;
  for (const char* word : {"one", "two and three", "four", "five six seven", "8", "nine"}) {
    prompts += R"({"prompt":[{"role":"user","content":")" + std::string(word) + "\"}]}\n";
  }
  WriteFileAtomic(path, prompts);
}

}  // namespace weft
