// Files: whole reads with limits, and writes that are either there whole or not at all. A limit on
// file sizes (RLIMIT_FSIZE) is an error here like a full disk, never the signal SIGXFSZ.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// Throws Error(kIo) naming the path when it is missing, no regular file, or larger than limit.
std::string ReadFile(const std::string& path, uint64_t limit_bytes = uint64_t{1} << 32);
bool FileExists(const std::string& path);  // a regular file, or a link to one
bool DirectoryExists(const std::string& path);
void MakeDirectories(const std::string& path);
std::vector<std::string> ListDirectory(const std::string& path);  // sorted names, without . and ..
void RemoveTree(const std::string& path);                         // a missing path is no error
uint64_t FreeBytes(const std::string& path);  // what an ordinary user may still write there

// Writes a temporary file beside path, fsync, rename over path, fsync of the folder. On any error
// the old file stays, the temporary is removed and Error(kIo) is thrown with the reason.
// Temporaries are named ".tmp-<pid>-<number>-<name>": a killed process leaves them, nothing reads
// them, and whoever owns the folder may remove them.
void WriteFileAtomic(const std::string& path, std::string_view bytes);

// As above for what is too large to be held: write(temporary path) makes the file.
void WriteFileAtomic(const std::string& path, const std::function<void(const std::string&)>& write);

// As WriteFileAtomic for a folder of files: fill(temporary path) writes the files (each is fsynced
// afterwards), then the folder is renamed to path, which must not exist.
void WriteDirectoryAtomic(const std::string& path,
                          const std::function<void(const std::string&)>& fill);

// A file that grows by whole records.
class AppendFile {
 public:
  // Creates the file when it is missing and cuts it to keep_bytes when it is longer. Throws
  // Error(kIo).
  explicit AppendFile(std::string path, uint64_t keep_bytes = UINT64_MAX);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // All of record or nothing. Returns "" or, when the system refuses (disk full), the reason.
  std::string Append(std::string_view record);
  std::string Sync();  // "" once the disk has it all, or the reason why not
  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }

 private:
  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

// A file mapped for reading; empty files are allowed. Whoever shortens the file meanwhile crashes
// the reader, so only files that are never rewritten in place (WriteFileAtomic) belong here.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);  // throws Error(kIo) as ReadFile
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  std::span<const uint8_t> bytes_;
};

// CRC-32C (Castagnoli), as TensorBoard records, checkpoints and the wire use it. The checksum of a
// text in two parts is Crc32c(second, Crc32c(first)).
uint32_t Crc32c(std::span<const uint8_t> bytes, uint32_t seed = 0);
struct FileSum {
  uint64_t bytes = 0;
  uint32_t crc32c = 0;
};
// Of a file, read in pieces. Throws Error(kIo).
FileSum SumOfFile(const std::string& path);
// Lower-case hexadecimal SHA-256.
std::string Sha256(std::span<const uint8_t> bytes);

}  // namespace weft
