#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/check.h"
#include "base/config.h"
#include "base/thread_pool.h"
#include "environments/drawing/canvas.h"
#include "environments/wrappers.h"
#include "environments/wrappers/wrapper.h"

namespace weft {
namespace {

// How the elements of a picture lie in a row of its leaf: [C, H, W], [H, W, C] or [H, W].
struct PictureLayout {
  int64_t channels, height, width;
  int64_t channel_step, line_step, point_step;
};

// Nothing for leaves that are no pictures. Three, four or one as the last dimension are channels.
std::optional<PictureLayout> LayoutOf(const Leaf& leaf) {
  const auto full = [](double low, double high) { return low == 0 && high == 255; };
  const bool bytes = leaf.dtype == DType::kUInt8 && leaf.low.size() == 1 && leaf.high.size() == 1 &&
                     full(leaf.low[0], leaf.high[0]);
  const Shape& shape = leaf.shape;
  if (!bytes || shape.rank() < 2 || shape.rank() > 3 || leaf.name == "action_mask") return {};
  if (shape.rank() == 2) return PictureLayout{1, shape[0], shape[1], 0, shape[1], 1};
  const int64_t last = shape[2];
  if (last == 1 || last == 3 || last == 4)
    return PictureLayout{last, shape[0], shape[1], 1, shape[1] * last, last};
  return PictureLayout{shape[0], shape[1], shape[2], shape[1] * shape[2], shape[2], 1};
}

// Rewrites the pictures among the leaves, channels first.
class PictureWrapper : public ObservationWrapper {
 public:
  PictureWrapper(std::unique_ptr<BatchEnvironment> inner, const char* name)
      : ObservationWrapper(std::move(inner)) {
    bool any = false;
    for (const Leaf& leaf : spec_.observation) {
      layouts_.push_back(LayoutOf(leaf));
      any = any || layouts_.back();
    }
    if (!any) {
      throw ConfigProblem("environment.wrappers",
                          std::string(name) +
                              " needs pictures, bytes from 0 to 255 of shape "
                              "[C, H, W], [H, W, C] or [H, W]; " +
                              spec_.id + " observes none");
    }
  }

 protected:
  using Pixels = const uint8_t*;
  // One row's picture of the leaf.
  virtual void Change(size_t leaf, const PictureLayout& layout, Pixels from, uint8_t* to) = 0;
  // The leaf becomes [channels, height, width].
  void Reshape(size_t leaf, int64_t channels, int64_t height, int64_t width) {
    spec_.observation[leaf].shape = {channels, height, width};
    spec_.observation[leaf].elements.clear();
  }

  std::vector<std::optional<PictureLayout>> layouts_;  // of the inner leaves
  ThreadPool* pool_ = nullptr;

 private:
  void Observe(TimeStep& out) override {
    for (size_t leaf = 0; leaf < layouts_.size(); ++leaf) {
      const Tensor& from = inside_.observation.entry(leaf).second;
      Tensor& to = out.observation.entry(leaf).second;
      if (!layouts_[leaf]) {
        to.CopyFrom(from);
        continue;
      }
      const uint8_t* const source = from.data<uint8_t>().data();
      uint8_t* const target = to.data<uint8_t>().data();
      const int64_t source_size = from.elements() / rows(), target_size = to.elements() / rows();
      auto change = [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
          Change(leaf, *layouts_[leaf], source + row * source_size, target + row * target_size);
      };
      if (pool_ == nullptr || rows() == 1) {
        change(0, rows());
      } else {
        pool_->ParallelForDynamic(rows(), 1, change);
      }
    }
  }
};

class GrayscaleWrapper final : public PictureWrapper {
 public:
  GrayscaleWrapper(std::unique_ptr<BatchEnvironment> inner, ThreadPool* pool)
      : PictureWrapper(std::move(inner), "grayscale") {
    pool_ = pool;
    for (size_t leaf = 0; leaf < layouts_.size(); ++leaf) {
      if (!layouts_[leaf]) continue;
      const PictureLayout& layout = *layouts_[leaf];
      if (layout.channels % 3 != 0) {
        throw ConfigProblem("environment.wrappers",
                            "grayscale needs red, green and blue; " + spec_.observation[leaf].name +
                                " of " + spec_.id + " has " + std::to_string(layout.channels) +
                                " channels");
      }
      Reshape(leaf, layout.channels / 3, layout.height, layout.width);
    }
  }

