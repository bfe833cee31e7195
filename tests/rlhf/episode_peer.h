// Episodes inside a test: a counterpart, and a model whose turns end.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "dataflow/zmq_socket.h"
#include "language/json.h"
#include "tests/rlhf/tiny_words.h"

namespace weft {

// Answers the first two turns, each in words that name the turn, and finds an episode worth the
// share of vowels in all that the model said.
inline std::string EpisodeReply(const std::string& request) {
  JsonValue replies = JsonValue::MakeArray(), scores = JsonValue::MakeArray();
  const JsonValue asked = ParseJson(request, "request");
  for (const JsonValue& turns : asked.Find("turns")->Items()) {
    double vowels = 0, all = 1;
    const auto items = turns.Items();
    for (size_t i = 0; i < items.size(); i += 2) {
      for (const char c : items[i].AsString()) {
        vowels += std::string("aeiou").find(c) != std::string::npos;
        ++all;
      }
    }
    const size_t turn = (items.size() + 1) / 2;
    replies.Append(turn < 3 ? JsonValue("go on " + std::to_string(turn)) : JsonValue());
    scores.Append(JsonValue(vowels / all));
  }
  return JsonValue::MakeObject({{"replies", replies}, {"scores", scores}}).ToText();
}

// Says so over ZeroMQ.
class EpisodePeer {
 public:
  EpisodePeer() : socket_(ZmqSocket::Listen("tcp://127.0.0.1:*")), thread_([this] { Serve(); }) {}
  ~EpisodePeer() {
    done_ = true;
    thread_.join();
  }
  const std::string& address() const { return socket_->endpoint(); }

 private:
  void Serve() {
    while (!done_) {
      std::string peer;
      std::vector<uint8_t> frame;
      if (!socket_->Receive(&peer, &frame)) {
        socket_->Wait(-1, 20);
        continue;
      }
      const std::string reply = EpisodeReply({frame.begin(), frame.end()});
      socket_->Send(peer, {reinterpret_cast<const uint8_t*>(reply.data()), reply.size()});
    }
  }

  std::unique_ptr<ZmqSocket> socket_;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

// The tiny model with a quarter of all tokens as ends, so that many turns end by themselves.
inline void WriteEpisodeModel(const std::string& folder, const std::string& chat_template = "") {
  WriteTinyModel(folder, chat_template);
  const std::string path = folder + "/config.json";
  JsonValue config = ReadJsonFile(path), ends = JsonValue::MakeArray({JsonValue(257)});
  for (int id = 192; id < 256; ++id) ends.Append(JsonValue(id));
  config.Set("eos_token_id", std::move(ends));
  WriteFileAtomic(path, config.ToText());
}

}  // namespace weft
