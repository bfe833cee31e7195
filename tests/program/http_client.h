// A client of HTTP over a bare socket, which can misbehave: send parts, close early, never read.
#pragma once

#include <arpa/inet.h>
#include <chrono>
#include <cstdlib>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

namespace weft {

struct HttpAnswer {
  int status = 0;
  std::string headers, body;
};

class HttpClient {
 public:
  // receive_buffer: bytes in the kernel; 0: its default.
  explicit HttpClient(int port, int receive_buffer = 0) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) {
      setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ~HttpClient() { Close(); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  void Close() {
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
  }

  // False: the other end is closed.
  bool Send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t count = send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      text.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }

  bool Post(const std::string& path, const std::string& body, const std::string& headers = "") {
    return Send("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" +
                "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
                "\r\n" + headers + "\r\n" + body);
  }

  // What there is now, waiting for the first byte; "" at the end or after 20 s.
  std::string Receive() const {
    pollfd entry{.fd = socket_, .events = POLLIN, .revents = 0};
    if (poll(&entry, 1, 20000) <= 0) return "";
    char buffer[4096];
    const ssize_t count = recv(socket_, buffer, sizeof(buffer), 0);
    return count > 0 ? std::string(buffer, static_cast<size_t>(count)) : "";
  }

  // All until the other end closes.
  HttpAnswer ReadAnswer() const {
    std::string text;
    for (std::string part = Receive(); !part.empty(); part = Receive()) text += part;
    HttpAnswer answer;
    const size_t end = text.find("\r\n\r\n");
    if (text.size() < 12 || end == std::string::npos) return answer;
    answer.status = std::atoi(text.c_str() + 9);
    answer.headers = text.substr(0, end);
    answer.body = text.substr(end + 4);
    if (answer.headers.find("Transfer-Encoding: chunked") != std::string::npos) {
      answer.body = Unchunk(answer.body);
    }
    return answer;
  }

 private:
  static std::string Unchunk(const std::string& text) {
    std::string out;
    for (size_t i = 0; i < text.size();) {
      const size_t size = std::strtoul(text.c_str() + i, nullptr, 16);
      const size_t begin = text.find("\r\n", i) + 2;
      out += text.substr(begin, size);
      i = begin + size + 2;
      if (size == 0) return out;
    }
    ADD_FAILURE() << "the last chunk is missing";
    return out;
  }

  int socket_;
};

}  // namespace weft
