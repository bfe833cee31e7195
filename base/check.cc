#include "base/check.h"

#include <cstring>

namespace weft {

int ExitCode(ErrorCode code) {
  switch (code) {
    case ErrorCode::kConfig:
      return 78;  // EX_CONFIG
    case ErrorCode::kDiverged:
      return 65;  // EX_DATAERR
    default:
      return 70;  // EX_SOFTWARE
  }
}

namespace internal {

CheckMessage::CheckMessage(const char* file, int line, const char* condition) {
  const char* name = std::strrchr(file, '/');
  stream_ << (name ? name + 1 : file) << ":" << line << ": " << condition;
}

void Raise::operator&(const CheckMessage& message) const {
  throw Error(code, message.text());
}

}  // namespace internal
}  // namespace weft
