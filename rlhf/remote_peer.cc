#include "rlhf/remote_peer.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "rlhf/http_client.h"

namespace weft {

using Clock = std::chrono::steady_clock;

void Patience::Fields(FieldVisitor& v) {
  v.Field("timeout_seconds", timeout_seconds, "for one answer", Range::Positive());
  v.Field("attempts", attempts, "before the run stops", Range::Between(1, 1000));
}

std::string RemotePeer::Ask(const std::string& request) {
  for (int64_t attempt = 1;; ++attempt) {
    try {
      return address_.starts_with("http") ? PostJson(address_, request, patience_.timeout_seconds)
                                          : AskOnce(request);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable || attempt >= patience_.attempts) throw;
      LogWarn(error.message() + "; asking again");
      std::this_thread::sleep_for(
          std::chrono::seconds(int64_t{1} << std::min<int64_t>(attempt - 1, 6)));
    }
  }
}

std::string RemotePeer::AskOnce(const std::string& request) {
  if (!socket_) socket_ = ZmqSocket::Connect(address_);
  const auto* const bytes = reinterpret_cast<const uint8_t*>(request.data());
  const auto end = Clock::now() + std::chrono::duration<double>(patience_.timeout_seconds);
  bool sent = socket_->Send("", {bytes, request.size()});
  std::string peer;
  std::vector<uint8_t> frame;
  while (!sent || !socket_->Receive(&peer, &frame)) {
    const double left = std::chrono::duration<double>(end - Clock::now()).count();
    if (left <= 0) {
      socket_.reset();  // an answer that comes late must not be taken for the next one's
      throw Error(ErrorCode::kUnavailable, address_ + ": no answer within " +
                                               std::to_string(patience_.timeout_seconds) + " s");
    }
    socket_->Wait(-1, static_cast<int>(std::min(left, 0.2) * 1000) + 1);
    if (!sent) sent = socket_->Send("", {bytes, request.size()});
  }
  return {frame.begin(), frame.end()};
}

}  // namespace weft
