// Patches of images and back, and the transposition between channels first and last. Copies and
// adds only: memory sets the pace, so there is one version for every instruction set. B batch, C
// channels, OH x OW output pixels, k kernel.
#include <algorithm>

#include "tensor/kernels_split.h"

namespace weft::kernels {
namespace {

struct Window {
  int64_t height, width, kernel, stride, pad;
  int64_t out_height() const { return (height + 2 * pad - kernel) / stride + 1; }
  int64_t out_width() const { return (width + 2 * pad - kernel) / stride + 1; }

  // The kernel columns [first, last) of output column ox that fall into the image.
  int64_t first(int64_t ox) const {
    return std::min(kernel, std::max<int64_t>(0, pad - ox * stride));
  }
  int64_t last(int64_t ox) const {
    return std::max(first(ox), std::min(kernel, width + pad - ox * stride));
  }
};

}  // namespace

void Im2Col(const Context& context, int64_t batch, int64_t channels, int64_t height, int64_t width,
            int64_t kernel, int64_t stride, int64_t pad, const float* x, float* patches) {
  const Window window{height, width, kernel, stride, pad};
  const int64_t out_height = window.out_height(), out_width = window.out_width();
  const int64_t patch = channels * kernel * kernel;
  SplitRows(context, batch * out_height, out_width * patch, kStreamCost,
            [&](int64_t begin, int64_t end) {
              for (int64_t line = begin; line < end; ++line) {
                const int64_t b = line / out_height, oy = line % out_height;
                float* to = patches + line * out_width * patch;
                for (int64_t ox = 0; ox < out_width; ++ox) {
                  const int64_t first = window.first(ox), last = window.last(ox);
                  for (int64_t c = 0; c < channels; ++c) {
                    for (int64_t ky = 0; ky < kernel; ++ky, to += kernel) {
                      const int64_t row = oy * stride + ky - pad;
                      if (row < 0 || row >= height) {
                        std::fill(to, to + kernel, 0.0f);
                        continue;
                      }
                      const float* from =
                          x + ((b * channels + c) * height + row) * width + ox * stride - pad;
                      for (int64_t kx = 0; kx < first; ++kx) to[kx] = 0;
                      for (int64_t kx = first; kx < last; ++kx) to[kx] = from[kx];
                      for (int64_t kx = last; kx < kernel; ++kx) to[kx] = 0;
                    }
                  }
                }
              }
            });
}

// Patches are visited last to first: a pixel then meets its kernel rows, and within them its kernel
// columns, ascending, while memory is read in one sweep.
void Col2Im(const Context& context, int64_t batch, int64_t channels, int64_t height, int64_t width,
            int64_t kernel, int64_t stride, int64_t pad, const float* d_patches, bool accumulate,
            float* d_x) {
  const Window window{height, width, kernel, stride, pad};
  const int64_t out_height = window.out_height(), out_width = window.out_width();
  const int64_t patch = channels * kernel * kernel, image = channels * height * width;
  SplitRows(
      context, batch, out_height * out_width * patch, kStreamCost, [&](int64_t begin, int64_t end) {
        if (!accumulate) std::fill(d_x + begin * image, d_x + end * image, 0.0f);
        for (int64_t b = begin; b < end; ++b) {
          for (int64_t pixel = out_height * out_width; pixel-- > 0;) {
            const int64_t oy = pixel / out_width, ox = pixel % out_width;
            const int64_t first = window.first(ox), last = window.last(ox);
            const float* from = d_patches + (b * out_height * out_width + pixel) * patch;
            for (int64_t c = 0; c < channels; ++c) {
              for (int64_t ky = 0; ky < kernel; ++ky, from += kernel) {
                const int64_t row = oy * stride + ky - pad;
                if (row < 0 || row >= height) continue;
                float* to = d_x + ((b * channels + c) * height + row) * width + ox * stride - pad;
                for (int64_t kx = first; kx < last; ++kx) to[kx] += from[kx];
              }
            }
          }
        }
      });
}

void SwapLastTwo(const Context& context, int64_t batch, int64_t a, int64_t b, const float* x,
                 float* y) {
  const KernelTable& table = TableOf(context);
  SplitRows(context, batch, a * b, 2 * kStreamCost, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) table.transpose(a, b, x + n * a * b, b, y + n * a * b, a);
  });
}

}  // namespace weft::kernels
