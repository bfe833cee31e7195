#include "program/api_error.h"

#include "language/json.h"

namespace weft {

std::string ApiError::Body() const {
  const char* type = status_ >= 500   ? "server_error"
                     : status_ == 429 ? "rate_limit_error"
                                      : "invalid_request_error";
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? JsonValue() : JsonValue(text);
  };
  return JsonValue::MakeObject({{"error", JsonValue::MakeObject({
                                              {"message", JsonValue(message())},
                                              {"type", JsonValue(type)},
                                              {"param", text_or_null(param_)},
                                              {"code", text_or_null(api_code())},
                                          })}})
      .ToText();
}

}  // namespace weft
