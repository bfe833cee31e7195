// One POST over HTTP, for rewards that another program gives.
#pragma once

#include <string>

namespace weft {

// The body of the answer to a JSON body. url: "http://HOST[:PORT]/PATH". Throws Error(kConfig) for
// another form, Error(kUnavailable) naming the url when there is no answer within `seconds` or its
// status is not 200.
std::string PostJson(const std::string& url, const std::string& body, double seconds);

}  // namespace weft
