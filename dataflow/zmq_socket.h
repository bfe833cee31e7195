// The ZeroMQ socket of one process of a run: the main process listens (ROUTER), workers connect
// (DEALER). It carries frames and promises nothing; sessions, order and exactly-once are the
// business of ReliableChannel. One thread uses it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weft {

class ZmqSocket {
 public:
  // address: "ipc://PATH" in a private folder, or "tcp://127.0.0.1:PORT" ("*" for any port). Nobody
  // is authenticated by ZeroMQ, so an address that other hosts can reach is refused with
  // kInvalidArgument. Throws kIo when it is taken.
  static std::unique_ptr<ZmqSocket> Listen(const std::string& address);
  static std::unique_ptr<ZmqSocket> Connect(const std::string& address);
  ~ZmqSocket();

  // The address with the port that was chosen.
  const std::string& endpoint() const { return endpoint_; }
  // peer: as Receive told; ignored by a socket that connected. False when it cannot be sent now.
  bool Send(const std::string& peer, std::span<const uint8_t> frame);
  // False when nothing is there.
  bool Receive(std::string* peer, std::vector<uint8_t>* frame);
  // Until a frame is there, the descriptor is readable, or the time is over.
  void Wait(int descriptor, int milliseconds);

 private:
  struct Sockets;
  explicit ZmqSocket(std::unique_ptr<Sockets> sockets);

  std::unique_ptr<Sockets> sockets_;
  std::string endpoint_;
};

}  // namespace weft
