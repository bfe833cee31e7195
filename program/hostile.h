// Loads one file of a named format in a child process with limits on time and memory, as weft
// itself would load it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

struct HostileLimits {
  double seconds = 2;
  int64_t extra_bytes = 64 << 20;  // address space beyond what the program has when it starts
};

struct HostileOutcome {
  enum class Kind : uint8_t {
    kAccepted,
    kRefused,      // an Error that names the file
    kUnnamed,      // an Error that does not
    kOutOfMemory,  // beyond the limit
    kOutOfTime,
    kCrashed,
  };
  Kind kind = Kind::kCrashed;
  std::string message;  // of the Error, or what happened
  double seconds = 0;
};
std::string_view Name(HostileOutcome::Kind kind);  // "accepted", "refused", ...

// Whether weft reads files of this format: "safetensors", "gguf", "config.json",
// "model.safetensors.index.json", "tokenizer.json", "yaml", "jinja".
bool ReadsFormat(std::string_view format);

// format is one that weft reads. To be called before this process starts threads.
HostileOutcome LoadInChild(const std::string& format, const std::string& path,
                           const HostileLimits& limits);

}  // namespace weft
