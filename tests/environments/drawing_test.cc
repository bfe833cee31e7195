// Shapes, and the files that pictures are written to.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>
#include <numbers>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "base/random.h"
#include "environments/drawing/canvas.h"
#include "environments/drawing/gif_file.h"
#include "environments/drawing/png_file.h"
#include "tests/base/temporary_folder.h"

namespace weft {
namespace {

constexpr Colour kRed{255, 0, 0}, kGrey{100, 100, 100};

Colour ColourAt(const Picture& picture, int64_t x, int64_t y) {
  const uint8_t* pixel = picture.At(x, y);
  return {pixel[0], pixel[1], pixel[2]};
}

// In pixels, of white on black.
double CoveredArea(const Picture& picture) {
  double sum = 0;
  for (size_t i = 0; i < picture.pixels.size(); i += 3) sum += picture.pixels[i] / 255.0;
  return sum;
}

TEST(Rasteriser, FillsWholePixelsWhollyAndSharesOfPixelsByTheirArea) {
  Picture picture(8, 6);
  Rasteriser rasteriser;
  const std::vector<Point> box{{1.5, 1}, {4, 1}, {4, 3.25}, {1.5, 3.25}};
  rasteriser.Fill(box, kWhite, picture);
  for (int64_t y = 0; y < 6; ++y) {
    for (int64_t x = 0; x < 8; ++x) {
      const double wide = x == 1 ? 0.5 : x == 2 || x == 3 ? 1 : 0;
      const double high = y == 1 || y == 2 ? 1 : y == 3 ? 0.25 : 0;
      EXPECT_EQ(picture.At(x, y)[0], std::floor(255 * wide * high + 0.5)) << x << ", " << y;
    }
  }
}

TEST(Rasteriser, BlendsByOpacity) {
  Picture picture(2, 1);
  Rasteriser rasteriser;
  rasteriser.Fill(std::vector<Point>{{0, 0}, {1, 0}, {1, 1}, {0, 1}}, {200, 100, 0, 0.25}, picture);
  EXPECT_EQ(ColourAt(picture, 0, 0), (Colour{50, 25, 0}));
  EXPECT_EQ(ColourAt(picture, 1, 0), kBlack);
}

TEST(Rasteriser, CoversTheAreaOfTheShoelaceFormulaInBothSenses) {
  Rng rng(1, Purpose::kTest);
  for (int trial = 0; trial < 50; ++trial) {
    // Corners in order of their angle: the polygon does not cross itself.
    std::vector<Point> corners;
    for (int i = 0; i < 7; ++i) {
      const double angle = 2 * std::numbers::pi * (i + rng.Uniform(0, 0.9)) / 7;
      const double radius = rng.Uniform(5, 29);
      corners.push_back({30 + radius * std::cos(angle), 30 + radius * std::sin(angle)});
    }
    double area = 0;
    for (size_t i = 0; i < corners.size(); ++i) {
      const Point a = corners[i], b = corners[(i + 1) % corners.size()];
      area += (a.x * b.y - b.x * a.y) / 2;
    }
    Picture picture(60, 60), mirrored(60, 60);
    Rasteriser rasteriser;
    rasteriser.Fill(corners, kWhite, picture);
    std::reverse(corners.begin(), corners.end());
    rasteriser.Fill(corners, kWhite, mirrored);
    EXPECT_NEAR(CoveredArea(picture), std::abs(area), 0.4) << trial;  // pixels are rounded
    EXPECT_EQ(picture.pixels, mirrored.pixels);
  }
}

TEST(Rasteriser, CutsOffWhatLiesOutside) {
  Rasteriser rasteriser;
  Picture all(5, 4);
  rasteriser.Fill(std::vector<Point>{{-1e9, -1e9}, {1e9, -1e9}, {1e9, 1e9}, {-1e9, 1e9}}, kWhite,
                  all);
  EXPECT_DOUBLE_EQ(CoveredArea(all), 20);
  Picture none(5, 4);
  rasteriser.Fill(std::vector<Point>{{-3, 0}, {-1, 0}, {-1, 4}}, kWhite, none);
  rasteriser.Fill(std::vector<Point>{{6, 0}, {9, 0}, {9, 4}}, kWhite, none);
  rasteriser.Fill(std::vector<Point>{{0, -9}, {5, -9}, {5, -1}}, kWhite, none);
  rasteriser.Fill(std::vector<Point>{{0, 5}, {5, 5}, {5, 9}}, kWhite, none);
  EXPECT_DOUBLE_EQ(CoveredArea(none), 0);
  // The diagonal of a square three times the picture: half of it.
  Picture half(4, 4);
  rasteriser.Fill(std::vector<Point>{{-4, -4}, {8, 8}, {-4, 8}}, kWhite, half);
  EXPECT_NEAR(CoveredArea(half), 8, 0.02);
}

TEST(Rasteriser, LeavesOutShapesThatAreNotFinite) {
  Picture picture(4, 4);
  Rasteriser rasteriser;
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    rasteriser.Fill(std::vector<Point>{{0, 0}, {4, bad}, {4, 4}}, kWhite, picture);
    rasteriser.Fill(std::vector<Point>{{0, 0}, {bad, 0}, {4, 4}}, kWhite, picture);
  }
  rasteriser.Fill(std::vector<Point>{{0, 0}, {4, 4}}, kWhite, picture);
  EXPECT_DOUBLE_EQ(CoveredArea(picture), 0);
}

TEST(Canvas, PutsTheWorldIntoTheMiddleWithItsProportions) {
  Picture picture(40, 20);
  Canvas canvas(picture);
  canvas.Open(0, 10, 0, 10, kGrey);  // 2 pixels per unit, x = 0 at column 10
  canvas.Rectangle(0, 1, 9, 10, kRed);
  EXPECT_EQ(ColourAt(picture, 10, 0), kRed);
  EXPECT_EQ(ColourAt(picture, 11, 1), kRed);
  EXPECT_EQ(ColourAt(picture, 9, 0), kGrey);
  EXPECT_EQ(ColourAt(picture, 12, 0), kGrey);
  EXPECT_EQ(ColourAt(picture, 10, 2), kGrey);
}

TEST(Canvas, DrawsCirclesRingsAndLinesOfTheRightArea) {
  const auto area = [](auto draw) {
    Picture picture(100, 100);
    Canvas canvas(picture);
    canvas.Open(-10, 10, -10, 10, kBlack);  // 5 pixels per unit
    draw(canvas);
    return CoveredArea(picture) / 25;
  };
  constexpr double kPi = std::numbers::pi;
  EXPECT_NEAR(area([](Canvas& c) { c.Circle({1, -2}, 5, kWhite); }), kPi * 25, 0.6);
  EXPECT_NEAR(area([](Canvas& c) { c.Ring({0, 0}, 5, 2, kWhite); }), kPi * (36 - 16), 0.6);
  EXPECT_NEAR(area([](Canvas& c) { c.Line({-3, -4}, {3, 4}, 2, kWhite); }), 20 + kPi, 0.2);
  EXPECT_NEAR(area([](Canvas& c) { c.Line({1, 1}, {1, 1}, 2, kWhite); }), kPi, 0.1);
}

TEST(Canvas, RefusesACamera) {
  Picture picture(4, 4);
  Canvas canvas(picture, "top");
  try {
    canvas.Open(0, 1, 0, 1, kBlack);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("top"), std::string::npos) << error.message();
  }
}

