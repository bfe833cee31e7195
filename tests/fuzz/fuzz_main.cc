// libFuzzer's entry into one target, named when it is compiled (WEFT_FUZZ_TARGET).
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const weft::fuzz::Target* const target = weft::fuzz::FindTarget(WEFT_FUZZ_TARGET);
  target->read({data, size});
  return 0;
}
