#include "environments/leaf_bounds.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <type_traits>

namespace weft {
namespace {

// As numbers, so that a byte is not printed as a letter.
double Shown(float value) {
  return value;
}
int64_t Shown(int64_t value) {
  return value;
}
int64_t Shown(uint8_t value) {
  return value;
}

}  // namespace

template <class T>
void LeafBounds::Fill(const Leaf& leaf, int64_t rows) {
  const auto elements = static_cast<size_t>(elements_);
  Table<T> table;
  const auto repeat = [&](const std::vector<double>& bounds, std::vector<T>& to) {
    to.reserve(elements * static_cast<size_t>(rows));
    for (int64_t row = 0; row < rows; ++row) {
      for (size_t i = 0; i < elements; ++i)
        to.push_back(static_cast<T>(bounds.size() == 1 ? bounds[0] : bounds[i]));
    }
  };
  repeat(leaf.low, table.low);
  repeat(leaf.high, table.high);
  table_ = std::move(table);
}

LeafBounds::LeafBounds(const Leaf& leaf, size_t index, int64_t rows)
    : index_(index), elements_(leaf.shape.elements()) {
  if (leaf.nominal || leaf.low.empty() || leaf.high.empty()) return;
  const auto all = [&](auto holds) {
    return std::ranges::all_of(leaf.low, holds) && std::ranges::all_of(leaf.high, holds);
  };
  if (leaf.dtype == DType::kInt64) {
    if (all([](double bound) { return std::isfinite(bound); })) Fill<int64_t>(leaf, rows);
  } else if (leaf.dtype == DType::kUInt8) {
    if (!all([](double bound) { return bound <= 0 || bound >= 255; })) Fill<uint8_t>(leaf, rows);
  } else if (!all([](double bound) { return std::isinf(bound); })) {
    Fill<float>(leaf, rows);
  }
}

bool LeafBounds::Hold(const void* values, int64_t begin, int64_t end) const {
  begin *= elements_;
  end *= elements_;
  // No branch, so that the loop vectorises.
  const auto inside = [&]<class T>(const Table<T>& table) {
    const T* const value = static_cast<const T*>(values);
    const T* const low = table.low.data();
    const T* const high = table.high.data();
    using Word = std::conditional_t<sizeof(T) == 1, uint8_t,
                                    std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
    Word outside = 0;
    for (int64_t i = begin; i < end; ++i)
      outside |= static_cast<Word>((value[i] < low[i]) | (value[i] > high[i]));
    return outside == 0;
  };
  if (const auto* table = std::get_if<Table<float>>(&table_)) return inside(*table);
  if (const auto* table = std::get_if<Table<int64_t>>(&table_)) return inside(*table);
  return inside(std::get<Table<uint8_t>>(table_));
}

std::pair<int64_t, std::string> LeafBounds::Find(const void* values, int64_t begin,
                                                 int64_t end) const {
  const auto find = [&]<class T>(const Table<T>& table) -> std::pair<int64_t, std::string> {
    for (int64_t i = begin * elements_; i < end * elements_; ++i) {
      const auto at = static_cast<size_t>(i);
      const T value = static_cast<const T*>(values)[i];
      if (value >= table.low[at] && value <= table.high[at]) continue;
      std::ostringstream text;
      text.precision(9);
      if (elements_ > 1) text << "[" << i % elements_ << "]";
      text << " is " << Shown(value) << ", outside its bounds " << Shown(table.low[at]) << " .. "
           << Shown(table.high[at]);
      return {i / elements_, text.str()};
    }
    return {begin, ""};
  };
  if (const auto* table = std::get_if<Table<float>>(&table_)) return find(*table);
  if (const auto* table = std::get_if<Table<int64_t>>(&table_)) return find(*table);
  return find(std::get<Table<uint8_t>>(table_));
}

}  // namespace weft
