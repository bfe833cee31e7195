#include "program/frame_writer.h"

#include <filesystem>
#include <fmt/format.h>
#include <optional>

#include "base/check.h"
#include "base/file.h"
#include "environments/drawing/gif_file.h"
#include "environments/drawing/png_file.h"
#include "program/subprocess.h"

namespace weft {
namespace {

class GifWriter final : public FrameWriter {
 public:
  GifWriter(std::string path, double frames_per_second)
      : path_(std::move(path)), encoder_(frames_per_second) {}
  void Add(const Picture& picture) override { encoder_.Add(picture); }
  void Finish() override { WriteFileAtomic(path_, encoder_.Finish()); }

 private:
  const std::string path_;
  GifEncoder encoder_;
};

class PngWriter final : public FrameWriter {
 public:
  explicit PngWriter(std::string path) : path_(std::move(path)) {}
  void Add(const Picture& picture) override { last_ = picture; }
  void Finish() override { WriteFileAtomic(path_, EncodePng(last_)); }

 private:
  const std::string path_;
  Picture last_;
};

class FolderWriter final : public FrameWriter {
 public:
  explicit FolderWriter(std::string path) : path_(std::move(path)) {
    MakeDirectories(path_);
    if (!ListDirectory(path_).empty()) {
      throw Error(ErrorCode::kConfig, path_ + " is not empty: frames go to a folder of their own");
    }
  }
  void Add(const Picture& picture) override {
    WriteFileAtomic(fmt::format("{}/{:06}.png", path_, frames_++), EncodePng(picture));
  }
  void Finish() override {}

 private:
  const std::string path_;
  int64_t frames_ = 0;
};

// ffmpeg writes beside the path, so that only a whole film appears there.
class Mp4Writer final : public FrameWriter {
 public:
  Mp4Writer(std::string path, double frames_per_second)
      : path_(std::move(path)),
        unfinished_(path_ + ".part"),
        frames_per_second_(frames_per_second) {}
  ~Mp4Writer() override {
    if (!process_) return;
    process_.reset();
    std::error_code ignored;
    std::filesystem::remove(unfinished_, ignored);
  }

  void Add(const Picture& picture) override {
    if (!process_) Start(picture);
    process_->Write({reinterpret_cast<const char*>(picture.pixels.data()), picture.pixels.size()});
  }
  void Finish() override {
    process_->Finish();
    process_.reset();
    std::filesystem::rename(unfinished_, path_);
  }

 private:
  void Start(const Picture& picture) {
    // Even sides, which the usual encoding needs.
    const std::vector<std::string> command{"ffmpeg",
                                           "-loglevel",
                                           "error",
                                           "-y",
                                           "-f",
                                           "rawvideo",
                                           "-pixel_format",
                                           "rgb24",
                                           "-video_size",
                                           fmt::format("{}x{}", picture.width, picture.height),
                                           "-framerate",
                                           fmt::format("{}", frames_per_second_),
                                           "-i",
                                           "-",
                                           "-vf",
                                           "pad=ceil(iw/2)*2:ceil(ih/2)*2",
                                           "-pix_fmt",
                                           "yuv420p",
                                           "-f",
                                           "mp4",
                                           unfinished_};
    try {
      process_.emplace(command);
    } catch (Error& error) {
      throw Error(error.code(), "an MP4 is written by ffmpeg: " + error.message() +
                                    "; install the Debian package ffmpeg, or write a .gif");
    }
  }

  const std::string path_, unfinished_;
  const double frames_per_second_;
  std::optional<FedProcess> process_;
};

}  // namespace

std::unique_ptr<FrameWriter> MakeFrameWriter(const std::string& output, double frames_per_second) {
  const std::string ending = std::filesystem::path(output).extension().string();
  if (DirectoryExists(output) || ending.empty()) return std::make_unique<FolderWriter>(output);
  if (ending == ".gif") return std::make_unique<GifWriter>(output, frames_per_second);
  if (ending == ".mp4") return std::make_unique<Mp4Writer>(output, frames_per_second);
  if (ending == ".png") return std::make_unique<PngWriter>(output);
  throw Error(ErrorCode::kConfig, output +
                                      ": pictures are written as .gif, .mp4 or .png, or into a "
                                      "folder, not as " +
                                      ending);
}

}  // namespace weft
