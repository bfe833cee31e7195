// HTTP/1.1 by cpp-httplib, hardened where a service needs it: connections, headers, bodies and the
// time that a client may take are bounded, and a client that went away is noticed while it waits.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft {

struct HttpRequest {
  std::string method, path;
  std::string authorization, content_type;  // headers, "" when missing
  std::string body;                         // of a POST that was admitted
  // Whether the client has closed its end. Only while the request is handled.
  std::function<bool()> client_gone;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
  // Instead of body: called for one piece after the other, sent as they come, until there is none.
  // What it holds is freed when the client has it all or is gone.
  std::function<std::optional<std::string>()> next_piece = {};
};

class HttpServer {
 public:
  struct Options {
    std::string host = "127.0.0.1";
    int port = 0;                       // 0: any that is free
    size_t max_body = size_t{4} << 20;  // bytes, unpacked
    int max_connections = 96;           // at a time, each has a thread; others are told to retry
  };
  struct Handlers {
    // Before the body of a POST is read, and for every other method instead of handle: an answer,
    // or nothing to go on with handle. Both are called by many threads and must not throw.
    std::function<std::optional<HttpResponse>(const HttpRequest&)> admit;
    std::function<HttpResponse(const HttpRequest&)> handle;
    // The body of an answer that the server itself gives: malformed HTTP, a body that is too large.
    std::function<std::string(int status, const std::string& message)> error_body;
  };

  // Listens when this returns. Throws Error(kIo) naming host and port.
  HttpServer(const Options& options, Handlers handlers);
  // Closes all connections.
  ~HttpServer();

  int port() const;
  // Whether every request in progress has got its answer within this time.
  bool Drain(std::chrono::milliseconds wait);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace weft
