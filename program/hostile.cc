#include "program/hostile.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <new>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/config.h"
#include "base/file.h"
#include "language/gguf.h"
#include "language/gguf_config.h"
#include "language/gguf_tokenizer.h"
#include "language/hf_config.h"
#include "language/json.h"
#include "language/safetensors_folder.h"
#include "language/template/chat_template.h"
#include "language/tokenizer/tokenizer.h"
#include "nn/safetensors.h"

namespace weft {
namespace {

using Kind = HostileOutcome::Kind;

constexpr size_t kMaxMessage = 4096;

// A config of two keys, one of each kind that YAML is known to confuse.
struct TwoKeys : Config {
  int64_t steps = 0;
  std::string country;
  void Fields(FieldVisitor& visitor) override {
    visitor.Field("steps", steps, "");
    visitor.Field("country", country, "");
  }
};

void LoadSafetensors(const std::string& path) {
  ReadSafetensors(path);
}

// As far as the file goes: what it has of a model and of a tokenizer.
void LoadGguf(const std::string& path) {
  const GgufFile file(path);
  const bool model = std::ranges::any_of(
      file.metadata(), [](const auto& entry) { return entry.first.ends_with(".block_count"); });
  if (model) ReadGgufConfig(file);
  if (file.Find("tokenizer.ggml.tokens") || file.Find("tokenizer.ggml.model")) {
    Tokenizer::FromGguf(ReadGgufTokenizer(file), path).Encode("ab <x> aab");
  }
}

void LoadConfig(const std::string& path) {
  ReadHfConfig(ReadJsonFile(path), path);
}

void LoadIndex(const std::string& path) {
  const std::string folder = path.substr(0, path.find_last_of('/') + 1);
  for (const std::string& shard : ReadShardIndex(path).files) MappedFile(folder + shard);
}

void LoadTokenizer(const std::string& path) {
  const Tokenizer tokenizer = Tokenizer::Load(path);
  tokenizer.Decode(tokenizer.Encode("ab <x> aab"));
}

void LoadTemplate(const std::string& path) {
  const std::vector<std::pair<std::string, std::string>> messages = {{"user", "Hello"}};
  ChatTemplate::FromText(ReadFile(path), path).Render(messages);
}

void LoadYaml(const std::string& path) {
  TwoKeys config;
  ConfigSource::File(path).Parse(config);
}

struct Loader {
  std::string_view format;
  void (*load)(const std::string& path);
};
constexpr Loader kLoaders[] = {
    {"safetensors", LoadSafetensors},  {"gguf", LoadGguf},
    {"config.json", LoadConfig},       {"model.safetensors.index.json", LoadIndex},
    {"tokenizer.json", LoadTokenizer}, {"yaml", LoadYaml},
    {"jinja", LoadTemplate},
};

const Loader* FindLoader(std::string_view format) {
  const auto* found = std::ranges::find(kLoaders, format, &Loader::format);
  return found == std::end(kLoaders) ? nullptr : found;
}

int64_t AddressSpaceBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0;
  file >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

void Limit(const HostileLimits& limits) {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they reserve terabytes
  const auto bytes = static_cast<rlim_t>(AddressSpaceBytes() + limits.extra_bytes);
  const rlimit space = {bytes, bytes};
  setrlimit(RLIMIT_AS, &space);
#endif
}

// The child's answer: one byte, the Kind, and a message.
std::string Answer(const Loader& loader, const std::string& path) {
  Kind kind = Kind::kAccepted;
  std::string message;
  try {
    loader.load(path);
  } catch (const Error& error) {
    message = error.what();
    const std::string name = path.substr(path.find_last_of('/') + 1);
    kind = message.find(name) == std::string::npos ? Kind::kUnnamed : Kind::kRefused;
  } catch (const std::bad_alloc&) {
    kind = Kind::kOutOfMemory;
  } catch (const std::exception& error) {
    message = error.what();
    kind = Kind::kCrashed;
  }
  return static_cast<char>('0' + static_cast<int>(kind)) + message.substr(0, kMaxMessage);
}

[[noreturn]] void RunChild(const Loader& loader, const std::string& path,
                           const HostileLimits& limits, int pipe) {
  Limit(limits);
  const std::string answer = Answer(loader, path);
  const ssize_t written = write(pipe, answer.data(), answer.size());
  _exit(written == static_cast<ssize_t>(answer.size()) ? 0 : 1);
}

// Reads until the pipe closes; false when the deadline comes first.
bool ReadAll(int pipe, std::chrono::steady_clock::time_point deadline, std::string& out) {
  char buffer[kMaxMessage];
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd entry = {pipe, POLLIN, 0};
    const int ready = poll(&entry, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t count = read(pipe, buffer, sizeof(buffer));
    if (count <= 0) return true;
    out.append(buffer, static_cast<size_t>(count));
  }
}

}  // namespace

std::string_view Name(Kind kind) {
  constexpr std::string_view kNames[] = {"accepted",      "refused",     "refused without its name",
                                         "out of memory", "out of time", "crashed"};
  return kNames[static_cast<size_t>(kind)];
}

bool ReadsFormat(std::string_view format) {
  return FindLoader(format) != nullptr;
}

HostileOutcome LoadInChild(const std::string& format, const std::string& path,
                           const HostileLimits& limits) {
  const Loader* loader = FindLoader(format);
  WEFT_CHECK(loader) << "weft reads no files of the format " << format;
  int ends[2];
  if (pipe(ends) != 0) throw Error(ErrorCode::kUnavailable, std::strerror(errno));
  const auto begin = std::chrono::steady_clock::now();
  const pid_t pid = fork();
  if (pid < 0) {
    throw Error(ErrorCode::kUnavailable, std::string("cannot fork: ") + std::strerror(errno));
  }
  if (pid == 0) {
    close(ends[0]);
    RunChild(*loader, path, limits, ends[1]);
  }
  close(ends[1]);
  const auto allowed = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(limits.seconds));
  std::string answer;
  const bool in_time = ReadAll(ends[0], begin + allowed, answer);
  close(ends[0]);
  if (!in_time) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  HostileOutcome outcome;
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!in_time) {
    outcome.kind = Kind::kOutOfTime;
  } else if (answer.empty() || !WIFEXITED(status)) {
    outcome.message = WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "it ended without a word";
  } else {
    outcome.kind = static_cast<Kind>(answer[0] - '0');
    outcome.message = answer.substr(1);
  }
  return outcome;
}

}  // namespace weft
