// Attention made of the dense kernels: scores are rows of queries times a page of keys, laid out as
// a panel of weights; the weighted sum is rows of probabilities times a page of values.
#include "tensor/kernels_attention.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "tensor/kernels_split.h"

namespace weft::kernels {
namespace {

constexpr int64_t kPage = kPagePositions;

// Elements of one head's keys [D][64] and values [64][D padded to panels] in a page.
int64_t KeyElements(const AttentionShape& shape) {
  return shape.head_dimension * kPage;
}
int64_t ValueElements(const AttentionShape& shape) {
  return kPage * Padded(shape.head_dimension);
}
int64_t HeadElements(const AttentionShape& shape) {
  return KeyElements(shape) + ValueElements(shape);
}

// Where element (row, column) of a matrix [rows, columns] in pair panels lies.
int64_t PairIndex(int64_t rows, int64_t columns, int64_t row, int64_t column) {
  return 2 * PanelIndex(rows / 2, columns, row / 2, column) + row % 2;
}

// Scratch memory of a task from the caching allocator.
template <class T>
T* Scratch(Tensor& holder, int64_t elements) {
  holder = Tensor::Empty({elements * static_cast<int64_t>(sizeof(T))}, DType::kUInt8);
  return reinterpret_cast<T*>(holder.raw());
}

// Columns [begin, begin + columns) of [64, D] in panels lie `width` apart from row to row.
struct Panel {
  int64_t begin, columns, width;
};
template <class F>
void ForPagePanels(int64_t dimension, F&& function) {
  ForPanels(dimension, [&](int64_t begin, int64_t width) {
    function(Panel{.begin = begin, .columns = std::min(kPanel, dimension - begin), .width = width});
  });
}

// Keys and values [rows, D], rows `stride` apart, to the positions of a page from `slot` on.
void Store(const KernelTable& table, const AttentionShape& shape, int64_t slot, int64_t rows,
           int64_t stride, const float* k, const float* v, std::byte* page) {
  const int64_t dimension = shape.head_dimension;
  if (!shape.bf16) {
    auto* const keys = reinterpret_cast<float*>(page);
    auto* const values = keys + KeyElements(shape);
    table.transpose(rows, dimension, k, stride, keys + slot, kPage);
    for (int64_t r = 0; r < rows; ++r) {
      ForPagePanels(dimension, [&](const Panel& panel) {
        std::memcpy(values + PanelIndex(kPage, dimension, slot + r, panel.begin),
                    v + r * stride + panel.begin, panel.columns * sizeof(float));
      });
    }
    return;
  }
  auto* const keys = reinterpret_cast<uint16_t*>(page);
  auto* const values = keys + KeyElements(shape);
  Tensor memory;
  auto* const rounded = Scratch<uint16_t>(memory, rows * dimension);
  for (int64_t r = 0; r < rows; ++r) {
    table.round(dimension, k + r * stride, rounded + r * dimension);
  }
  // Pairs move as floats of the same bits.
  table.transpose(rows, dimension / 2, reinterpret_cast<const float*>(rounded), dimension / 2,
                  reinterpret_cast<float*>(keys) + slot, kPage);
  for (int64_t r = 0; r < rows;) {
    const int64_t row = slot + r;
    const float* const from = v + r * stride;
    if (row % 2 == 0 && r + 1 < rows) {
      ForPagePanels(dimension, [&](const Panel& panel) {
        table.interleave(panel.columns, from + panel.begin, from + stride + panel.begin,
                         reinterpret_cast<uint32_t*>(values) +
                             PanelIndex(kPage / 2, dimension, row / 2, panel.begin));
      });
      r += 2;
    } else {
      table.round(dimension, from, rounded);
      for (int64_t d = 0; d < dimension; ++d) {
        values[PairIndex(kPage, dimension, row, d)] = rounded[d];
      }
      ++r;
    }
  }
}

// Query rows of one task: those of all heads of a group over some positions, head by head.
struct QueryTile {
  int64_t kv_head, group, row, rows;  // row: the first, counted from the span's
  int64_t heads_rows() const { return group * rows; }
};

// Keys [first, last) that a position sees.
int64_t FirstKey(const AttentionShape& shape, int64_t position) {
  return shape.window > 0 ? std::max<int64_t>(0, position - shape.window + 1) : 0;
}

// Rows that keep the scores of a task near the second-level cache.
int64_t TileRows(const AttentionSpan& span, int64_t group) {
  const int64_t pages = (span.past + span.rows + kPage - 1) / kPage;
  return std::clamp<int64_t>(4096 / std::max<int64_t>(1, group * pages), 1, kPage);
}

class Forward {
 public:
  Forward(const Context& context, const AttentionShape& shape, int64_t offset, int64_t stride,
          const float* q, Output y, float* log_sum)
      : table_(TableOf(context)),
        pairs_(PairsOf(context)),
        shape_(shape),
        offset_(offset),
        stride_(stride),
        q_(q),
        y_(y),
        log_sum_(log_sum) {}

