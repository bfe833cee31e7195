// A picture in memory: 8 bits each of red, green and blue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

struct Picture {
  Picture() = default;
  // All black. Both sides are at least 1.
  Picture(int64_t picture_width, int64_t picture_height)
      : width(picture_width),
        height(picture_height),
        pixels(static_cast<size_t>(3 * picture_width * picture_height)) {}

  // Column x from the left and row y from the top, inside the picture.
  uint8_t* At(int64_t x, int64_t y) { return pixels.data() + 3 * (y * width + x); }
  const uint8_t* At(int64_t x, int64_t y) const { return pixels.data() + 3 * (y * width + x); }

  int64_t width = 0, height = 0;
  std::vector<uint8_t> pixels;  // [height, width, 3]
};

}  // namespace weft
