#include "rlhf/parquet_rows.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <string_view>
#include <unistd.h>

#include "base/check.h"
#include "rlhf/parquet_interface.h"

namespace weft {
namespace {

// The library lies beside this one, libweft.so, and stays loaded.
struct Library {
  WeftReadParquetFunction read = nullptr;
  std::string problem;
};

Library Load() {
  Library library;
  Dl_info self;
  const bool found = dladdr(reinterpret_cast<const void*>(&IsParquet), &self) != 0;
  const auto path =
      std::filesystem::path(found ? self.dli_fname : "").parent_path() / kParquetLibrary;
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle != nullptr) {
    library.read = reinterpret_cast<WeftReadParquetFunction>(dlsym(handle, kReadParquet));
  }
  if (library.read == nullptr) {
    library.problem = "\"./weft fetch parquet\" fetches what reads such files (55 MB)";
    if (FileExists(path)) library.problem += "; " + std::string(dlerror());
  }
  return library;
}

const Library& TheLibrary() {
  static const auto& library = *new Library(Load());
  return library;
}

// A file that is gone when it is closed.
class NamelessFile {
 public:
  NamelessFile() {
    const char* const named = std::getenv("TMPDIR");
    if (named != nullptr) folder_ = named;
    std::string name = folder_ + "/weft-rows-XXXXXX";
    descriptor_ = mkstemp(name.data());
    if (descriptor_ < 0) {
      throw Error(ErrorCode::kIo, "cannot write in " + folder_ + " (TMPDIR names another folder)");
    }
    ::unlink(name.c_str());
    path_ = "/proc/self/fd/" + std::to_string(descriptor_);
  }
  ~NamelessFile() { ::close(descriptor_); }
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;

  const std::string& path() const { return path_; }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_ = "/tmp", path_;
  int descriptor_ = -1;
};

}  // namespace

bool IsParquet(std::span<const uint8_t> file) {
  constexpr std::string_view kMagic = "PAR1";
  return file.size() >= kMagic.size() && std::equal(kMagic.begin(), kMagic.end(), file.begin());
}

std::string WhyNoParquet() {
  return TheLibrary().problem;
}

std::unique_ptr<MappedFile> ParquetAsJsonLines(const std::string& path,
                                               std::span<const uint8_t> file,
                                               std::span<const char* const> columns) {
  if (const std::string why = WhyNoParquet(); !why.empty()) {
    throw Error(ErrorCode::kUnavailable, path + ": is a Parquet file: " + why);
  }
  const NamelessFile text;
  struct Taker {
    AppendFile file;
    std::string problem;
  } taker{.file = AppendFile(text.path()), .problem = ""};
  const auto take = [](void* to, const char* lines, uint64_t bytes) {
    auto& into = *static_cast<Taker*>(to);
    into.problem = into.file.Append({lines, bytes});
    return into.problem.empty();
  };
  const char* const fault =
      TheLibrary().read(file.data(), file.size(), columns.data(), columns.size(), take, &taker);
  if (fault != nullptr) throw Error(ErrorCode::kCorrupt, path + ": " + fault);
  if (!taker.problem.empty()) {
    throw Error(ErrorCode::kIo, path + ": no room for its rows in " + text.folder() +
                                    " (TMPDIR names another folder): " + taker.problem);
  }
  return std::make_unique<MappedFile>(text.path());
}

}  // namespace weft