  void Run(const AttentionSpan& span, const QueryTile& tile) const {
    const int64_t dimension = shape_.head_dimension, rows = tile.heads_rows();
    const int64_t begin = span.past + tile.row;
    const int64_t end = shape_.causal ? begin + tile.rows : span.past + span.rows;
    const int64_t first_page = FirstKey(shape_, begin) / kPage;
    const int64_t pages = (end + kPage - 1) / kPage - first_page;

    Tensor query_memory, score_memory, p_memory, sum_memory;
    const float* const query = Gather(span, tile, query_memory);
    auto* const s = Scratch<float>(score_memory, pages * rows * kPage);
    auto* const p = shape_.bf16 ? Scratch<uint16_t>(p_memory, pages * rows * kPage) : nullptr;
    auto* const numbers = Scratch<float>(sum_memory, rows * (5 + dimension));
    float *const largest = numbers, *const sum = numbers + rows, *const log = numbers + 2 * rows;
    float* const o = numbers + 5 * rows;
    auto* const first = reinterpret_cast<int32_t*>(numbers + 3 * rows);
    auto* const last = first + rows;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t position = begin + r % tile.rows;
      first[r] = static_cast<int32_t>(FirstKey(shape_, position) - first_page * kPage);
      last[r] = static_cast<int32_t>((shape_.causal ? position + 1 : end) - first_page * kPage);
    }

    for (int64_t i = 0; i < pages; ++i) {
      Multiply(rows, dimension, kPage, query, Page(span, first_page + i, tile.kv_head), nullptr,
               s + i * rows * kPage);
    }
    table_.attend(rows, pages, shape_.scale, shape_.softcap, first, last, s, p, largest, sum);
    for (int64_t i = 0; i < pages; ++i) {
      const int64_t at = i * rows * kPage;
      const float* const probabilities =
          shape_.bf16 ? reinterpret_cast<const float*>(p + at) : s + at;
      const std::byte* const values =
          Page(span, first_page + i, tile.kv_head) + KeyElements(shape_) * element_bytes();
      Multiply(rows, kPage, dimension, probabilities, values, i == 0 ? nullptr : o, o);
    }

    if (log_sum_ != nullptr) table_.unary(Unary::kLog, rows, sum, log);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t token = span.first_row + tile.row + r % tile.rows;
      const int64_t head = tile.kv_head * tile.group + r / tile.rows;
      if (log_sum_ != nullptr) {
        log_sum_[token * shape_.heads + head] = largest[r] + log[r];
      }
      Write(token * shape_.heads + head, o + r * dimension, 1.0f / sum[r]);
    }
  }

 private:
  int64_t element_bytes() const { return shape_.bf16 ? 2 : 4; }
  const std::byte* Page(const AttentionSpan& span, int64_t page, int64_t kv_head) const {
    return span.pages[page] + offset_ + kv_head * HeadElements(shape_) * element_bytes();
  }

  // The tile's queries [rows, D], rounded in bf16.
  const float* Gather(const AttentionSpan& span, const QueryTile& tile, Tensor& memory) const {
    const int64_t dimension = shape_.head_dimension;
    auto* const to = Scratch<float>(memory, tile.heads_rows() * dimension);
    for (int64_t r = 0; r < tile.heads_rows(); ++r) {
      const int64_t token = span.first_row + tile.row + r % tile.rows;
      const float* const from =
          q_ + token * stride_ + (tile.kv_head * tile.group + r / tile.rows) * dimension;
      if (shape_.bf16) {
        table_.round(dimension, from, reinterpret_cast<uint16_t*>(to) + r * dimension);
      } else {
        std::memcpy(to + r * dimension, from, dimension * sizeof(float));
      }
    }
    return to;
  }