 private:
  void Change(size_t, const PictureLayout& layout, Pixels from, uint8_t* to) override {
    // Gymnasium's GrayscaleObservation: ITU-R BT.709 in its digits, cut off.
    constexpr double kRed = 0.2125, kGreen = 0.7154, kBlue = 0.0721;
    for (int64_t channel = 0; channel < layout.channels; channel += 3) {
      for (int64_t y = 0; y < layout.height; ++y) {
        Pixels pixel = from + channel * layout.channel_step + y * layout.line_step;
        for (int64_t x = 0; x < layout.width; ++x, pixel += layout.point_step) {
          const double gray = kRed * pixel[0] + kGreen * pixel[layout.channel_step] +
                              kBlue * pixel[2 * layout.channel_step];
          *to++ = static_cast<uint8_t>(gray);
        }
      }
    }
  }
};

// How much each point of a longer line weighs in those of a shorter one that lie over it.
class AreaWeights {
 public:
  AreaWeights(int64_t from, int64_t to) {
    const double scale = static_cast<double>(from) / static_cast<double>(to);
    for (int64_t i = 0; i < to; ++i) {
      const double begin = static_cast<double>(i) * scale, end = begin + scale;
      const auto first = static_cast<int64_t>(begin);
      const auto last = std::min(from, static_cast<int64_t>(std::ceil(end - kNothing)));
      first_.push_back(first);
      offset_.push_back(weights_.size());
      for (int64_t k = first; k < last; ++k) {
        const double left = std::max(begin, static_cast<double>(k));
        const double right = std::min(end, static_cast<double>(k + 1));
        weights_.push_back(static_cast<float>((right - left) / scale));
      }
    }
    offset_.push_back(weights_.size());
  }

  int64_t first(size_t i) const { return first_[i]; }
  std::span<const float> weights(size_t i) const {
    return std::span(weights_).subspan(offset_[i], offset_[i + 1] - offset_[i]);
  }

 private:
  static constexpr double kNothing = 1e-9;  // of a point: rounding, no overlap

  std::vector<int64_t> first_;
  std::vector<size_t> offset_;
  std::vector<float> weights_;
};

class ResizeWrapper final : public PictureWrapper {
 public:
  ResizeWrapper(std::unique_ptr<BatchEnvironment> inner, int64_t width, int64_t height,
                ThreadPool* pool)
      : PictureWrapper(std::move(inner), "resize"), width_(width), height_(height) {
    pool_ = pool;
    for (size_t leaf = 0; leaf < layouts_.size(); ++leaf) {
      axes_.push_back({});
      if (!layouts_[leaf]) continue;
      const PictureLayout& layout = *layouts_[leaf];
      if (width > layout.width || height > layout.height) {
        throw ConfigProblem("environment.wrappers",
                            "resize makes pictures smaller; " + spec_.observation[leaf].name +
                                " of " + spec_.id + " is " + std::to_string(layout.width) + " x " +
                                std::to_string(layout.height));
      }
      axes_.back() = Axes{AreaWeights(layout.width, width), AreaWeights(layout.height, height)};
      Reshape(leaf, layout.channels, height, width);
    }
  }

 private:
  struct Axes {
    AreaWeights columns, lines;
  };