// ---- Files

uint32_t BigEndian(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}
int LittleEndian(const std::string& bytes, size_t at) {
  return static_cast<uint8_t>(bytes[at]) | static_cast<uint8_t>(bytes[at + 1]) << 8;
}

Picture Noise(int64_t width, int64_t height, uint64_t seed) {
  Picture picture(width, height);
  Rng rng(seed, Purpose::kTest);
  for (uint8_t& value : picture.pixels) value = static_cast<uint8_t>(rng.Below(256));
  return picture;
}

TEST(Png, BeginsWithItsSignatureAndSize) {
  const std::string bytes = EncodePng(Noise(31, 7, 1));
  EXPECT_EQ(bytes.substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_EQ(bytes.substr(12, 4), "IHDR");
  EXPECT_EQ(BigEndian(bytes, 16), 31u);
  EXPECT_EQ(BigEndian(bytes, 20), 7u);
  EXPECT_EQ(bytes.substr(24, 2), std::string("\x08\x02")) << "8 bits, RGB";
}

// A frame of a GIF as its own bytes describe it.
struct GifFrame {
  int left, top, width, height, delay;
};

// Walks the blocks of GIF 89a.
std::vector<GifFrame> Frames(const std::string& bytes) {
  std::vector<GifFrame> frames;
  int delay = -1;
  size_t at = 13;
  const auto skip_blocks = [&] {
    while (bytes.at(at) != 0) at += static_cast<uint8_t>(bytes[at]) + 1u;
    ++at;
  };
  while (bytes.at(at) != ';') {
    if (bytes[at] == '!') {
      if (static_cast<uint8_t>(bytes[at + 1]) == 0xf9) delay = LittleEndian(bytes, at + 4);
      at += 2;
      skip_blocks();
      continue;
    }
    EXPECT_EQ(bytes[at], ',');
    frames.push_back({LittleEndian(bytes, at + 1), LittleEndian(bytes, at + 3),
                      LittleEndian(bytes, at + 5), LittleEndian(bytes, at + 7), delay});
    const auto flags = static_cast<uint8_t>(bytes[at + 9]);
    at += 10 + (flags & 0x80 ? 3u << ((flags & 7) + 1) : 0) + 1;
    skip_blocks();
  }
  EXPECT_EQ(at + 1, bytes.size());
  return frames;
}

TEST(Gif, HoldsWhatChangedAndKeepsTime) {
  GifEncoder encoder(30);
  Picture picture(20, 10);
  encoder.Add(picture);
  picture.At(3, 4)[1] = 200;
  picture.At(6, 7)[2] = 90;
  encoder.Add(picture);
  encoder.Add(picture);
  const std::string bytes = encoder.Finish();
  EXPECT_EQ(bytes.substr(0, 6), "GIF89a");
  EXPECT_EQ(LittleEndian(bytes, 6), 20);
  EXPECT_EQ(LittleEndian(bytes, 8), 10);
  EXPECT_NE(bytes.find("NETSCAPE2.0"), std::string::npos);
  const auto frames = Frames(bytes);
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[0].width, 20);
  EXPECT_EQ(frames[0].height, 10);
  EXPECT_EQ(frames[1].left, 3);
  EXPECT_EQ(frames[1].top, 4);
  EXPECT_EQ(frames[1].width, 4);
  EXPECT_EQ(frames[1].height, 4);
  EXPECT_EQ(frames[2].width * frames[2].height, 1) << "nothing changed";
  EXPECT_EQ(frames[0].delay + frames[1].delay + frames[2].delay, 10) << "three frames of 1/30 s";
}

