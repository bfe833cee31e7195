#include "environments/drawing/png_file.h"

#include <png.h>

#include "base/check.h"

namespace weft {

std::string EncodePng(const Picture& picture) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0, picture.pixels.data(), 0,
                                nullptr) == 0) {
    throw Error(ErrorCode::kInternal, std::string("libpng: ") + image.message);
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace weft
