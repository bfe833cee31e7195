// Where the frames of a film go: a GIF, an MP4, the last one as a PNG, or all as PNGs in a folder.
#pragma once

#include <memory>
#include <string>

#include "environments/drawing/picture.h"

namespace weft {

class FrameWriter {
 public:
  virtual ~FrameWriter() = default;
  virtual void Add(const Picture& picture) = 0;  // all of one size
  // Nothing is at the path before; without it nothing is left there but frames of a folder.
  virtual void Finish() = 0;
};

// By the ending of output: .gif, .mp4 or .png, or a folder, which must be empty or not be there.
// Throws Error(kConfig) for other endings. Writing an MP4 throws Error(kUnavailable) when ffmpeg is
// not on PATH.
std::unique_ptr<FrameWriter> MakeFrameWriter(const std::string& output, double frames_per_second);

}  // namespace weft
