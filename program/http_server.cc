#include "program/http_server.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <httplib.h>
#include <mutex>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <set>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kIdle{10000};       // between two requests of a connection
constexpr milliseconds kReceive{30000};    // a whole request
constexpr milliseconds kSend{10000};       // a piece of an answer
constexpr milliseconds kLinger{2000};      // until a client reads why its body was refused
constexpr size_t kHeaderBytes = 64 << 10;  // of a request, all headers
constexpr size_t kSendBuffer = 64 << 10;   // in the kernel: a client that does not read is noticed
constexpr int kRequestsPerConnection = 1000;
constexpr int kBacklog = 128;

// What poll says of a socket in this time; 0: nothing.
int Poll(int socket, int events, milliseconds wait) {
  pollfd entry{.fd = socket, .events = static_cast<short>(events), .revents = 0};
  const auto end = Clock::now() + wait;
  for (;;) {
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    const int count = poll(&entry, 1, static_cast<int>(std::max<int64_t>(0, left.count())));
    if (count >= 0) return count == 0 ? 0 : entry.revents;
    if (errno != EINTR) return POLLERR;
  }
}

// A connection as httplib reads and writes it, with limits on bytes and time.
class Connection final : public httplib::Stream {
 public:
  explicit Connection(int socket) : socket_(socket) {
    const int on = 1, size = kSendBuffer;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
  }

  // Whether a request begins in time. give_up is asked now and then.
  template <class F>
  bool AwaitRequest(F&& give_up) {
    allowance_ = kHeaderBytes;
    for (const auto end = Clock::now() + kIdle; begin_ == end_;) {
      if (Poll(socket_, POLLIN, milliseconds(100)) != 0) break;
      if (Clock::now() > end || give_up()) return false;
    }
    deadline_ = Clock::now() + kReceive;
    return true;
  }
  // Bytes of the body that may follow.
  void Allow(size_t bytes) { allowance_ = bytes; }
  bool gone() const { return (Poll(socket_, POLLRDHUP, milliseconds(0)) & kGone) != 0; }

  // After an answer to a request that was not read: the answer is lost when the socket is closed
  // while bytes come in.
  void Linger() {
    shutdown(socket_, SHUT_WR);
    deadline_ = Clock::now() + kLinger;
    do begin_ = end_;
    while (Fill());
  }

  bool is_readable() const override { return begin_ < end_ || !broken_; }
  bool is_writable() const override { return !broken_; }
  ssize_t read(char* out, size_t size) override {
    if (begin_ == end_ && !Fill()) return 0;
    size = std::min({size, end_ - begin_, allowance_});
    if (size == 0) return -1;
    std::memcpy(out, buffer_ + begin_, size);
    begin_ += size;
    allowance_ -= size;
    return static_cast<ssize_t>(size);
  }
  ssize_t write(const char* data, size_t size) override {
    const auto end = Clock::now() + kSend;
    for (size_t sent = 0; sent < size && !broken_;) {
      const ssize_t count = send(socket_, data + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count >= 0) {
        sent += static_cast<size_t>(count);
      } else if (errno == EAGAIN) {
        const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
        broken_ = left.count() <= 0 || (Poll(socket_, POLLOUT, left) & POLLOUT) == 0;
      } else {
        broken_ = errno != EINTR;
      }
    }
    return broken_ ? -1 : static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

  bool unread = false;  // a part of the request was left where it is

 private:
  static constexpr int kGone = POLLRDHUP | POLLHUP | POLLERR;

  bool Fill() {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now());
    if (left.count() <= 0 || Poll(socket_, POLLIN, left) == 0) return false;
    const ssize_t count = recv(socket_, buffer_, sizeof(buffer_), MSG_DONTWAIT);
    if (count <= 0) return false;
    begin_ = 0;
    end_ = static_cast<size_t>(count);
    return true;
  }

  int socket_;
  Clock::time_point deadline_;
  size_t allowance_ = 0;
  bool broken_ = false;
  size_t begin_ = 0, end_ = 0;
  char buffer_[16 << 10];
};