  void Change(size_t leaf, const PictureLayout& layout, Pixels from, uint8_t* to) override {
    const Axes& axes = *axes_[leaf];
    for (int64_t channel = 0; channel < layout.channels; ++channel) {
      Pixels plane = from + channel * layout.channel_step;
      for (int64_t y = 0; y < height_; ++y) {
        const auto lines = axes.lines.weights(static_cast<size_t>(y));
        Pixels line = plane + axes.lines.first(static_cast<size_t>(y)) * layout.line_step;
        for (int64_t x = 0; x < width_; ++x) {
          const auto columns = axes.columns.weights(static_cast<size_t>(x));
          Pixels point = line + axes.columns.first(static_cast<size_t>(x)) * layout.point_step;
          float sum = 0;
          for (size_t k = 0; k < lines.size(); ++k, point += layout.line_step) {
            float across = 0;
            for (size_t i = 0; i < columns.size(); ++i)
              across += columns[i] * point[static_cast<int64_t>(i) * layout.point_step];
            sum += lines[k] * across;
          }
          *to++ = static_cast<uint8_t>(std::lrint(std::min(sum, 255.0f)));
        }
      }
    }
  }

  const int64_t width_, height_;
  std::vector<std::optional<Axes>> axes_;
};

class PixelWrapper final : public ObservationWrapper {
 public:
  PixelWrapper(std::unique_ptr<BatchEnvironment> inner, const PixelOptions& options)
      : ObservationWrapper(std::move(inner)),
        options_(options),
        pictures_(static_cast<size_t>(rows() / spec_.agent_count()),
                  Picture(options.width, options.height)) {
    if (spec_.appearance.width == 0) {
      throw ConfigProblem("environment.wrappers",
                          "pixels needs an environment that draws pictures, not " + spec_.id);
    }
    if (!options.keep_state) spec_.observation.clear();
    spec_.observation.push_back({.name = "pixels",
                                 .shape = {3, options.height, options.width},
                                 .dtype = DType::kUInt8,
                                 .low = {0},
                                 .high = {255}});
  }

 private:
  void Observe(TimeStep& out) override {
    if (options_.keep_state) {
      for (const auto& [name, tensor] : inside_.observation)
        out.observation.At(name.text()).CopyFrom(tensor);
    }
    Tensor& pixels = out.observation.At("pixels");
    const auto count = static_cast<int64_t>(pictures_.size());
    auto draw = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) Draw(i, pixels);
    };
    if (options_.pool == nullptr || count == 1) return draw(0, count);
    options_.pool->ParallelForDynamic(count, 1, draw);
  }

  // Of one environment, for all its agents.
  void Draw(int64_t environment, Tensor& pixels) {
    Picture& picture = pictures_[static_cast<size_t>(environment)];
    Canvas canvas(picture, options_.camera);
    inner_->Render(environment, canvas);
    const auto area = static_cast<size_t>(picture.width * picture.height);
    const auto agents = static_cast<size_t>(spec_.agent_count());
    uint8_t* plane =
        pixels.data<uint8_t>().data() + static_cast<size_t>(environment) * agents * 3 * area;
    for (size_t i = 0; i < 3 * agents; ++i, plane += area) {
      for (size_t k = 0; k < area; ++k) plane[k] = picture.pixels[3 * k + i % 3];
    }
  }

  const PixelOptions options_;
  std::vector<Picture> pictures_;  // of each environment
};

}  // namespace

std::unique_ptr<BatchEnvironment> ObservePixels(std::unique_ptr<BatchEnvironment> inner,
                                                const PixelOptions& options) {
  return std::make_unique<PixelWrapper>(std::move(inner), options);
}
std::unique_ptr<BatchEnvironment> Grayscale(std::unique_ptr<BatchEnvironment> inner,
                                            ThreadPool* pool) {
  return std::make_unique<GrayscaleWrapper>(std::move(inner), pool);
}
std::unique_ptr<BatchEnvironment> Resize(std::unique_ptr<BatchEnvironment> inner, int64_t width,
                                         int64_t height, ThreadPool* pool) {
  return std::make_unique<ResizeWrapper>(std::move(inner), width, height, pool);
}

}  // namespace weft