  void Multiply(int64_t rows, int64_t in, int64_t out, const float* x, const std::byte* w,
                const float* addend, float* y) const {
    const DenseWork work{.rows = rows,
                         .in = shape_.bf16 ? in / 2 : in,
                         .out = out,
                         .x = x,
                         .w = reinterpret_cast<const float*>(w),
                         .addend = addend,
                         .addend_stride = out,
                         .activation = Activation::kNone,
                         .h = nullptr,
                         .y = y};
    (shape_.bf16 ? pairs_.dense : table_.dense)(work, TileUse::kAlone, 0, INT64_MAX);
  }

  void Write(int64_t row, float* o, float factor) const {
    const int64_t dimension = shape_.head_dimension, at = row * dimension;
    if (y_.bf16) {
      table_.affine(dimension, factor, 0, o, o);
      table_.round(dimension, o, static_cast<uint16_t*>(y_.data) + at);
    } else {
      table_.affine(dimension, factor, 0, o, static_cast<float*>(y_.data) + at);
    }
  }

  const KernelTable& table_;
  const PairTable& pairs_;
  const AttentionShape& shape_;
  int64_t offset_, stride_;
  const float* q_;
  Output y_;
  float* log_sum_;
};

// function(span, tile) for every task of a forward pass.
template <class F>
void ForTiles(const Context& context, const AttentionShape& shape,
              std::span<const AttentionSpan> spans, F&& function) {
  const int64_t group = shape.heads / shape.kv_heads;
  Tensor memory;
  auto* const first = Scratch<int64_t>(memory, std::ssize(spans) + 1);
  double cost = 0;
  first[0] = 0;
  for (int64_t i = 0; i < std::ssize(spans); ++i) {
    const AttentionSpan& span = spans[i];
    const int64_t rows = TileRows(span, group);
    first[i + 1] = first[i] + (span.rows + rows - 1) / rows * shape.kv_heads;
    cost += static_cast<double>(span.rows * (span.past + span.rows)) *
            static_cast<double>(shape.heads * shape.head_dimension) * 0.02;
  }
  auto run = [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const auto i = std::upper_bound(first, first + spans.size(), task) - first - 1;
      const AttentionSpan& span = spans[i];
      const int64_t rows = TileRows(span, group);
      // The longest tiles first.
      const int64_t tiles = (span.rows + rows - 1) / rows, local = task - first[i];
      const int64_t row = (tiles - 1 - local / shape.kv_heads) * rows;
      function(span, QueryTile{.kv_head = local % shape.kv_heads,
                               .group = group,
                               .row = row,
                               .rows = std::min(rows, span.rows - row)});
    }
  };
  const int64_t tasks = first[spans.size()];
  if (WorthSharing(context, cost)) {
    context.pool->ParallelForDynamic(tasks, 1, run);
  } else {
    run(0, tasks);
  }
}

class Backward {
 public:
  Backward(const Context& context, const AttentionShape& shape, int64_t stride, const float* q,
           const float* k, const float* v, Input y, const float* log_sum, const float* d_y,
           float* d_q, float* d_k, float* d_v)
      : table_(TableOf(context)),
        shape_(shape),
        stride_(stride),
        q_(q),
        k_(k),
        v_(v),
        log_sum_(log_sum),
        d_y_(d_y),
        y_(y),
        d_q_(d_q),
        d_k_(d_k),
        d_v_(d_v) {}

  // A span without parent and all that go on from it.
  void Run(std::span<const AttentionSpan> spans, int64_t root, int64_t kv_head) const {
    RunFrom(spans, root, nullptr, kv_head);
  }

 private:
  // As products see a part of a row: in bf16 rounded.
  void Copy(int64_t count, const float* from, float* to) const {
    if (!shape_.bf16) {
      std::memcpy(to, from, count * sizeof(float));
      return;
    }
    std::array<uint16_t, kPanel> rounded;
    for (int64_t i = 0; i < count; i += kPanel) {
      const int64_t some = std::min(kPanel, count - i);
      table_.round(some, from + i, rounded.data());
      table_.widen(some, rounded.data(), to + i);
    }
  }

  int64_t Element(const AttentionSpan& span, const QueryTile& tile, int64_t r,
                  int64_t stride) const {
    return (span.first_row + tile.row + r % tile.rows) * stride +
           (tile.kv_head * tile.group + r / tile.rows) * shape_.head_dimension;
  }