// Of the thread: the connection it serves, and whether it only turns connections away.
thread_local Connection* current = nullptr;
thread_local bool turn_away = false;

// The library's threads, with as many connections as there are threads.
class Connections final : public httplib::TaskQueue {
 public:
  Connections(int limit, std::atomic<int>& open)
      : limit_(limit), open_(open), pool_(static_cast<size_t>(limit)) {}
  void enqueue(std::function<void()> serve) override {
    if (open_.fetch_add(1) >= limit_) {
      turn_away = true;
      serve();
      turn_away = false;
      --open_;
      return;
    }
    pool_.enqueue([this, serve = std::move(serve)] {
      serve();
      --open_;
    });
  }
  void shutdown() override { pool_.shutdown(); }

 private:
  int limit_;
  std::atomic<int>& open_;
  httplib::ThreadPool pool_;
};

}  // namespace

class HttpServer::Implementation final : public httplib::Server {
 public:
  Implementation(const HttpServer::Options& options, HttpServer::Handlers handlers)
      : options_(options), handlers_(std::move(handlers)) {
    new_task_queue = [this] { return new Connections(options_.max_connections, open_); };
    // Not SO_REUSEPORT, which would let two servers share a port.
    set_socket_options([](socket_t socket) {
      const int on = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    });
    AddRoutes();
    Bind();
    listener_ = std::thread([this] { Listen(); });
  }

  ~Implementation() override {
    stopping_ = true;
    while (!is_running() && !ended_) std::this_thread::sleep_for(milliseconds(1));
    {
      const std::lock_guard lock(mutex_);
      for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
    }
    stop();
    listener_.join();
  }

  int port() const { return port_; }

  bool Drain(milliseconds wait) const {
    for (const auto end = Clock::now() + wait; busy_ > 0;) {
      if (Clock::now() > end) return false;
      std::this_thread::sleep_for(milliseconds(2));
    }
    return true;
  }

 private:
  void Bind() {
    const std::string place = options_.host + ":" + std::to_string(options_.port);
    if (options_.port == 0) {
      port_ = bind_to_any_port(options_.host);
    } else {
      port_ = bind_to_port(options_.host, options_.port) ? options_.port : -1;
    }
    if (port_ < 0) {
      throw Error(ErrorCode::kIo, "cannot listen on " + place + ": " +
                                      (errno != 0 ? std::strerror(errno) : "no such address") +
                                      "; choose another --port or --host");
    }
    ::listen(svr_sock_, kBacklog);  // the library's own backlog is 5
  }

  void Listen() {
    if (!listen_after_bind() && !stopping_) LogError("the server cannot accept connections");
    ended_ = true;
  }

  bool process_and_close_socket(socket_t socket) override {
    if (turn_away) {
      TurnAway(socket);
    } else if (Keep(socket)) {
      Serve(socket);
    }
    {
      const std::lock_guard lock(mutex_);
      sockets_.erase(socket);
    }
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return true;
  }

  bool Keep(int socket) {
    const std::lock_guard lock(mutex_);
    sockets_.insert(socket);
    return !stopping_;
  }

  void Serve(int socket) {
    Connection connection(socket);
    current = &connection;
    const auto full = [this] { return open_ >= options_.max_connections; };
    for (int left = kRequestsPerConnection; left > 0 && connection.AwaitRequest(full); --left) {
      bool closed = false;
      // Ranges are for files.
      const auto prepare = [](httplib::Request& request) { request.ranges.clear(); };
      ++busy_;
      const bool answered = process_request(connection, left == 1 || stopping_, closed, prepare);
      --busy_;
      if (!answered || closed || connection.unread) break;
    }
    if (connection.unread) connection.Linger();
    current = nullptr;
  }

