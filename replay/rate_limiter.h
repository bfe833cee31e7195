// How fast a table may be sampled compared to how fast it is filled (as in Cassirer et al. 2021,
// "Reverb: a framework for experience replay"). It never waits: a call that would have to is
// answered with "not now".
#pragma once

#include <cstdint>
#include <limits>

namespace weft {

struct RateLimit {
  int64_t min_size = 1;  // rows in the table before the first sample
  double samples_per_insert =
      0;  // rows sampled per row inserted, held within error_buffer; 0: no ratio is held
  double error_buffer =
      std::numeric_limits<double>::infinity();  // sampled rows by which either side may be ahead
};

class RateLimiter {
 public:
  explicit RateLimiter(const RateLimit& limit) : limit_(limit) {}

  // Whether `rows` more may be inserted: until min_size always, then while samples are not too far
  // behind.
  bool CanInsert(int64_t rows) const {
    return !Holds() || inserted_ < limit_.min_size || Lead() + Wanted(rows) <= limit_.error_buffer;
  }
  // Whether `rows` more may be sampled from a table of `size` rows.
  bool CanSample(int64_t rows, int64_t size) const {
    if (size < limit_.min_size || size == 0) return false;
    return !Holds() || Lead() - static_cast<double>(rows) >= -limit_.error_buffer;
  }
  void Inserted(int64_t rows) { inserted_ += rows; }
  void Sampled(int64_t rows) { sampled_ += rows; }

  int64_t inserted() const { return inserted_; }
  int64_t sampled() const { return sampled_; }
  void Restore(int64_t inserted, int64_t sampled) {
    inserted_ = inserted;
    sampled_ = sampled;
  }

 private:
  bool Holds() const { return limit_.samples_per_insert > 0; }
  double Wanted(int64_t rows) const {
    return limit_.samples_per_insert * static_cast<double>(rows);
  }
  // Rows by which sampling is behind the ratio, counted from the moment that min_size is reached.
  double Lead() const {
    return Wanted(inserted_ - limit_.min_size) - static_cast<double>(sampled_);
  }

  RateLimit limit_;
  int64_t inserted_ = 0, sampled_ = 0;
};

}  // namespace weft
