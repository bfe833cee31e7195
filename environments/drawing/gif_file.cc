#include "environments/drawing/gif_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <gif_lib.h>
#include <utility>
#include <vector>

#include "base/check.h"

namespace weft {
namespace {

constexpr double kMostFramesPerSecond = 50;
constexpr size_t kMostColours = 256;

struct Area {
  int64_t left, top, right, bottom;  // [left, right) and [top, bottom)
};

// The smallest rectangle that holds all differences; one pixel when there are none.
Area Difference(const Picture& before, const Picture& after) {
  Area area{after.width, after.height, 0, 0};
  for (int64_t y = 0; y < after.height; ++y) {
    for (int64_t x = 0; x < after.width; ++x) {
      if (std::equal(after.At(x, y), after.At(x, y) + 3, before.At(x, y))) continue;
      area.left = std::min(area.left, x);
      area.right = std::max(area.right, x + 1);
      area.top = std::min(area.top, y);
      area.bottom = y + 1;
    }
  }
  return area.left < area.right ? area : Area{0, 0, 1, 1};
}

// Pixels as numbers of a palette's colours.
struct Indexed {
  std::vector<GifColorType> palette;
  std::vector<GifByteType> pixels;
};

Indexed Exact(const std::vector<uint32_t>& pixels, const std::vector<uint32_t>& colours) {
  Indexed indexed;
  for (const uint32_t colour : colours) {
    indexed.palette.push_back({static_cast<GifByteType>(colour >> 16),
                               static_cast<GifByteType>(colour >> 8),
                               static_cast<GifByteType>(colour)});
  }
  indexed.pixels.reserve(pixels.size());
  for (const uint32_t pixel : pixels) {
    const auto found = std::lower_bound(colours.begin(), colours.end(), pixel);
    indexed.pixels.push_back(static_cast<GifByteType>(found - colours.begin()));
  }
  return indexed;
}

Indexed MedianCut(const std::vector<uint32_t>& pixels, const Area& area) {
  std::array<std::vector<GifByteType>, 3> planes;
  for (const uint32_t pixel : pixels) {
    planes[0].push_back(static_cast<GifByteType>(pixel >> 16));
    planes[1].push_back(static_cast<GifByteType>(pixel >> 8));
    planes[2].push_back(static_cast<GifByteType>(pixel));
  }
  Indexed indexed{.palette = std::vector<GifColorType>(kMostColours),
                  .pixels = std::vector<GifByteType>(pixels.size())};
  int colours = kMostColours;
  if (GifQuantizeBuffer(static_cast<unsigned>(area.right - area.left),
                        static_cast<unsigned>(area.bottom - area.top), &colours, planes[0].data(),
                        planes[1].data(), planes[2].data(), indexed.pixels.data(),
                        indexed.palette.data()) != GIF_OK) {
    throw Error(ErrorCode::kInternal, "giflib found no palette");
  }
  return indexed;
}

Indexed Index(const Picture& picture, const Area& area) {
  std::vector<uint32_t> pixels;
  for (int64_t y = area.top; y < area.bottom; ++y) {
    for (int64_t x = area.left; x < area.right; ++x) {
      const uint8_t* pixel = picture.At(x, y);
      pixels.push_back(static_cast<uint32_t>(pixel[0]) << 16 |
                       static_cast<uint32_t>(pixel[1]) << 8 | pixel[2]);
    }
  }
  std::vector<uint32_t> colours = pixels;
  std::ranges::sort(colours);
  colours.erase(std::unique(colours.begin(), colours.end()), colours.end());
  return colours.size() <= kMostColours ? Exact(pixels, colours) : MedianCut(pixels, area);
}

int Append(GifFileType* file, const GifByteType* bytes, int count) {
  static_cast<std::string*>(file->UserData)
      ->append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
  return count;
}

}  // namespace

void GifEncoder::Close::operator()(GifFileType* file) const {
  EGifCloseFile(file, nullptr);
}

GifEncoder::GifEncoder(double frames_per_second)
    : frames_per_second_(std::min(frames_per_second, kMostFramesPerSecond)),
      bytes_(std::make_unique<std::string>()) {}

GifEncoder::~GifEncoder() = default;

void GifEncoder::Check(int status) const {
  if (status == GIF_OK) return;
  const char* reason = file_ ? GifErrorString(file_->Error) : nullptr;
  throw Error(ErrorCode::kInternal, std::string("giflib: ") + (reason ? reason : "out of memory"));
}

void GifEncoder::Open(const Picture& picture) {
  file_.reset(EGifOpen(bytes_.get(), &Append, nullptr));
  Check(file_ ? GIF_OK : GIF_ERROR);
  EGifSetGifVersion(file_.get(), true);
  constexpr int kBitsPerChannel = 8;
  Check(EGifPutScreenDesc(file_.get(), static_cast<int>(picture.width),
                          static_cast<int>(picture.height), kBitsPerChannel, 0, nullptr));
  // Netscape's extension: repeat without end.
  const char application[] = "NETSCAPE2.0";
  const GifByteType repeat[] = {1, 0, 0};
  Check(EGifPutExtensionLeader(file_.get(), APPLICATION_EXT_FUNC_CODE));
  Check(EGifPutExtensionBlock(file_.get(), sizeof application - 1, application));
  Check(EGifPutExtensionBlock(file_.get(), sizeof repeat, repeat));
  Check(EGifPutExtensionTrailer(file_.get()));
}

void GifEncoder::Add(const Picture& picture) {
  if (!file_) Open(picture);
  WEFT_CHECK(frames_ == 0 || (picture.width == last_.width && picture.height == last_.height))
      << "the frames of a GIF have one size";
  const Area area =
      frames_ == 0 ? Area{0, 0, picture.width, picture.height} : Difference(last_, picture);
  Indexed indexed = Index(picture, area);
  size_t colours = 2;  // a power of two
  while (colours < indexed.palette.size()) colours *= 2;
  indexed.palette.resize(colours);

  const auto ends = [&](int64_t frame) {
    return static_cast<int>(std::lround(100 * static_cast<double>(frame) / frames_per_second_));
  };
  const GraphicsControlBlock control{.DisposalMode = DISPOSE_DO_NOT,
                                     .UserInputFlag = false,
                                     .DelayTime = ends(frames_ + 1) - ends(frames_),
                                     .TransparentColor = NO_TRANSPARENT_COLOR};
  GifByteType extension[4];
  const size_t length = EGifGCBToExtension(&control, extension);
  Check(EGifPutExtension(file_.get(), GRAPHICS_EXT_FUNC_CODE, static_cast<int>(length), extension));
  const std::unique_ptr<ColorMapObject, decltype(&GifFreeMapObject)> map(
      GifMakeMapObject(static_cast<int>(colours), indexed.palette.data()), &GifFreeMapObject);
  const auto width = static_cast<int>(area.right - area.left);
  Check(EGifPutImageDesc(file_.get(), static_cast<int>(area.left), static_cast<int>(area.top),
                         width, static_cast<int>(area.bottom - area.top), false, map.get()));
  for (size_t begin = 0; begin < indexed.pixels.size(); begin += static_cast<size_t>(width)) {
    Check(EGifPutLine(file_.get(), indexed.pixels.data() + begin, width));
  }
  last_ = picture;
  ++frames_;
}

std::string GifEncoder::Finish() {
  file_.reset();  // writes the trailer
  return std::move(*bytes_);
}

}  // namespace weft