  void TurnAway(int socket) const {
    const std::string body = handlers_.error_body(429, "too many connections: retry later");
    const std::string text =
        "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\n"
        "Connection: close\r\nContent-Type: application/json\r\n"
        "Content-Length: " +
        std::to_string(body.size()) + "\r\n\r\n" + body;
    send(socket, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    ::shutdown(socket, SHUT_WR);
  }

  void AddRoutes() {
    const auto take = [this](const httplib::Request& request, httplib::Response& response) {
      const HttpRequest ours = Translate(request);
      std::optional<HttpResponse> refused = handlers_.admit(ours);
      if (!refused && request.method == "POST" && Length(request) > options_.max_body) {
        refused = TooLarge();
      }
      if (!refused) return false;
      if (request.method != "GET" && request.method != "HEAD") Close(response);
      Answer(std::move(*refused), response);
      return true;
    };
    set_pre_routing_handler([take](const auto& request, auto& response) {
      return take(request, response) ? HandlerResponse::Handled : HandlerResponse::Unhandled;
    });
    set_expect_100_continue_handler([take](const auto& request, auto& response) {
      return take(request, response) ? response.status : 100;
    });
    Post("/.*",
         [this](const httplib::Request& request, httplib::Response& response,
                const httplib::ContentReader& reader) { Handle(request, response, reader); });
    set_error_handler([this](const httplib::Request&, httplib::Response& response) {
      if (!response.body.empty()) return;
      Close(response);
      response.set_content(handlers_.error_body(response.status, "malformed HTTP request"),
                           "application/json");
    });
  }

  void Handle(const httplib::Request& request, httplib::Response& response,
              const httplib::ContentReader& reader) {
    HttpRequest ours = Translate(request);
    current->Allow(kHeaderBytes + 8 * options_.max_body);  // chunks have frames
    bool large = false;
    const bool read = reader([&](const char* data, size_t size) {
      large = ours.body.size() + size > options_.max_body;
      if (!large) ours.body.append(data, size);
      return !large;
    });
    if (!read) Close(response);
    if (large) return Answer(TooLarge(), response);
    if (!read) {
      response.status = 400;
      return;
    }
    Answer(handlers_.handle(ours), response);
  }

  static HttpRequest Translate(const httplib::Request& request) {
    return {.method = request.method,
            .path = request.path,
            .authorization = request.get_header_value("Authorization"),
            .content_type = request.get_header_value("Content-Type"),
            .body = "",
            .client_gone = [connection = current] { return connection->gone(); }};
  }

  static uint64_t Length(const httplib::Request& request) {
    return request.get_header_value<uint64_t>("Content-Length");
  }

  HttpResponse TooLarge() const {
    const std::string message = "the body has more than " + std::to_string(options_.max_body) +
                                " bytes, the limit of this server (--max-body)";
    return {.status = 413, .body = handlers_.error_body(413, message)};
  }

  // The rest of the request is not read.
  static void Close(httplib::Response& response) {
    current->unread = true;
    response.set_header("Connection", "close");
  }

  static void Answer(HttpResponse ours, httplib::Response& response) {
    response.status = ours.status;
    for (const auto& [name, value] : ours.headers) response.set_header(name, value);
    if (!ours.next_piece) return response.set_content(ours.body, ours.content_type);
    response.set_chunked_content_provider(
        ours.content_type, [next = std::move(ours.next_piece)](size_t, httplib::DataSink& sink) {
          try {
            const std::optional<std::string> piece = next();
            if (piece) return sink.write(piece->data(), piece->size());
            sink.done();
            return true;
          } catch (const std::exception& error) {  // the library would end the program
            LogError(std::string("an answer broke off: ") + error.what());
            return false;
          }
        });
  }

  const HttpServer::Options options_;
  const HttpServer::Handlers handlers_;
  int port_ = -1;
  std::atomic<bool> stopping_{false}, ended_{false};
  std::atomic<int> open_{0}, busy_{0};  // connections; those with a request in progress
  std::mutex mutex_;
  std::set<int> sockets_;
  std::thread listener_;
};

HttpServer::HttpServer(const Options& options, Handlers handlers)
    : implementation_(std::make_unique<Implementation>(options, std::move(handlers))) {}
HttpServer::~HttpServer() = default;
bool HttpServer::Drain(milliseconds wait) {
  return implementation_->Drain(wait);
}
int HttpServer::port() const {
  return implementation_->port();
}

}  // namespace weft
