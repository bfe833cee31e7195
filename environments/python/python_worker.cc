#include "environments/python/python_worker.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fcntl.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "dataflow/process.h"
#include "dataflow/zmq_socket.h"
#include "environments/python/python_script.h"

namespace weft {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr uint8_t kDone = 1;  // a step is done; any other byte: why not follows as a message
constexpr double kLeastStartSeconds = 60;

// Names of dtypes in messages, those of safetensors.
DType DTypeOf(const std::string& name) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kUInt8, DType::kInt64}) {
    if (name == Name(dtype)) return dtype;
  }
  throw Error(ErrorCode::kCorrupt, "there is no dtype " + name);
}

std::vector<double> BoundsOf(const Json& values, double unbounded) {
  std::vector<double> bounds;
  for (const Json& value : values)
    bounds.push_back(value.is_null() ? unbounded : value.get<double>());
  return bounds;
}

Space ActionOf(const Json& action) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::string kind = action.at("kind");
  if (kind == "box")
    return Box{.low = BoundsOf(action.at("low"), -kInfinity),
               .high = BoundsOf(action.at("high"), kInfinity)};
  if (kind == "discrete") return Discrete{.n = action.at("n"), .start = action.at("start")};
  if (kind == "multi_discrete")
    return MultiDiscrete{.n = action.at("n"), .start = action.at("start")};
  return MultiBinary{.n = action.at("n")};
}

EnvironmentSpec SpecOf(const std::string& id, const Json& spec) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EnvironmentSpec made{.id = id,
                       .observation = {},
                       .action = ActionOf(spec.at("action")),
                       .time_limit = spec.at("time_limit"),
                       .reward_threshold = spec.at("reward_threshold")};
  for (const Json& agent : spec.at("agents")) {
    made.agents.push_back({.name = agent.at("name"),
                           .observation_size = agent.at("observation_size"),
                           .action = ActionOf(agent.at("action"))});
  }
  for (const Json& leaf : spec.at("observation")) {
    made.observation.push_back({.name = leaf.at("name"),
                                .shape = Shape(leaf.at("shape").get<std::vector<int64_t>>()),
                                .dtype = DTypeOf(leaf.at("dtype")),
                                .low = BoundsOf(leaf.at("low"), -kInfinity),
                                .high = BoundsOf(leaf.at("high"), kInfinity)});
  }
  return made;
}

// Both ends of a named pipe stay open here, so that opening it never waits.
class Fifo {
 public:
  explicit Fifo(const std::string& path) {
    if (::mkfifo(path.c_str(), 0600) == 0) descriptor_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (descriptor_ < 0) throw Error(ErrorCode::kIo, "cannot make the pipe " + path);
  }
  ~Fifo() { ::close(descriptor_); }
  Fifo(const Fifo&) = delete;
  Fifo& operator=(const Fifo&) = delete;

  void Write(uint8_t byte) {
    while (::write(descriptor_, &byte, 1) < 0 && errno == EINTR) {
    }
  }
  // Nothing when no byte came in time.
  std::optional<uint8_t> Read(int milliseconds) {
    pollfd wait{.fd = descriptor_, .events = POLLIN, .revents = 0};
    uint8_t byte = 0;
    if (::poll(&wait, 1, milliseconds) == 1 && ::read(descriptor_, &byte, 1) == 1) return byte;
    return {};
  }

 private:
  int descriptor_ = -1;
};

}  // namespace

std::string PythonInterpreter() {
  const char* chosen = std::getenv("WEFT_PYTHON");
  return chosen != nullptr && *chosen != '\0' ? chosen : "python3";
}

// A file of its own that both processes map; it goes with the folder.
class PythonWorker::Memory {
 public:
  explicit Memory(size_t bytes) : bytes_(bytes), path_(folder_.path() + "/rows") {
    const int file = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) {
      if (file >= 0) ::close(file);
      throw Error(ErrorCode::kIo, "cannot make the shared memory " + path_);
    }
    void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (address == MAP_FAILED) throw Error(ErrorCode::kIo, "cannot map " + path_);
    data_ = static_cast<std::byte*>(address);
  }
  ~Memory() { ::munmap(data_, bytes_); }

  template <class T>
  std::span<T> At(size_t offset, size_t count) {
    return {reinterpret_cast<T*>(data_ + offset), count};
  }
  const std::string& path() const { return path_; }

 private:
  PrivateFolder folder_;
  size_t bytes_;
  std::string path_;
  std::byte* data_ = nullptr;
};

