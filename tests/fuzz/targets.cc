#include "tests/fuzz/targets.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/config.h"
#include "base/file.h"
#include "base/utf8.h"
#include "language/encoder_config.h"
#include "language/gguf.h"
#include "language/gguf_config.h"
#include "language/gguf_tokenizer.h"
#include "language/hf_config.h"
#include "language/json.h"
#include "language/stored_tensors.h"
#include "language/template/chat_template.h"
#include "language/tokenizer/tokenizer.h"
#include "nn/safetensors.h"

namespace weft::fuzz {
namespace {

std::string_view Text(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Ends the program: libFuzzer keeps the bytes, a test fails.
void Promise(bool kept, const char* what) {
  if (kept) return;
  std::fprintf(stderr, "a reader broke its promise: %s\n", what);
  std::abort();
}

// An Error must say something; nothing else may leave a reader.
template <class F>
bool Reads(F&& read) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    Promise(!error.message().empty(), "an Error has a message");
    return false;
  }
}

void Use(const Tokenizer& tokenizer) {
  for (const char* text : {"abc <s> d", "caf\xC3\xA9\n\n 12 \xFF"}) {
    const Encoding encoding = tokenizer.EncodeWithOffsets(text, {.add_special = true});
    Promise(encoding.bytes.size() == encoding.ids.size(), "each id has its place");
    Promise(IsUtf8(tokenizer.Decode(encoding.ids)), "decoded text is UTF-8");
  }
}

bool ReadSafetensorsFile(std::span<const uint8_t> bytes) {
  // Both readers: tensors of any type as they lie, and copies of those that weft computes with.
  Reads([&] { ParseSafetensors(bytes, "f.safetensors"); });
  return Reads([&] {
    std::vector<FoundTensor> found;
    AddSafetensors(bytes, "f.safetensors", found);
  });
}

bool ReadGgufFile(std::span<const uint8_t> bytes) {
  return Reads([&] {
    const GgufFile file(bytes, "f.gguf");
    // Each part goes as far as it can, whatever the other says.
    Reads([&] { Use(Tokenizer::FromGguf(ReadGgufTokenizer(file), "f.gguf")); });
    Reads([&] { ChatTemplate::FromGguf(ReadGgufTokenizer(file), "f.gguf"); });
    const ModelDescription description = ReadGgufConfig(file);
    std::vector<FoundTensor> found;
    for (const GgufTensor& tensor : file.tensors()) {
      found.push_back({tensor.name, tensor.shape, tensor.type, tensor.bytes});
    }
    const std::vector<std::string> used = {"rope_freqs.weight"};
    for (const StoredWeight& weight :
         JoinWeights(description.config, FileFormat::kGguf, std::move(found), used, "f.gguf")) {
      weight.Read();
    }
  });
}

bool ReadTokenizer(std::span<const uint8_t> bytes) {
  return Reads([&] { Use(Tokenizer::FromJson(Text(bytes), "tokenizer.json")); });
}

bool ReadTemplate(std::span<const uint8_t> bytes) {
  static const JsonValue& messages = *new JsonValue(ParseJson(
      R"([{"role": "user", "content": " hi "}, {"role": "assistant", "content": "yo"}])", "m"));
  return Reads([&] {
    const RenderedChat chat = ChatTemplate::FromText(Text(bytes), "t.jinja").Render(messages);
    Promise(IsUtf8(chat.text), "rendered text is UTF-8");
  });
}

bool ReadConfigJson(std::span<const uint8_t> bytes) {
  return Reads([&] { ReadHfConfig(ParseJson(Text(bytes), "config.json"), "config.json"); });
}

// Where the files of an encoder lie together, as their reader wants them: in memory.
struct EncoderFolder {
  const std::string path = "/dev/shm/weft_fuzz_" + std::to_string(::getpid());

  EncoderFolder() { MakeDirectories(path + "/1_Pooling"); }
  ~EncoderFolder() { RemoveTree(path); }
  EncoderFolder(const EncoderFolder&) = delete;
  EncoderFolder& operator=(const EncoderFolder&) = delete;
};

bool ReadEncoder(std::span<const uint8_t> bytes) {
  static const EncoderFolder folder;
  std::string_view rest = Text(bytes);
  for (const char* name : {"config.json", "modules.json", "1_Pooling/config.json",
                           "sentence_bert_config.json", "tokenizer_config.json"}) {
    const std::string_view text = rest.substr(0, rest.find("\n--\n"));
    rest.remove_prefix(std::min(rest.size(), text.size() + 4));
    std::ofstream(folder.path + "/" + name) << text;
  }
  return Reads([&] {
    const EncoderConfig config = ReadEncoderConfig(folder.path);
    Promise(config.max_tokens >= 1 && config.max_tokens <= config.positions,
            "a text has positions for its tokens");
  });
}

// A config of every kind of value.
struct Values : Config {
  int64_t steps = 0;
  double rate = 0;
  bool quick = false;
  std::string country;
  std::vector<int64_t> sizes;
  void Fields(FieldVisitor& visitor) override {
    visitor.Field("steps", steps, "");
    visitor.Field("rate", rate, "");
    visitor.Field("quick", quick, "");
    visitor.Field("country", country, "");
    visitor.Field("sizes", sizes, "");
  }
};

bool ReadYaml(std::span<const uint8_t> bytes) {
  return Reads([&] {
    Values values;
    ConfigSource::Text(Text(bytes), "f.yaml").Parse(values);
  });
}

constexpr Target kTargets[] = {
    {"safetensors", ReadSafetensorsFile},
    {"gguf", ReadGgufFile},
    {"tokenizer", ReadTokenizer},
    {"template", ReadTemplate},
    {"config", ReadConfigJson},
    {"encoder", ReadEncoder},
    {"yaml", ReadYaml},
};

}  // namespace

std::span<const Target> Targets() {
  return kTargets;
}

const Target* FindTarget(std::string_view name) {
  const auto* found = std::ranges::find(kTargets, name, &Target::name);
  return found == std::end(kTargets) ? nullptr : found;
}

}  // namespace weft::fuzz
