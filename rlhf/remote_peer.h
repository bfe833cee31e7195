// Another program that is asked in JSON, over HTTP or ZeroMQ.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/config.h"
#include "dataflow/zmq_socket.h"

namespace weft {

// How long a peer is waited for; the same keys wherever one is named.
struct Patience {
  double timeout_seconds = 60;  // for one answer
  int64_t attempts = 3;

  void Fields(FieldVisitor& v);
};

class RemotePeer {
 public:
  // address: "http://HOST[:PORT]/PATH", or of a ROUTER socket: "tcp://HOST:PORT", "ipc://PATH".
  RemotePeer(std::string address, const Patience& patience)
      : address_(std::move(address)), patience_(patience) {}

  // The answer's body. A peer that does not answer in time is asked again after 1, 2, 4 .. seconds;
  // after so many attempts throws Error(kUnavailable) naming it.
  std::string Ask(const std::string& request);
  const std::string& address() const { return address_; }

 private:
  std::string AskOnce(const std::string& request);

  const std::string address_;
  const Patience patience_;
  std::unique_ptr<ZmqSocket> socket_;
};

}  // namespace weft