class PythonWorker::Process {
 public:
  Process()
      : session_(std::to_string(RandomSession())),
        go_(folder_.path() + "/go"),
        done_(folder_.path() + "/done") {
    const std::string script = folder_.path() + "/weft_environment.py";
    WriteFileAtomic(script, kPythonScript);
    socket_ = ZmqSocket::Listen("ipc://" + folder_.path() + "/socket");
    const std::string meeting = folder_.path() + "/meeting";
    WriteFileAtomic(meeting, "weft-python 1\n" + socket_->endpoint() + "\n" + session_ + "\n");
    pid_ = StartProcess({PythonInterpreter(), script, meeting});
  }
  ~Process() {
    if (pid_ == 0) return;
    KillProcess(pid_);
    while (!EndOfProcess(pid_)) ::usleep(1000);
  }

  void Send(const std::string& request) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(request.data());
    if (!socket_->Send(session_, {bytes, request.size()})) ended_ = "it takes no message";
  }

  // Nothing when the process ended or the time is over; why() says which.
  std::optional<std::string> Receive(double seconds) {
    std::string peer;
    std::vector<uint8_t> frame;
    const auto come = [&] { return socket_->Receive(&peer, &frame) && peer == session_; };
    const bool received = Await(seconds, [&](int milliseconds) {
      if (come()) return true;
      socket_->Wait(-1, milliseconds);
      return come();
    });
    if (!received) return {};
    return std::string(frame.begin(), frame.end());
  }

  void Go() { go_.Write(kDone); }
  std::optional<uint8_t> Done(double seconds) {
    std::optional<uint8_t> byte;
    Await(seconds, [&](int milliseconds) {
      byte = done_.Read(milliseconds);
      return byte.has_value();
    });
    return byte;
  }

  const std::string& why() const { return ended_; }

 private:
  // Until come(milliseconds to wait) is true, the process has ended, or the time is over.
  template <class Come>
  bool Await(double seconds, const Come& come) {
    constexpr int kMilliseconds = 100;  // between two looks at the process
    const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
    while (ended_.empty()) {
      if (come(kMilliseconds)) return true;
      if (const auto end = EndOfProcess(pid_)) {
        ended_ = *end;
        pid_ = 0;
      } else if (Clock::now() > deadline) {
        ended_ = "no answer within " + std::to_string(std::lround(seconds)) + " s";
      }
    }
    return false;
  }

  PrivateFolder folder_;
  const std::string session_;
  Fifo go_, done_;
  std::unique_ptr<ZmqSocket> socket_;
  int pid_ = 0;
  std::string ended_;  // why nothing more will come; empty while it runs
};

PythonWorker::PythonWorker(PythonTarget target, int64_t environments)
    : target_(std::move(target)),
      environments_(environments),
      process_(std::make_unique<Process>()) {}

PythonWorker::~PythonWorker() = default;

void PythonWorker::Restart() {
  process_ = std::make_unique<Process>();
  Open();
}

EnvironmentSpec PythonWorker::Open() {
  if (!process_->Receive(std::max(kLeastStartSeconds, target_.timeout))) {
    throw Error(ErrorCode::kUnavailable,
                PythonInterpreter() + " does not serve " + target_.name + " (" + process_->why() +
                    "); it needs the packages pyzmq, numpy and gymnasium, and WEFT_PYTHON can "
                    "name another interpreter");
  }
  const Json make{{"make",
                   {{"target", target_.name},
                    {"rows", environments_},
                    {"time_limit", target_.time_limit},
                    {"preset", target_.preset},
                    {"training", target_.training},
                    {"vector", target_.vector}}}};
  const std::string answer = Ask(make.dump());
  if (!attach_.empty()) Ask(attach_);
  return SpecOf("python:" + target_.name, Json::parse(answer).at("spec"));
}

