// The event files that TensorBoard reads: records of length, checksum, bytes and checksum
// (TFRecord), each a protobuf Event (tensorflow/core/util/event.proto).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/protobuf.h"

namespace weft {

// Not thread-safe. No allocation per event once the buffers have grown.
class EventFile {
 public:
  // Appends to path. Records after keep_step, and a record that a killed process left unfinished,
  // are cut off. Throws Error(kIo) when the file cannot be opened.
  EventFile(const std::string& path, int64_t keep_step);

  // One event at a time: scalars between Begin and End. Those that are not finite are left out.
  void Begin(double unix_seconds, int64_t step);
  void Scalar(std::string_view tag, double value);
  std::string End();  // "" or why the system refused to write

  std::string Sync() { return file_->Sync(); }

 private:
  std::string WriteRecord();

  std::unique_ptr<AppendFile> file_;
  ProtobufWriter event_, summary_, value_;
  std::string record_;
};

}  // namespace weft
