// What the server refuses a client, in the form of OpenAI's API.
#pragma once

#include <string>

#include "base/check.h"

namespace weft {

class ApiError final : public Error {
 public:
  // param: the member of the request that is wrong, or "". code: a word for programs, or "".
  ApiError(int status, std::string message, std::string param = "", std::string code = "")
      : Error(ErrorCode::kInvalidArgument, std::move(message)),
        status_(status),
        param_(std::move(param)),
        code_(std::move(code)) {}

  int status() const { return status_; }  // of HTTP
  const std::string& param() const { return param_; }
  const std::string& api_code() const { return code_; }
  // {"error": {"message", "type", "param", "code"}}
  std::string Body() const;

 private:
  int status_;
  std::string param_, code_;
};

}  // namespace weft
