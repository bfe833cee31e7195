#include "base/file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/check.h"

namespace weft {
namespace {

std::string Reason(int error_number) {
  return std::generic_category().message(error_number);
}

[[noreturn]] void Fail(const std::string& doing, const std::string& path, const std::string& why) {
  throw Error(ErrorCode::kIo, "cannot " + doing + " " + path + ": " + why);
}
[[noreturn]] void Fail(const std::string& doing, const std::string& path) {
  Fail(doing, path, Reason(errno));
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  // Closing is where some file systems report a failed write.
  bool Close() { return ::close(Release()) == 0; }
  int Release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

// While it lives, a write past RLIMIT_FSIZE fails with EFBIG in this thread; the signal that the
// kernel also raises is blocked, taken back and forgotten.
class FileSizeSignalBlocked {
 public:
  FileSizeSignalBlocked() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~FileSizeSignalBlocked() {
    const int error_number = errno;
    if (!sigismember(&before_, SIGXFSZ)) {
      const timespec no_wait{};
      while (sigtimedwait(&signals_, nullptr, &no_wait) == SIGXFSZ) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error_number;
  }
  FileSizeSignalBlocked(const FileSizeSignalBlocked&) = delete;
  FileSizeSignalBlocked& operator=(const FileSizeSignalBlocked&) = delete;

 private:
  sigset_t signals_, before_;
};

// False, with errno set, when the system refuses a part.
bool WriteAll(int descriptor, std::string_view bytes) {
  const FileSizeSignalBlocked blocked;
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      if (count == 0) errno = ENOSPC;
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

std::string Folder(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// In the folder of path, so that a rename never crosses file systems. Threads of one process get
// different numbers.
std::string TemporaryName(const std::string& path) {
  static std::atomic<uint64_t> count{0};
  return Folder(path) + "/.tmp-" + std::to_string(::getpid()) + "-" + std::to_string(count++) +
         "-" + std::filesystem::path(path).filename().string();
}

// Removes what it names unless told that it was renamed away.
class Temporary {
 public:
  explicit Temporary(std::string path) : path_(std::move(path)) {}
  ~Temporary() {
    std::error_code ignored;
    if (!renamed_) std::filesystem::remove_all(path_, ignored);
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  const std::string& path() const { return path_; }
  void RenameTo(const std::string& path) {
    if (::rename(path_.c_str(), path.c_str()) != 0) Fail("rename a temporary to", path);
    renamed_ = true;
  }

 private:
  std::string path_;
  bool renamed_ = false;
};

// Makes the content of a file, or the names in a folder, survive a loss of power.
void Sync(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0) Fail("open", path);
  // Some network file systems cannot sync a folder and say EINVAL; there is nothing more to do.
  if (::fsync(file.number()) != 0 && errno != EINVAL) Fail("sync", path);
}

// An open regular file and its size. O_NONBLOCK: opening a pipe without a writer must not hang.
struct OpenFile {
  explicit OpenFile(const std::string& path)
      : descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat status;
    if (descriptor.number() < 0 || ::fstat(descriptor.number(), &status) != 0) Fail("read", path);
    if (!S_ISREG(status.st_mode)) Fail("read", path, "it is no regular file");
    size = static_cast<uint64_t>(status.st_size);
  }
  Descriptor descriptor;
  uint64_t size = 0;
};

}  // namespace

std::string ReadFile(const std::string& path, uint64_t limit_bytes) {
  const OpenFile file(path);
  const auto check_size = [&](uint64_t size) {
    if (size > limit_bytes) {
      Fail("read", path, "it has more than " + std::to_string(limit_bytes) + " bytes");
    }
  };
  check_size(file.size);
  std::string bytes(file.size + 1, '\0');  // one byte more, so that a read can meet the end
  size_t have = 0;
  while (true) {
    const ssize_t count =
        ::read(file.descriptor.number(), bytes.data() + have, bytes.size() - have);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) Fail("read", path);
    if (count == 0) break;
    have += static_cast<size_t>(count);
    check_size(have);
    if (have == bytes.size()) bytes.resize(2 * have);  // it grew, or /proc, where sizes are 0
  }
  bytes.resize(have);
  return bytes;
}

bool FileExists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

bool DirectoryExists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

void MakeDirectories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) Fail("make the folder", path, error.message());
}

std::vector<std::string> ListDirectory(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(path, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) Fail("list the folder", path, error.message());
  std::sort(names.begin(), names.end());
  return names;
}

void RemoveTree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) Fail("remove", path, error.message());
}