  // A sequence's keys as panels [64, D], its keys and values turned as panels [D, 64], and the
  // gradients of both as panels [64, D], page by page; positions past the end are 0.
  struct Sequence {
    Tensor memory;
    int64_t pages, keys, values;
    float *k_panel, *k_turned, *v_turned, *d_k, *d_v;

    Sequence(const Backward& b, std::span<const AttentionSpan> spans, int64_t index,
             int64_t kv_head)
        : pages((spans[index].past + spans[index].rows + kPage - 1) / kPage),
          keys(KeyElements(b.shape_)),
          values(ValueElements(b.shape_)) {
      const int64_t dimension = b.shape_.head_dimension, elements = pages * (3 * values + 2 * keys);
      k_panel = Scratch<float>(memory, elements);
      k_turned = k_panel + pages * values;
      v_turned = k_turned + pages * keys;
      d_k = v_turned + pages * keys;
      d_v = d_k + pages * values;
      std::fill(k_panel, k_panel + elements, 0.0f);
      Tensor v_memory;
      auto* const v_rows = Scratch<float>(v_memory, kPage * dimension);
      const int64_t end = spans[index].past + spans[index].rows;
      for (int64_t page = 0; page < pages; ++page) {
        const int64_t rows = std::min(kPage, end - page * kPage);
        for (int64_t slot = 0; slot < rows; ++slot) {
          const int64_t position = page * kPage + slot;
          const int64_t at = RowOf(spans, index, position) * b.stride_ + kv_head * dimension;
          ForPagePanels(dimension, [&](const Panel& panel) {
            b.Copy(panel.columns, b.k_ + at + panel.begin,
                   k_panel + page * values + PanelIndex(kPage, dimension, slot, panel.begin));
          });
          b.Copy(dimension, b.v_ + at, v_rows + slot * dimension);
        }
        ForPagePanels(dimension, [&](const Panel& panel) {
          b.table_.transpose(rows, panel.columns, k_panel + page * values + kPage * panel.begin,
                             panel.width, k_turned + page * keys + kPage * panel.begin, kPage);
        });
        b.table_.transpose(rows, dimension, v_rows, dimension, v_turned + page * keys, kPage);
      }
    }

    // use(first, elements) for the runs of memory in which positions [0, count) of a matrix in
    // panels lie.
    template <class F>
    void ForRuns(int64_t count, F&& use) const {
      for (int64_t page = 0; page * kPage < count; ++page) {
        const int64_t rows = std::min(kPage, count - page * kPage);
        ForPagePanels(keys / kPage, [&](const Panel& panel) {
          use(page * values + kPage * panel.begin, rows * panel.width);
        });
      }
    }
    static int64_t RowOf(std::span<const AttentionSpan> spans, int64_t index, int64_t position) {
      while (position < spans[index].past) index = spans[index].parent;
      return spans[index].first_row + position - spans[index].past;
    }
    // Adds the gradients of the first positions to those of the parent, which they are.
    void AddPast(const KernelTable& table, int64_t past, const Sequence& parent) const {
      ForRuns(past, [&](int64_t first, int64_t count) {
        for (const auto& [from, to] : {std::pair{d_k, parent.d_k}, std::pair{d_v, parent.d_v}}) {
          table.binary(Binary::kAdd, Broadcasting::kNone, 1, count, to + first, from + first,
                       to + first);
        }
      });
    }
  };

  // A span and those that have it as their parent; its own, which is not done yet, may be null.
  void RunFrom(std::span<const AttentionSpan> spans, int64_t index, const Sequence* parent,
               int64_t kv_head) const {
    const AttentionSpan& span = spans[index];
    const Sequence sequence(*this, spans, index, kv_head);
    Rows(span, sequence, kv_head);
    for (int64_t i = index + 1; i < std::ssize(spans); ++i) {
      if (spans[i].parent == index) RunFrom(spans, i, &sequence, kv_head);
    }
    if (parent != nullptr) sequence.AddPast(table_, span.past, *parent);
    Write(span, sequence, kv_head);
  }

