#include "base/event_file.h"

#include <chrono>
#include <cmath>
#include <cstring>

namespace weft {
namespace {

// Field numbers of Event, Summary and Summary.Value.
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;
constexpr int kValue = 1;
constexpr int kTag = 1, kSimpleValue = 2;

std::span<const uint8_t> AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// TFRecord stores checksums rotated and shifted, so that data which holds checksums keeps a good
// one.
uint32_t MaskedCrc(std::string_view bytes) {
  const uint32_t crc = Crc32c(AsBytes(bytes));
  return (crc >> 15 | crc << 17) + 0xa282ead8;
}

template <class T>
T ReadLittleEndian(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

// The step of an event that starts as Begin writes it; 0 when there is none.
int64_t StepOf(std::string_view event) {
  constexpr size_t kStepTag = 9;  // after the tag and eight bytes of the wall time
  if (event.size() <= kStepTag || event[kStepTag] != (kStep << 3)) return 0;
  uint64_t step = 0;
  for (size_t i = kStepTag + 1, shift = 0; i < event.size() && shift < 64; ++i, shift += 7) {
    step |= static_cast<uint64_t>(event[i] & 0x7F) << shift;
    if ((event[i] & 0x80) == 0) break;
  }
  return static_cast<int64_t>(step);
}

// How many bytes of a file are whole records up to keep_step.
uint64_t BytesToKeep(const std::string& path, int64_t keep_step) {
  if (!FileExists(path)) return 0;
  const MappedFile map(path);
  const std::string_view bytes(reinterpret_cast<const char*>(map.bytes().data()),
                               map.bytes().size());
  size_t at = 0;
  while (bytes.size() - at >= 16) {
    const auto length = ReadLittleEndian<uint64_t>(bytes, at);
    if (length > bytes.size() - at - 16) break;
    const std::string_view event = bytes.substr(at + 12, length);
    if (ReadLittleEndian<uint32_t>(bytes, at + 12 + length) != MaskedCrc(event)) break;
    if (StepOf(event) > keep_step) break;
    at += 16 + length;
  }
  return at;
}

}  // namespace

EventFile::EventFile(const std::string& path, int64_t keep_step)
    : file_(std::make_unique<AppendFile>(path, BytesToKeep(path, keep_step))) {
  if (file_->size() > 0) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  event_.Double(kWallTime, std::chrono::duration<double>(now).count());
  event_.Bytes(kFileVersion, "brain.Event:2");
  WriteRecord();
}

void EventFile::Begin(double unix_seconds, int64_t step) {
  event_.Clear();
  summary_.Clear();
  event_.Double(kWallTime, unix_seconds);
  event_.Varint(kStep, step);
}

void EventFile::Scalar(std::string_view tag, double value) {
  if (!std::isfinite(value)) return;
  value_.Clear();
  value_.Bytes(kTag, tag);
  value_.Float(kSimpleValue, static_cast<float>(value));
  summary_.Message(kValue, value_);
}

std::string EventFile::End() {
  event_.Message(kSummary, summary_);
  return WriteRecord();
}

std::string EventFile::WriteRecord() {
  record_.clear();
  AppendLittleEndian<uint64_t>(event_.bytes().size(), record_);
  AppendLittleEndian(MaskedCrc(record_), record_);
  record_ += event_.bytes();
  AppendLittleEndian(MaskedCrc(event_.bytes()), record_);
  return file_->Append(record_);
}

}  // namespace weft