uint64_t FreeBytes(const std::string& path) {
  struct statvfs status;
  if (::statvfs(path.c_str(), &status) != 0) Fail("ask for the free space of", path);
  return uint64_t{status.f_bavail} * status.f_frsize;
}

void WriteFileAtomic(const std::string& path, std::string_view bytes) {
  Temporary temporary(TemporaryName(path));
  Descriptor file(::open(temporary.path().c_str(),
                         O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file.number() < 0) Fail("write", path);
  if (!WriteAll(file.number(), bytes)) Fail("write", path);
  if (::fsync(file.number()) != 0) Fail("sync", path);
  if (!file.Close()) Fail("write", path);
  temporary.RenameTo(path);
  Sync(Folder(path));
}

void WriteFileAtomic(const std::string& path,
                     const std::function<void(const std::string&)>& write) {
  Temporary temporary(TemporaryName(path));
  RemoveTree(temporary.path());  // left by an earlier process of the same number
  write(temporary.path());
  Sync(temporary.path());
  temporary.RenameTo(path);
  Sync(Folder(path));
}

void WriteDirectoryAtomic(const std::string& path,
                          const std::function<void(const std::string&)>& fill) {
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) {
    Fail("write the folder", path, "it exists");
  }
  Temporary temporary(TemporaryName(path));
  RemoveTree(temporary.path());  // left by an earlier process of the same number
  if (::mkdir(temporary.path().c_str(), 0777) != 0) Fail("make the folder", temporary.path());
  fill(temporary.path());
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(temporary.path(), error), end;
  for (; !error && entry != end; entry.increment(error)) {
    if (entry->is_regular_file(ignored) || entry->is_directory(ignored)) {
      Sync(entry->path().string());
    }
  }
  if (error) Fail("list the folder", temporary.path(), error.message());
  Sync(temporary.path());
  temporary.RenameTo(path);
  Sync(Folder(path));
}

AppendFile::AppendFile(std::string path, uint64_t keep_bytes) : path_(std::move(path)) {
  Descriptor file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (file.number() < 0) Fail("open", path_);
  struct stat status;
  if (::fstat(file.number(), &status) != 0) Fail("open", path_);
  size_ = std::min(static_cast<uint64_t>(status.st_size), keep_bytes);
  if (keep_bytes != UINT64_MAX && ::ftruncate(file.number(), static_cast<off_t>(size_)) != 0) {
    Fail("shorten", path_);
  }
  descriptor_ = file.Release();
}

AppendFile::~AppendFile() {
  ::close(descriptor_);
}

std::string AppendFile::Append(std::string_view record) {
  if (WriteAll(descriptor_, record)) {
    size_ += record.size();
    return "";
  }
  const std::string reason = Reason(errno);
  // Part of the record may be there; cut off, the next record starts clean.
  if (::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0) {
    return reason + ", and what was written of the record stays";
  }
  return reason;
}

std::string AppendFile::Sync() {
  return ::fdatasync(descriptor_) == 0 ? "" : Reason(errno);
}

MappedFile::MappedFile(const std::string& path) {
  const OpenFile file(path);
  if (file.size == 0) return;
  void* address = ::mmap(nullptr, file.size, PROT_READ, MAP_PRIVATE, file.descriptor.number(), 0);
  if (address == MAP_FAILED) Fail("map", path);
  bytes_ = {static_cast<const uint8_t*>(address), file.size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
}

}  // namespace weft
