#include "dataflow/zmq_socket.h"

#include <array>
#include <chrono>
#include <utility>
#include <zmq.hpp>

#include "base/check.h"
#include "dataflow/wire.h"

namespace weft {
namespace {

// Limits on what a stranger can make this process hold: one frame in size, two seconds for a
// handshake.
constexpr int64_t kMaxFrameBytes = static_cast<int64_t>(kFrameHeaderBytes + kMaxPayloadBytes);
constexpr int kHandshakeMilliseconds = 2000;

}  // namespace

struct ZmqSocket::Sockets {
  explicit Sockets(zmq::socket_type type)
      : routes(type == zmq::socket_type::router), socket(context, type) {
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::maxmsgsize, kMaxFrameBytes);
    socket.set(zmq::sockopt::handshake_ivl, kHandshakeMilliseconds);
    socket.set(zmq::sockopt::ipv6, 0);
    if (routes) {
      socket.set(zmq::sockopt::router_mandatory, 1);
      // With a domain set, peers of ZMTP 1 and 2 are refused. Their handshake may abort the
      // process: libzmq 4.3.4 asserts that it can store the peer's identity, which fails while the
      // socket closes.
      socket.set(zmq::sockopt::zap_domain, "weft");
    } else {
      socket.set(zmq::sockopt::immediate, 1);
      socket.set(zmq::sockopt::reconnect_ivl, 20);
      socket.set(zmq::sockopt::reconnect_ivl_max, 500);
    }
  }

  const bool routes;
  zmq::context_t context{1};
  zmq::socket_t socket;
};

ZmqSocket::ZmqSocket(std::unique_ptr<Sockets> sockets) : sockets_(std::move(sockets)) {}
ZmqSocket::~ZmqSocket() = default;

std::unique_ptr<ZmqSocket> ZmqSocket::Listen(const std::string& address) {
  if (!address.starts_with("ipc://") && !address.starts_with("tcp://127.0.0.1:")) {
    throw Error(ErrorCode::kInvalidArgument,
                "cannot listen on " + address +
                    ": peers are not authenticated, so only ipc:// in a private folder " +
                    "and tcp://127.0.0.1: are allowed");
  }
  auto sockets = std::make_unique<Sockets>(zmq::socket_type::router);
  try {
    sockets->socket.bind(address);
  } catch (const zmq::error_t& error) {
    throw Error(ErrorCode::kIo, "cannot listen on " + address + ": " + error.what());
  }
  auto made = std::unique_ptr<ZmqSocket>(new ZmqSocket(std::move(sockets)));
  made->endpoint_ = made->sockets_->socket.get(zmq::sockopt::last_endpoint);
  return made;
}

std::unique_ptr<ZmqSocket> ZmqSocket::Connect(const std::string& address) {
  auto sockets = std::make_unique<Sockets>(zmq::socket_type::dealer);
  try {
    sockets->socket.connect(address);
  } catch (const zmq::error_t& error) {
    throw Error(ErrorCode::kIo, "cannot connect to " + address + ": " + error.what());
  }
  auto made = std::unique_ptr<ZmqSocket>(new ZmqSocket(std::move(sockets)));
  made->endpoint_ = address;
  return made;
}

bool ZmqSocket::Send(const std::string& peer, std::span<const uint8_t> frame) {
  try {
    if (sockets_->routes) {
      if (!sockets_->socket.send(zmq::buffer(peer),
                                 zmq::send_flags::sndmore | zmq::send_flags::dontwait))
        return false;
    }
    return sockets_->socket.send(zmq::buffer(frame.data(), frame.size()), zmq::send_flags::dontwait)
        .has_value();
  } catch (const zmq::error_t& error) {
    if (error.num() == EHOSTUNREACH || error.num() == EINTR)
      return false;  // the peer is gone for now
    throw Error(ErrorCode::kIo, std::string("sending to another process: ") + error.what());
  }
}

bool ZmqSocket::Receive(std::string* peer, std::vector<uint8_t>* frame) {
  try {
    zmq::message_t part;
    if (sockets_->routes) {
      if (!sockets_->socket.recv(part, zmq::recv_flags::dontwait)) return false;
      peer->assign(part.to_string());
      if (!part.more()) {
        frame->clear();
        return true;
      }
    }
    if (!sockets_->socket.recv(part, zmq::recv_flags::dontwait)) return false;
    frame->assign(part.data<uint8_t>(), part.data<uint8_t>() + part.size());
    // A frame is one part; whatever a stranger adds is dropped with the frame.
    while (part.more()) {
      frame->clear();
      if (!sockets_->socket.recv(part, zmq::recv_flags::dontwait)) break;
    }
    return true;
  } catch (const zmq::error_t& error) {
    if (error.num() == EINTR) return false;
    throw Error(ErrorCode::kIo, std::string("receiving from another process: ") + error.what());
  }
}

void ZmqSocket::Wait(int descriptor, int milliseconds) {
  std::array<zmq::pollitem_t, 2> items = {
      {{sockets_->socket.handle(), 0, ZMQ_POLLIN, 0}, {nullptr, descriptor, ZMQ_POLLIN, 0}}};
  try {
    zmq::poll(items.data(), items.size(), std::chrono::milliseconds(milliseconds));
  } catch (const zmq::error_t& error) {
    if (error.num() != EINTR)
      throw Error(ErrorCode::kIo, std::string("waiting for other processes: ") + error.what());
  }
}

}  // namespace weft
