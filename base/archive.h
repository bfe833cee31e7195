// Exact state as bytes: a Writer appends plain values, a Reader takes them back in the same order
// and throws Error(kCorrupt) when the bytes run out. Used for states that are not tensors (an
// environment's clock, its Rng).
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"

namespace weft {

class Writer {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void Write(const T& value) { Append(&value, sizeof(T)); }
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void Write(std::span<const T> values) {
    Write<uint64_t>(values.size());
    Append(values.data(), values.size_bytes());
  }
  void Write(const std::string& text) { Write(std::span<const char>(text)); }

  // Bytes as they are, without their number.
  void Append(std::span<const uint8_t> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }

  const std::vector<uint8_t>& bytes() const { return bytes_; }
  std::vector<uint8_t> Take() { return std::move(bytes_); }

 private:
  void Append(const void* data, size_t size) {
    if (size == 0) return;
    const size_t begin = bytes_.size();
    bytes_.resize(begin + size);
    std::memcpy(bytes_.data() + begin, data, size);
  }

  std::vector<uint8_t> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  template <class T>
  requires std::is_trivially_copyable_v<T> T Read() {
    T value;
    std::memcpy(&value, Take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  template <class T>
  requires std::is_trivially_copyable_v<T> std::vector<T> ReadVector() {
    const auto count = Read<uint64_t>();
    if (count > bytes_.size() / sizeof(T)) Fail();
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), Take(count * sizeof(T)).data(), count * sizeof(T));
    return values;
  }
  std::string ReadString() {
    const auto text = ReadVector<char>();
    return {text.begin(), text.end()};
  }
  // The next bytes as they lie there: valid as long as what the reader was made from.
  std::span<const uint8_t> Take(size_t count) {
    if (count > bytes_.size()) Fail();
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }
  size_t remaining() const { return bytes_.size(); }
  bool AtEnd() const { return bytes_.empty(); }

 private:
  [[noreturn]] static void Fail() {
    throw Error(ErrorCode::kCorrupt,
                "the bytes end too early: they were written by another version");
  }

  std::span<const uint8_t> bytes_;
};

}  // namespace weft
