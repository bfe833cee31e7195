// Pictures as PNG (ISO/IEC 15948).
#pragma once

#include <string>

#include "environments/drawing/picture.h"

namespace weft {

// The bytes of a PNG file of 8-bit RGB.
std::string EncodePng(const Picture& picture);

}  // namespace weft
