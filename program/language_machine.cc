#include "program/language_machine.h"

#include <thread>

#include "base/check.h"

namespace weft {

LanguageMachine::LanguageMachine(int threads)
    : pool(threads > 0 ? threads : static_cast<int>(std::thread::hardware_concurrency())),
      context{.pool = &pool} {}

LoadOptions LoadOptionsOf(const std::string& precision, const std::string& adapter) {
  if (precision == "f32") return {.precision = Precision::kFloat32, .adapter = adapter};
  if (precision == "bf16") {
    return {.precision = Precision::kBFloat16, .keep_quantised = false, .adapter = adapter};
  }
  if (precision == "auto") return {.adapter = adapter};
  if (precision == "int8") return {.round_rows = true, .adapter = adapter};
  throw Error(ErrorCode::kConfig, "--precision " + precision + ": choose auto, bf16, f32 or int8");
}

}  // namespace weft
