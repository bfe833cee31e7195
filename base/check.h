// Errors: one exception type that carries a code and the places it passed through, and the
// WEFT_CHECK macros.
#pragma once

#include <exception>
#include <sstream>
#include <string>

namespace weft {

// What went wrong, as the caller can act on it. ExitCode maps it to the program's exit status.
enum class ErrorCode {
  kInvalidArgument,  // a programmer's or a caller's mistake: shapes, ranges, unknown names
  kConfig,           // a key, value or combination in a config that the user must change: exit 78
  kDiverged,         // NaN or infinity in reward, observation, loss or gradient: exit 65
  kCorrupt,          // a file or message that does not hold what its format promises
  kIo,               // the operating system refused: missing file, full disk, permission
  kUnavailable,      // a peer, device or optional library is not there
  kInternal,         // anything else
};

class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }

  // Prepends where the error happened, outermost last to be added: "learner[0], step 12: ...".
  void AddContext(const std::string& where) { message_ = where + ": " + message_; }

 private:
  ErrorCode code_;
  std::string message_;
};

// Thrown by a blocked or later call on a channel that was closed: the way every loop ends.
class Closed : public std::exception {
 public:
  const char* what() const noexcept override { return "channel closed"; }
};

// 78 for kConfig, 65 for kDiverged, 70 for the rest (sysexits.h).
int ExitCode(ErrorCode code);

namespace internal {

// Collects the streamed message of a failed check; Raise throws it.
class CheckMessage {
 public:
  CheckMessage(const char* file, int line, const char* condition);
  template <class T>
  CheckMessage& operator<<(const T& value) {
    if (!explained_) stream_ << ": ";
    explained_ = true;
    stream_ << value;
    return *this;
  }
  std::string text() const { return stream_.str(); }

 private:
  std::ostringstream stream_;
  bool explained_ = false;
};

struct Raise {
  ErrorCode code = ErrorCode::kInvalidArgument;
  [[noreturn]] void operator&(const CheckMessage& message) const;
};

// Empty when the comparison holds, else the expression with both values.
template <class Compare, class A, class B>
std::string FailedComparison(Compare compare, const char* expression, const A& a, const B& b) {
  if (compare(a, b)) [[likely]] {
    return {};
  }
  std::ostringstream out;
  out << expression << " (" << a << " vs " << b << ")";
  return out.str();
}

}  // namespace internal

// WEFT_CHECK(rows > 0) << "rollout of " << name; throws Error(kInvalidArgument) with file:line.
#define WEFT_CHECK(condition) \
  if (condition) [[likely]] { \
  } else                      \
    ::weft::internal::Raise{} & ::weft::internal::CheckMessage(__FILE__, __LINE__, #condition)

#define WEFT_CHECK_COMPARE_(a, b, op)                                              \
  if (const std::string weft_failure = ::weft::internal::FailedComparison(         \
          [](const auto& weft_a, const auto& weft_b) { return weft_a op weft_b; }, \
          #a " " #op " " #b, a, b);                                                \
      weft_failure.empty()) [[likely]] {                                           \
  } else                                                                           \
    ::weft::internal::Raise{} &                                                    \
        ::weft::internal::CheckMessage(__FILE__, __LINE__, weft_failure.c_str())

#define WEFT_CHECK_EQ(a, b) WEFT_CHECK_COMPARE_(a, b, ==)
#define WEFT_CHECK_NE(a, b) WEFT_CHECK_COMPARE_(a, b, !=)
#define WEFT_CHECK_LT(a, b) WEFT_CHECK_COMPARE_(a, b, <)
#define WEFT_CHECK_LE(a, b) WEFT_CHECK_COMPARE_(a, b, <=)
#define WEFT_CHECK_GT(a, b) WEFT_CHECK_COMPARE_(a, b, >)
#define WEFT_CHECK_GE(a, b) WEFT_CHECK_COMPARE_(a, b, >=)

}  // namespace weft