  // The gradients of the span's queries, and what they add to those of its sequence's keys.
  void Rows(const AttentionSpan& span, const Sequence& sequence, int64_t kv_head) const {
    const int64_t dimension = shape_.head_dimension, group = shape_.heads / shape_.kv_heads;
    const int64_t keys = sequence.keys, values = sequence.values;
    const int64_t most = group * std::min(span.rows, kPage);
    Tensor tile_memory;
    auto* const q = Scratch<float>(tile_memory, most * (3 * dimension + 2 * kPage + 4));
    float *const d_o = q + most * dimension, *const d_q = d_o + most * dimension;
    float *const s = d_q + most * dimension, *const d_p = s + most * kPage;
    float *const normal = d_p + most * kPage, *const delta = normal + most;
    auto* const first = reinterpret_cast<int32_t*>(delta + most);
    auto* const last = first + most;
    for (int64_t row = 0; row < span.rows; row += kPage) {
      const QueryTile tile{
          .kv_head = kv_head, .group = group, .row = row, .rows = std::min(kPage, span.rows - row)};
      const int64_t rows = tile.heads_rows(), begin = span.past + row;
      Gather(span, tile, q, d_o, d_q, normal, delta);
      bool added = false;
      for (int64_t page = FirstKey(shape_, begin) / kPage; page * kPage < begin + tile.rows;
           ++page) {
        for (int64_t r = 0; r < rows; ++r) {
          const int64_t position = begin + r % tile.rows;
          first[r] = static_cast<int32_t>(FirstKey(shape_, position) - page * kPage);
          last[r] = static_cast<int32_t>(position + 1 - page * kPage);
        }
        Multiply(rows, dimension, kPage, q, sequence.k_turned + page * keys, nullptr, s);
        Multiply(rows, dimension, kPage, d_o, sequence.v_turned + page * keys, nullptr, d_p);
        table_.attend_gradient(rows, shape_.scale, shape_.softcap, first, last, normal, delta, s,
                               d_p, s, d_p);
        AddTransposed(rows, s, d_o, sequence.d_v + page * values);
        AddTransposed(rows, d_p, q, sequence.d_k + page * values);
        Multiply(rows, kPage, dimension, d_p, sequence.k_panel + page * values,
                 added ? d_q : nullptr, d_q);
        added = true;
      }
      for (int64_t r = 0; r < rows; ++r) {
        std::memcpy(d_q_ + Element(span, tile, r, stride_), d_q + r * dimension,
                    dimension * sizeof(float));
      }
    }
  }

  // The gradients of the span's own keys and values to their rows.
  void Write(const AttentionSpan& span, const Sequence& sequence, int64_t kv_head) const {
    const int64_t dimension = shape_.head_dimension;
    for (int64_t row = 0; row < span.rows; ++row) {
      const int64_t at = (span.first_row + row) * stride_ + kv_head * dimension;
      const int64_t position = span.past + row, page = position / kPage * sequence.values;
      ForPagePanels(dimension, [&](const Panel& panel) {
        const int64_t from = page + PanelIndex(kPage, dimension, position % kPage, panel.begin);
        const size_t bytes = panel.columns * sizeof(float);
        std::memcpy(d_k_ + at + panel.begin, sequence.d_k + from, bytes);
        std::memcpy(d_v_ + at + panel.begin, sequence.d_v + from, bytes);
      });
    }
  }

