#include "rlhf/http_client.h"

#include <httplib.h>

#include "base/check.h"

namespace weft {

std::string PostJson(const std::string& url, const std::string& body, double seconds) {
  constexpr std::string_view kScheme = "http://";
  const size_t slash = url.find('/', kScheme.size());
  if (!url.starts_with(kScheme) || slash == std::string::npos || slash == kScheme.size()) {
    throw Error(ErrorCode::kConfig, "url: " + url + " is not of the form http://HOST:PORT/PATH");
  }
  httplib::Client client(url.substr(0, slash));
  const auto microseconds = static_cast<time_t>(seconds * 1e6);
  client.set_connection_timeout(microseconds / 1'000'000, microseconds % 1'000'000);
  client.set_read_timeout(microseconds / 1'000'000, microseconds % 1'000'000);
  const auto answer = client.Post(url.substr(slash), body, "application/json");
  if (!answer) {
    throw Error(
        ErrorCode::kUnavailable,
        url + ": no answer (" + httplib::to_string(answer.error()) + "); is the service there?");
  }
  if (answer->status != 200) {
    throw Error(ErrorCode::kUnavailable, url + ": status " + std::to_string(answer->status) + ", " +
                                             answer->body.substr(0, 200));
  }
  return answer->body;
}

}  // namespace weft