TEST(Gif, RefusesAFrameOfAnotherSizeAndHasNoBytesWithoutFrames) {
  GifEncoder encoder(30);
  encoder.Add(Picture(20, 10));
  EXPECT_THROW(encoder.Add(Picture(10, 20)), Error);
  EXPECT_EQ(GifEncoder(30).Finish(), "");
}

// What Pillow decodes of the file: the frames' pixels one after the other.
std::string Decoded(const std::string& path) {
  const char* python = std::getenv("WEFT_PYTHON");
  const std::string out = path + ".rgb";
  const std::string script =
      "import sys\\nfrom PIL import Image, ImageSequence\\n"
      "with open(sys.argv[2], 'wb') as out:\\n"
      "  for frame in ImageSequence.Iterator(Image.open(sys.argv[1])):\\n"
      "    out.write(frame.convert('RGB').tobytes())\\n";
  const std::string command =
      "printf \"" + script + "\" | '" + python + "' - '" + path + "' '" + out + "'";
  return std::system(command.c_str()) == 0 ? ReadFile(out) : "";
}

class Pillow : public testing::Test {
 protected:
  void SetUp() override {
    const char* python = std::getenv("WEFT_PYTHON");
    const std::string command = std::string("'") + (python ? python : "") + "' -c 'import PIL'";
    if (python == nullptr || std::system(command.c_str()) != 0)
      GTEST_SKIP() << "WEFT_PYTHON names no interpreter with Pillow";
  }
  static std::string Bytes(const Picture& picture) {
    return {picture.pixels.begin(), picture.pixels.end()};
  }
  const TemporaryFolder folder_;
};

TEST_F(Pillow, ReadsEveryPixelOfAPng) {
  const Picture picture = Noise(33, 21, 2);
  const std::string path = folder_.path() + "/noise.png";
  WriteFileAtomic(path, EncodePng(picture));
  EXPECT_EQ(Decoded(path), Bytes(picture));
}

TEST_F(Pillow, ReadsEveryPixelOfAGifWithFewColours) {
  GifEncoder encoder(25);
  std::string expected;
  Picture picture(50, 40);
  for (int frame = 0; frame < 6; ++frame) {
    Canvas canvas(picture);
    canvas.Open(0, 50, 0, 40, kGrey);
    canvas.Rectangle(5 * frame, 5 * frame + 10, 3, 30, kRed);
    canvas.Circle({40.0 - 4 * frame, 20}, 4, kWhite);
    encoder.Add(picture);
    expected += Bytes(picture);
  }
  const std::string path = folder_.path() + "/few.gif";
  WriteFileAtomic(path, encoder.Finish());
  const std::string decoded = Decoded(path);
  ASSERT_EQ(decoded.size(), expected.size());
  EXPECT_EQ(decoded, expected);
}

TEST_F(Pillow, ReadsNearlyTheColoursOfAGifWithMany) {
  Picture picture(64, 64);
  for (int64_t y = 0; y < 64; ++y) {
    for (int64_t x = 0; x < 64; ++x) {
      picture.At(x, y)[0] = static_cast<uint8_t>(4 * x);
      picture.At(x, y)[1] = static_cast<uint8_t>(4 * y);
      picture.At(x, y)[2] = static_cast<uint8_t>(128 + (x + y) / 2);
    }
  }
  GifEncoder encoder(25);
  encoder.Add(picture);
  const std::string path = folder_.path() + "/many.gif";
  WriteFileAtomic(path, encoder.Finish());
  const std::string decoded = Decoded(path);
  ASSERT_EQ(decoded.size(), picture.pixels.size());
  double sum = 0;
  for (size_t i = 0; i < decoded.size(); ++i) {
    sum += std::abs(static_cast<uint8_t>(decoded[i]) - static_cast<int>(picture.pixels[i]));
  }
  EXPECT_LT(sum / static_cast<double>(decoded.size()), 8);
}

}  // namespace
}  // namespace weft
