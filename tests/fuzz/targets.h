// What is fed with damaged and arbitrary bytes: every reader of files that come from elsewhere, as
// far as a file of its kind goes. libFuzzer drives them (fuzz_main.cc, docs/model_files.md), and
// tests with fixed seeds.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace weft::fuzz {

struct Target {
  std::string_view name;
  // Whether the bytes are a file of the kind; false after an Error. All else, such as another
  // exception or a result that breaks a promise, leaves or ends the program.
  bool (*read)(std::span<const uint8_t> bytes);
};

// safetensors, gguf, tokenizer, template, config, encoder (the JSON files of a text encoder, with a
// line of -- between them) and yaml.
std::span<const Target> Targets();
// Null when there is none of that name.
const Target* FindTarget(std::string_view name);

}  // namespace weft::fuzz
