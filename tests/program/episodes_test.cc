// Runs with episodes, whose counterpart is another program: one hash whether all is one process or
// the generator asks from another, over ZeroMQ or HTTP; a counterpart that fails ends the run.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "program/http_server.h"
#include "tests/program/weft_process.h"
#include "tests/rlhf/episode_peer.h"

namespace weft {
namespace {

class EpisodeRuns : public testing::Test {
 protected:
  void SetUp() override {
    WriteEpisodeModel(weft_.folder() + "/tiny");
    WritePrompts(weft_.folder() + "/prompts.jsonl");
    weft_.Write("config.yaml",
                "algorithm: grpo\nmodel: tiny\ndata: {files: prompts.jsonl}\ntotal_steps: 2\n"
                "precision: f32\nthreads: 1\nprompts: 4\ngroup: 4\nmax_new_tokens: 6\n"
                "evaluation_samples: 0\ngguf: none\nlearning_rate: 1e-2\nwarmup_steps: 0\n"
                "episodes: {turns: 3, timeout_seconds: 20, attempts: 1}\n");
  }
  std::string HashOf(const std::string& arguments) const {
    const auto output = weft_.Run("train config.yaml " + arguments + " --json");
    EXPECT_EQ(output.status, 0) << output.error;
    if (output.status != 0) return "";
    return nlohmann::json::parse(output.LastLine()).at("parameter_hash");
  }

  const WeftProcess weft_;
};

TEST_F(EpisodeRuns, HaveOneHashInBothPlacementsAndOverZeroMqAndHttp) {
  const EpisodePeer peer;
  const HttpServer http({}, {.admit = [](const HttpRequest&) { return std::nullopt; },
                             .handle =
                                 [](const HttpRequest& request) {
                                   return HttpResponse{.body = EpisodeReply(request.body)};
                                 },
                             .error_body = [](int, const std::string& text) { return text; }});
  const std::string zmq = " episodes.peer=" + peer.address();
  const std::string url =
      " episodes.peer=http://127.0.0.1:" + std::to_string(http.port()) + "/turns";
  const std::string serial = HashOf("run=serial" + zmq);
  EXPECT_EQ(HashOf("run=split placement=split_actors" + zmq), serial);
  EXPECT_EQ(HashOf("run=http" + url), serial);
  EXPECT_EQ(HashOf("run=split_http placement=split_actors" + url), serial);
  EXPECT_NE(HashOf("run=fewer episodes.turns=1" + zmq), serial) << "turns are told apart";
}

TEST_F(EpisodeRuns, EndWithTheNameOfACounterpartThatIsAway) {
  for (const std::string placement : {"serial", "split_actors"}) {
    const auto output = weft_.Run("train config.yaml run=" + placement + " placement=" + placement +
                                  " episodes.peer=http://127.0.0.1:9/turns");
    EXPECT_EQ(output.status, 70) << output.error;
    EXPECT_NE(output.error.find("episodes.peer: http://127.0.0.1:9/turns: no answer"),
              std::string::npos)
        << output.error;
  }
}

}  // namespace
}  // namespace weft
