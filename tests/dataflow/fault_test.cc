// Faults from outside: killed processes, connections that break, strangers on the port, work that
// hangs.
#include <arpa/inet.h>
#include <atomic>
#include <chrono>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <set>
#include <signal.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "dataflow/process.h"
#include "dataflow/reliable_channel.h"
#include "dataflow/zmq_socket.h"
#include "tests/dataflow/scenario.h"

namespace weft::testing {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

// The process that a replica 0 is in.
int ProcessOf(const Scenario& scenario, const std::string& name) {
  const FragmentGraph graph = scenario.Graph();
  for (const auto& runner : scenario.Place(graph).runners) {
    for (const auto& [node, replica] : runner.members) {
      if (graph.nodes()[node].name == name && replica == 0) return runner.process;
    }
  }
  return -1;
}

// Runs with replica 0 of a node killing its process at a step: the run goes on to its end.
void ExpectSurvives(Scenario scenario, const std::string& node) {
  scenario.loop_options.crash_node = node == "world" ? 0 : node == "agent" ? 1 : 2;
  std::vector<std::string> reasons;
  RuntimeOptions options = scenario.Options();
  options.on_perturbed = [&](int process, const std::string& reason) {
    EXPECT_EQ(process, ProcessOf(scenario, node));
    reasons.push_back(reason);
  };
  const RunResult result = RunScenario(scenario, options);
  EXPECT_TRUE(result.perturbed);
  EXPECT_EQ(reasons, std::vector<std::string>{"killed by signal 9"});
  EXPECT_EQ(result.stop_reason, "updates done");
  const auto counts = result.cut.at("centre.0").At("counts").data<int64_t>();
  EXPECT_EQ(counts[0], scenario.loop_options.steps);
  // Every update had whole rows: each writer's next message was waited for, and nothing was counted
  // twice.
  const LoopOptions& loop = scenario.loop_options;
  EXPECT_EQ(counts[1], int64_t{loop.steps} * loop.horizon * kRows);
  // The end is whole: it can be resumed.
  Scenario longer = scenario;
  longer.loop_options.crash_at = 0;
  longer.loop_options.steps += 3;
  const RunResult more = RunScenario(longer, longer.Options(), &result.cut);
  EXPECT_EQ(more.cut.at("centre.0").At("counts").data<int64_t>()[0], loop.steps + 3);
}

TEST(Fault, AKilledWorkerIsStartedAgainAndTheRunGoesOn) {
  for (const int crash_at : {1, 7, 20}) {
    ExpectSurvives(
        {.loop_options = {.workers = 4, .steps = 12, .crash_at = crash_at}, .processes = 3},
        "world");
  }
}

TEST(Fault, AnyKilledReplicaIsStartedAgainWhereverItsNeighboursAre) {
  int tried = 0;
  for (uint64_t code = 1; code < 40 && tried < 4; ++code) {
    for (const char* node : {"world", "agent"}) {
      const Scenario scenario{.loop_options = {.workers = 2, .steps = 10, .crash_at = 9},
                              .runners = 5,
                              .processes = 4,
                              .code = code};
      const int process = ProcessOf(scenario, node);
      if (process == 0 || process == ProcessOf(scenario, "centre")) continue;
      SCOPED_TRACE(std::string(node) + ", placement " + std::to_string(code));
      ExpectSurvives(scenario, node);
      ++tried;
    }
  }
  EXPECT_GE(tried, 4);
}

TEST(Fault, WithALagAKilledWorkerDoesNotHoldTheOthersUp) {
  ExpectSurvives(
      {.loop_options = {.workers = 4, .steps = 12, .max_lag = 2, .crash_at = 11}, .processes = 3},
      "world");
}

TEST(Fault, ReplicasInTheMainProcessMaySumWhileAWorkerIsStartedAgain) {
  ExpectSurvives(
      {.loop_options = {.workers = 4, .centres = 2, .steps = 12, .crash_at = 13}, .processes = 3},
      "world");
}

TEST(Fault, CheckpointsGoOnWhileWorkersAreKilled) {
  Scenario scenario{
      .loop_options = {.workers = 4, .steps = 30, .checkpoint_every = 1, .crash_at = 17},
      .processes = 3};
  int cuts = 0;
  RuntimeOptions options = scenario.Options();
  options.on_checkpoint = [&cuts](const Cut& cut) {
    ++cuts;
    EXPECT_TRUE(cut.contains("world.0"));
    EXPECT_TRUE(cut.contains("agent.3"));
  };
  const RunResult result = RunScenario(scenario, options);
  EXPECT_TRUE(result.perturbed);
  EXPECT_EQ(cuts, 30);
}

TEST(Fault, AWorkerWithAReplicaOfASumEndsTheRunWhenItDies) {
  for (uint64_t code = 1; code < 40; ++code) {
    Scenario scenario{
        .loop_options = {.workers = 2, .centres = 2, .steps = 10, .crash_at = 4, .crash_node = 2},
        .runners = 4,
        .processes = 4,
        .code = code};
    if (ProcessOf(scenario, "centre") == 0) continue;
    try {
      RunScenario(scenario, scenario.Options());
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
      EXPECT_THAT(error.message(),
                  HasSubstr("killed by signal 9) with a replica of centre, whose sums need all"));
    }
    return;
  }
}

// Threads of a process, and the processes they started.
std::set<int> ChildrenOf(int pid) {
  std::set<int> children;
  std::ifstream file("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
  for (int child; file >> child;) children.insert(child);
  return children;
}

bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 300; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(Fault, NoWorkerSurvivesAKilledMainProcess) {
  const Scenario scenario{.loop_options = {.workers = 4, .steps = 1 << 30}, .processes = 3};
  const int main = StartProcess({WEFT_TEST_WORKER, "run", scenario.ToText()});
  ASSERT_TRUE(Eventually([main] { return ChildrenOf(main).size() == 2; }));
  std::this_thread::sleep_for(
      std::chrono::milliseconds(100));  // some are at work, some may just be starting
  const std::set<int> workers = ChildrenOf(main);
  KillProcess(main);
  for (const int worker : workers) {
    EXPECT_TRUE(Eventually([worker] { return kill(worker, 0) != 0; }))
        << "worker " << worker << " lives on";
  }
  EXPECT_TRUE(Eventually([main] { return EndOfProcess(main).has_value(); }));
}

// A TCP socket on the loopback, for strangers and proxies.
class Tcp {
 public:
  explicit Tcp(int handle = -1)
      : handle_(handle >= 0 ? handle : socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~Tcp() { close(handle_); }
  Tcp(const Tcp&) = delete;
  Tcp& operator=(const Tcp&) = delete;

  static sockaddr_in Address(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  bool Connect(int port) {
    const sockaddr_in address = Address(port);
    return connect(handle_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  int Listen() {
    sockaddr_in address = Address(0);
    socklen_t size = sizeof(address);
    if (bind(handle_, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
        listen(handle_, 8) != 0)
      return -1;
    getsockname(handle_, reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.sin_port);
  }
  int handle() const { return handle_; }

 private:
  const int handle_;
};

int FreePort() {
  return Tcp().Listen();
}

TEST(Fault, StrangersOnThePortChangeNothing) {
  const Scenario scenario{.loop_options = {.workers = 4, .steps = 60, .pause_microseconds = 300},
                          .processes = 3};
  const FragmentGraph graph = scenario.Graph();
  const uint64_t serial = Hash(weft::Run(graph, Policy("serial", graph, 1), {}).cut.at("centre.0"));
  const int port = FreePort();
  RuntimeOptions options = scenario.Options();
  options.listen = "tcp://127.0.0.1:" + std::to_string(port);
  std::atomic<bool> over{false};
  std::thread stranger([&] {
    Rng rng(11, Purpose::kTest);
    const auto socket = ZmqSocket::Connect(options.listen);
    while (!over) {
      // Bytes that are no ZeroMQ at all, half a handshake, a greeting with an endless frame behind
      // it.
      Tcp raw;
      if (raw.Connect(port)) {
        std::vector<uint8_t> junk(1 + rng.Below(2000));
        for (uint8_t& byte : junk) byte = static_cast<uint8_t>(rng.Below(256));
        if (rng.Below(2) == 0)
          junk = {0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0, 'N', 'U', 'L', 'L'};
        (void)!send(raw.handle(), junk.data(), junk.size(), MSG_NOSIGNAL);
      }
      // Frames of every kind under a wrong session, damaged ones, sizes that lie.
      std::vector<uint8_t> frame(kFrameHeaderBytes + rng.Below(200));
      SealFrame({.kind = static_cast<FrameKind>(1 + rng.Below(3)),
                 .last = true,
                 .session = rng.NextU64(),
                 .sequence = 1,
                 .ack = rng.Below(100)},
                frame);
      if (rng.Below(3) == 0) frame[rng.Below(frame.size())] ^= 1;
      if (rng.Below(3) == 0) frame.resize(rng.Below(frame.size()));
      socket->Send("", frame);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  const RunResult result = RunScenario(scenario, options);
  over = true;
  stranger.join();
  EXPECT_EQ(Hash(result.cut.at("centre.0")), serial);
  EXPECT_FALSE(result.perturbed);
}

TEST(Fault, AnAddressThatOtherHostsCanReachIsRefused) {
  for (const char* address :
       {"tcp://0.0.0.0:5555", "tcp://*:5555", "tcp://eth0:5555", "udp://127.0.0.1:1"}) {
    EXPECT_THROW(ZmqSocket::Listen(address), Error) << address;
  }
}

// Passes bytes between a client and a server port and breaks every connection after some bytes.
class BreakingProxy {
 public:
  explicit BreakingProxy(int server)
      : server_(server), port_(listener_.Listen()), thread_([this] { Serve(); }) {}
  ~BreakingProxy() {
    over_ = true;
    thread_.join();
  }
  int port() const { return port_; }
  int broken() const { return broken_; }

 private:
  void Serve() {
    while (!over_) {
      pollfd waiting{.fd = listener_.handle(), .events = POLLIN, .revents = 0};
      if (poll(&waiting, 1, 20) <= 0) continue;
      Tcp client(accept4(listener_.handle(), nullptr, nullptr, SOCK_CLOEXEC));
      Tcp server;
      if (!server.Connect(server_)) continue;
      std::vector<char> bytes(4096);
      ssize_t left = 30000;
      while (left > 0 && !over_) {
        pollfd both[2] = {{.fd = client.handle(), .events = POLLIN, .revents = 0},
                          {.fd = server.handle(), .events = POLLIN, .revents = 0}};
        poll(both, 2, 5);
        for (int i = 0; i < 2; ++i) {
          if ((both[i].revents & (POLLIN | POLLHUP)) == 0) continue;
          const ssize_t size = recv(both[i].fd, bytes.data(), bytes.size(), 0);
          const bool passed = size > 0 && send(both[1 - i].fd, bytes.data(),
                                               static_cast<size_t>(size), MSG_NOSIGNAL) == size;
          left = passed ? left - size : 0;
        }
      }
      ++broken_;
    }
  }

  const int server_;
  Tcp listener_;
  const int port_;
  std::atomic<bool> over_{false};
  std::atomic<int> broken_{0};
  std::thread thread_;
};

TEST(Fault, MessagesArriveOnceAcrossBrokenConnections) {
  const auto server = ZmqSocket::Listen("tcp://127.0.0.1:*");
  BreakingProxy proxy(std::stoi(server->endpoint().substr(server->endpoint().rfind(':') + 1)));
  const auto client = ZmqSocket::Connect("tcp://127.0.0.1:" + std::to_string(proxy.port()));
  std::string peer;
  ReliableChannel at_client(
      5, [&](std::span<const uint8_t> frame) { return client->Send("", frame); });
  ReliableChannel at_server(5, [&](std::span<const uint8_t> frame) {
    return !peer.empty() && server->Send(peer, frame);
  });
  uint64_t rounds = 0, sent = 0, next_at_server = 0, next_at_client = 0;
  constexpr uint64_t kMessages = 1500;
  const auto receive = [](ZmqSocket& socket, std::string* from, ReliableChannel& channel,
                          uint64_t* next) {
    std::string who;
    std::vector<uint8_t> frame, message;
    while (socket.Receive(&who, &frame)) {
      const auto header = OpenFrame(frame);
      if (!header) continue;
      if (from != nullptr) *from = who;
      channel.OnFrame(*header, frame);
      while (channel.Receive(&message)) {
        Reader in(message);
        in.Read<uint8_t>();
        ASSERT_EQ(in.Read<uint64_t>(), (*next)++);
      }
    }
  };
  const auto end = Clock::now() + std::chrono::seconds(30);
  while ((next_at_server < kMessages || next_at_client < kMessages) && Clock::now() < end) {
    for (int i = 0; i < 5 && sent < kMessages; ++i, ++sent) {
      for (ReliableChannel* channel : {&at_client, &at_server}) {
        Writer out = BeginMessage(MessageType::kEdge);
        out.Write(sent);
        channel->Send(out.Take());
      }
    }
    // As workers do, so that the server learns where the client went.
    if (++rounds % 32 == 0) at_client.Heartbeat({});
    at_client.Tick(Clock::now());
    at_server.Tick(Clock::now());
    receive(*server, &peer, at_server, &next_at_server);
    receive(*client, nullptr, at_client, &next_at_client);
    client->Wait(-1, 1);
  }
  EXPECT_EQ(next_at_server, kMessages);
  EXPECT_EQ(next_at_client, kMessages);
  EXPECT_GT(proxy.broken(), 3);
}

TEST(Fault, AStallIsReportedOnceNamingWhoWaitsForWhom) {
  for (const bool processes : {false, true}) {
    const Scenario scenario{
        .loop_options = {.workers = 2, .steps = 1, .horizon = 1, .pause_microseconds = 250000},
        .processes = 2};
    const FragmentGraph graph = scenario.Graph();
    RuntimeOptions options = scenario.Options();
    options.stall_seconds = 0.05;
    ::testing::internal::CaptureStderr();
    weft::Run(graph, processes ? scenario.Place(graph) : Scatter(graph, 5, 1, 3), options);
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(log, HasSubstr("who waits for whom:"));
    EXPECT_THAT(log, HasSubstr("is inside its step: rests"));
    EXPECT_THAT(
        log,
        HasSubstr(
            "centre[0], after step 0: waits for centre.batch from agent[0], agent[1] (0 unread)"));
  }
}

TEST(Fault, AStallOfASerialRunIsReportedOnceToo) {
  const FragmentGraph graph =
      Loop({.workers = 1, .steps = 1, .horizon = 1, .pause_microseconds = 250000});
  RuntimeOptions options;
  options.stall_seconds = 0.05;
  ::testing::internal::CaptureStderr();
  weft::Run(graph, Policy("serial", graph, 1, 1), options);
  const std::string log = ::testing::internal::GetCapturedStderr();
  const std::string says = "agent[0], after step 1: is inside its step: rests";
  EXPECT_THAT(log, HasSubstr(says));
  EXPECT_EQ(log.find(says), log.rfind(says)) << log;
}

}  // namespace
}  // namespace weft::testing
