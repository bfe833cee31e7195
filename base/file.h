// Files: whole reads with limits, and writes that are either there whole or not at all.
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
bool FileExists(const std::string& path);
bool DirectoryExists(const std::string& path);
void MakeDirectories(const std::string& path);
std::vector<std::string> ListDirectory(const std::string& path);  // sorted names, without . and ..
void RemoveTree(const std::string& path);
uint64_t FreeBytes(const std::string& path);

// Writes path + ".tmp-<pid>", fsync, rename over path, fsync of the folder. On any error the old file stays, the
// temporary is removed and Error(kIo) is thrown with the reason.
void WriteFileAtomic(const std::string& path, std::string_view bytes);

// As WriteFileAtomic for a folder of files: fill(temporary path) writes the files (each is fsynced afterwards), then the
// folder is renamed to path, which must not exist. Names that start with ".tmp-" are never taken for finished ones.
void WriteDirectoryAtomic(const std::string& path, const std::function<void(const std::string&)>& fill);

// A file mapped for reading; empty files are allowed.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  std::span<const uint8_t> bytes_;
};

// CRC-32C (Castagnoli), as TensorBoard records, checkpoints and the wire use it.
uint32_t Crc32c(std::span<const uint8_t> bytes, uint32_t seed = 0);
// Lower-case hexadecimal SHA-256.
std::string Sha256(std::span<const uint8_t> bytes);

}  // namespace weft
