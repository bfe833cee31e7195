// The sum of up to 128 numbers in the order of NumPy's np.sum, so that float32 costs equal
// Gymnasium's to the last place. (NumPy splits longer sums in half first.)
#pragma once

#include <cstdint>

namespace weft {

// value(i) gives number i.
template <class T, class Value>
T NumpySum(int64_t size, Value value) {
  int64_t i = 0;
  T sum = 0;
  if (size >= 8) {
    T part[8];
    for (; i < 8; ++i) part[i] = value(i);
    for (; i + 8 <= size; i += 8) {
      for (int64_t j = 0; j < 8; ++j) part[j] += value(i + j);
    }
    sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
  }
  for (; i < size; ++i) sum += value(i);
  return sum;
}

}  // namespace weft
