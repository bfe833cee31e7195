#include "environments/row_activity.h"

namespace weft {

void RowActivity::Watch(const std::string& id, int64_t first_row, int64_t rows, uint64_t seed) {
  const std::lock_guard lock(mutex_);
  busy_ = std::vector<std::atomic<uint8_t>>(static_cast<size_t>(rows));
  id_ = id;
  first_row_ = first_row;
  seed_ = seed;
}

std::string RowActivity::Text() const {
  constexpr int kMostShown = 4;
  const std::lock_guard lock(mutex_);
  std::string rows;
  int count = 0;
  for (size_t row = 0; row < busy_.size(); ++row) {
    if (busy_[row].load(std::memory_order_relaxed) == 0) continue;
    if (++count > kMostShown) continue;
    rows += (rows.empty() ? "" : ", ") + std::to_string(first_row_ + static_cast<int64_t>(row));
  }
  if (count == 0) return "";
  return id_ + ", row" + (count == 1 ? " " : "s ") + rows + (count > kMostShown ? ", ..." : "") +
         " (seed " + std::to_string(seed_) + ")";
}

}  // namespace weft
