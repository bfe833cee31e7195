// Moving pictures as GIF 89a that repeats for ever. A frame holds the rectangle that differs from
// the frame before it, with a palette of its own: exact up to 256 colours, else by median cut.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "environments/drawing/picture.h"

struct GifFileType;

namespace weft {

class GifEncoder {
 public:
  // The format counts time in 1/100 s: delays are rounded so that their sum is right, and more
  // than 50 frames per second are shown at 50, the most that viewers play.
  explicit GifEncoder(double frames_per_second);
  ~GifEncoder();

  // All frames have the size of the first, at most 65535 each way.
  void Add(const Picture& picture);
  // The bytes of the file, "" when there was no frame; afterwards the encoder is done.
  std::string Finish();

 private:
  struct Close {
    void operator()(GifFileType* file) const;
  };

  void Open(const Picture& picture);
  // True, or the failure becomes Error(kInternal).
  void Check(int status) const;

  double frames_per_second_;
  int64_t frames_ = 0;
  Picture last_;
  std::unique_ptr<std::string> bytes_;  // on the heap: file_ keeps its address
  std::unique_ptr<GifFileType, Close> file_;
};

}  // namespace weft