  // The tile's queries and gradients of outputs, and by row the logarithm of its softmax's sum and
  // the product of its output with its gradient; y [rows, D] is overwritten.
  void Gather(const AttentionSpan& span, const QueryTile& tile, float* q, float* d_o, float* y,
              float* normal, float* delta) const {
    const int64_t dimension = shape_.head_dimension, width = shape_.heads * dimension;
    const int64_t rows = tile.heads_rows();
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = Element(span, tile, r, width), to = r * dimension;
      Copy(dimension, q_ + Element(span, tile, r, stride_), q + to);
      std::memcpy(d_o + to, d_y_ + at, dimension * sizeof(float));
      if (y_.bf16) {
        table_.widen(dimension, static_cast<const uint16_t*>(y_.data) + at, y + to);
      } else {
        std::memcpy(y + to, static_cast<const float*>(y_.data) + at, dimension * sizeof(float));
      }
      normal[r] = log_sum_[at / dimension];
    }
    // The gradient of a factor that is the same along a row; the factor itself does not count.
    table_.binary_gradient_sum_last({.op = Binary::kMultiply,
                                     .broadcast = Broadcasting::kColumn,
                                     .rows = rows,
                                     .columns = dimension,
                                     .a = y,
                                     .b = normal,
                                     .d_y = d_o},
                                    false, delta);
  }

  void Multiply(int64_t rows, int64_t in, int64_t out, const float* x, const float* w,
                const float* addend, float* y) const {
    table_.dense({.rows = rows,
                  .in = in,
                  .out = out,
                  .x = x,
                  .w = w,
                  .addend = addend,
                  .addend_stride = out,
                  .activation = Activation::kNone,
                  .h = nullptr,
                  .y = y},
                 TileUse::kAlone, 0, INT64_MAX);
  }
  // d [64, D] += x[rows, 64]^T d_z[rows, D].
  void AddTransposed(int64_t rows, const float* x, const float* d_z, float* d) const {
    table_.weight_gradient({.rows = rows,
                            .in = kPage,
                            .out = shape_.head_dimension,
                            .x = x,
                            .d_z = d_z,
                            .accumulate = true,
                            .d_w = d},
                           0, INT64_MAX);
  }

  const KernelTable& table_;
  const AttentionShape& shape_;
  int64_t stride_;
  const float *q_, *k_, *v_, *log_sum_, *d_y_;
  Input y_;
  float *d_q_, *d_k_, *d_v_;
};

}  // namespace

int64_t AttentionShape::page_bytes() const {
  return kv_heads * HeadElements(*this) * (bf16 ? 2 : 4);
}

void StoreKeys(const Context& context, const AttentionShape& shape,
               std::span<const AttentionSpan> spans, int64_t offset, int64_t stride, const float* k,
               const float* v) {
  const KernelTable& table = TableOf(context);
  const int64_t head_bytes = HeadElements(shape) * (shape.bf16 ? 2 : 4);
  const auto store = [&](const AttentionSpan& span) {
    for (int64_t row = 0; row < span.rows;) {
      const int64_t position = span.past + row, slot = position % kPage;
      const int64_t rows = std::min(span.rows - row, kPage - slot);
      std::byte* const page = span.pages[position / kPage] + offset;
      if (slot == 0) std::memset(page, 0, shape.page_bytes());
      for (int64_t head = 0; head < shape.kv_heads; ++head) {
        const int64_t at = (span.first_row + row) * stride + head * shape.head_dimension;
        Store(table, shape, slot, rows, stride, k + at, v + at, page + head * head_bytes);
      }
      row += rows;
    }
  };
  double cost = 0;
  for (const AttentionSpan& span : spans) {
    cost += static_cast<double>(span.rows * shape.kv_heads * shape.head_dimension) * 3.0;
  }
  auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) store(spans[i]);
  };
  if (WorthSharing(context, cost)) {
    context.pool->ParallelForDynamic(std::ssize(spans), 1, run);
  } else {
    run(0, std::ssize(spans));
  }
}

void Attention(const Context& context, const AttentionShape& shape,
               std::span<const AttentionSpan> spans, int64_t offset, int64_t stride, const float* q,
               Output y, float* log_sum) {
  const Forward forward(context, shape, offset, stride, q, y, log_sum);
  ForTiles(context, shape, spans,
           [&](const AttentionSpan& span, const QueryTile& tile) { forward.Run(span, tile); });
}

void AttentionGradient(const Context& context, const AttentionShape& shape,
                       std::span<const AttentionSpan> spans, int64_t stride, const float* q,
                       const float* k, const float* v, Input y, const float* log_sum,
                       const float* d_y, float* d_q, float* d_k, float* d_v) {
  const Backward backward(context, shape, stride, q, k, v, y, log_sum, d_y, d_q, d_k, d_v);
  double cost = 0;
  for (const AttentionSpan& span : spans) {
    cost += static_cast<double>(span.rows * (span.past + span.rows)) *
            static_cast<double>(shape.heads * shape.head_dimension) * 0.05;
  }
  auto run = [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t span = task / shape.kv_heads;
      if (spans[span].parent < 0) backward.Run(spans, span, task % shape.kv_heads);
    }
  };
  const int64_t tasks = std::ssize(spans) * shape.kv_heads;
  if (WorthSharing(context, cost)) {
    context.pool->ParallelForDynamic(tasks, 1, run);
  } else {
    run(0, tasks);
  }
}

}  // namespace weft::kernels