std::string PythonWorker::Ask(const std::string& request) {
  process_->Send(request);
  const auto answer = process_->Receive(std::max(kLeastStartSeconds, target_.timeout));
  if (!answer) throw Error(ErrorCode::kUnavailable, target_.name + " was lost: " + process_->why());
  const Json json = Json::parse(*answer, nullptr, false);
  if (json.is_discarded())
    throw Error(ErrorCode::kCorrupt, target_.name + " gave an answer that is no JSON");
  if (json.contains("error"))
    throw Error(ErrorCode::kConfig, target_.name + ": " + json.at("error").get<std::string>());
  return *answer;
}

void PythonWorker::Attach(const EnvironmentSpec& spec) {
  constexpr size_t kAlignment = 64;
  const int64_t rows = environments_ * spec.agent_count();
  Json fields = Json::object();
  size_t bytes = 0;
  // One element of such a shape for each of `count`; returns where it begins.
  const auto place = [&](DType dtype, std::string_view name, int64_t count, const Shape& shape,
                         Json& field) {
    field = {{"offset", bytes}, {"dtype", name}, {"shape", shape.Prepend(count).dims()}};
    const size_t begin = bytes;
    bytes += static_cast<size_t>(count * shape.elements()) * SizeOf(dtype);
    bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return begin;
  };
  const auto array = [&](const char* name, DType dtype, int64_t count, const Shape& shape = {}) {
    return place(dtype, Name(dtype), count, shape, fields[name]);
  };
  const auto numbers = [&](const char* name) {  // 64 bits without a sign
    return place(DType::kInt64, "U64", environments_, {}, fields[name]);
  };
  const size_t command = array("command", DType::kUInt8, environments_);
  const size_t seed = numbers("seed"), steps = numbers("steps");
  const size_t action = array("action", spec.action.dtype(), rows, spec.action.shape());
  const size_t reward = array("reward", DType::kFloat64, rows);
  const size_t terminated = array("terminated", DType::kUInt8, rows);
  const size_t truncated = array("truncated", DType::kUInt8, rows);
  const size_t present = array("present", DType::kUInt8, rows);
  std::vector<size_t> leaves;
  for (const Leaf& leaf : spec.observation) {
    leaves.push_back(place(leaf.dtype, Name(leaf.dtype), rows, leaf.shape,
                           fields["observation"].emplace_back()));
  }

  memory_ = std::make_unique<Memory>(bytes);
  const auto n = static_cast<size_t>(environments_), r = static_cast<size_t>(rows);
  const auto size_of_row = [](const Shape& shape, DType dtype) {
    return static_cast<size_t>(shape.elements()) * SizeOf(dtype);
  };
  shared_ = {.command = memory_->At<PythonCommand>(command, n),
             .seed = memory_->At<uint64_t>(seed, n),
             .steps = memory_->At<uint64_t>(steps, n),
             .action = memory_->At<std::byte>(
                 action, r * size_of_row(spec.action.shape(), spec.action.dtype())),
             .reward = memory_->At<double>(reward, r),
             .terminated = memory_->At<uint8_t>(terminated, r),
             .truncated = memory_->At<uint8_t>(truncated, r),
             .present = memory_->At<PythonPresence>(present, r)};
  for (size_t i = 0; i < leaves.size(); ++i) {
    const Leaf& leaf = spec.observation[i];
    shared_.leaves.push_back(
        memory_->At<std::byte>(leaves[i], r * size_of_row(leaf.shape, leaf.dtype)));
  }
  attach_ = Json{{"attach", {{"path", memory_->path()}, {"fields", fields}}}}.dump();
  Open();
}

void PythonWorker::Begin() {
  process_->Go();
}

bool PythonWorker::Finish(const std::function<std::string(int64_t)>& name, std::string* lost) {
  const auto done = process_->Done(target_.timeout);
  if (done == kDone) return true;
  const auto answer = done ? process_->Receive(target_.timeout) : std::nullopt;
  if (!answer) {
    *lost = process_->why();
    return false;
  }
  const Json json = Json::parse(*answer, nullptr, false);
  if (!json.is_object() || !json.contains("error"))
    throw Error(ErrorCode::kCorrupt, target_.name + " gave an answer that is no JSON");
  throw Error(ErrorCode::kInternal,
              name(json.at("environment")) + ": " + json.at("error").get<std::string>());
}

}  // namespace weft
