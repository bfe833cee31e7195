#include "environments/mujoco/mujoco_compiler.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <mujoco/mjxmacro.h>
#include <mujoco/mujoco.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <type_traits>
#include <unistd.h>

#include "base/check.h"
#include "base/scalar.h"
#include "base/text.h"

namespace weft {
namespace {

// What the child writes: one of these, then the model, or a text.
constexpr char kModel = 'm', kRefusal = 'r';

// ---- in the child

void WriteAll(int pipe, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t written = write(pipe, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(1);
    bytes += written;
    size -= static_cast<size_t>(written);
  }
}

int answer_pipe = -1;

[[noreturn]] void Refuse(const std::string& reason) {
  const std::string answer = kRefusal + reason;
  WriteAll(answer_pipe, answer.data(), answer.size());
  _exit(0);
}

std::string* warnings = nullptr;

void HandleInChild(const mjLogMessage* message) {
  if (message->level == mjLOG_ERROR) Refuse(message->subject);
  if (message->level == mjLOG_WARNING) *warnings += std::string(message->subject) + "; ";
}

uint64_t AddressSpace() {
  unsigned long long pages = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%llu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

void Confine(const ModelBounds& bounds) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGINT, SIGTERM})
    std::signal(signal, SIG_DFL);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, stream);
  const auto limit = [](auto resource, uint64_t value) {
    const rlimit bound{value, value};
    setrlimit(resource, &bound);
  };
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_AS, AddressSpace() + bounds.bytes);
  limit(RLIMIT_CPU, static_cast<uint64_t>(std::ceil(bounds.seconds)) + 1);
}

template <class T>
void RefuseNan(const char* array, const T* values, mjtSize count) {
  if constexpr (std::is_floating_point_v<T>) {
    for (mjtSize i = 0; i < count; ++i) {
      if (std::isnan(values[i])) {
        Refuse("element " + std::to_string(i) + " of MuJoCo's array " + array + " is NaN");
      }
    }
  }
}

// Where an infinity has no meaning.
void RefuseInfinite(const char* array, const mjtNum* values, mjtSize count) {
  for (mjtSize i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) {
      Refuse("element " + std::to_string(i) + " of MuJoCo's array " + array + " is not finite");
    }
  }
}

void RefuseUnusable(const mjModel& model) {
  const double step = model.opt.timestep;
  if (!(step > 0 && step <= 1)) {
    Refuse("its time step is " + NumberText(step) + " s: it must be above 0 and at most 1");
  }
  RefuseInfinite("gravity", model.opt.gravity, 3);
  RefuseInfinite("wind", model.opt.wind, 3);
  RefuseInfinite("qpos0", model.qpos0, model.nq);
  RefuseInfinite("body_pos", model.body_pos, 3 * model.nbody);
  RefuseInfinite("body_mass", model.body_mass, model.nbody);
  RefuseInfinite("body_inertia", model.body_inertia, 3 * model.nbody);
  RefuseInfinite("key_qpos", model.key_qpos, model.nkey * model.nq);
  RefuseInfinite("key_qvel", model.key_qvel, model.nkey * model.nv);
  RefuseInfinite("key_act", model.key_act, model.nkey * model.na);
  RefuseInfinite("key_ctrl", model.key_ctrl, model.nkey * model.nu);
#undef MJ_M
#define X(type, name, rows, columns) RefuseNan(#name, model.name, model.rows*(columns));
#define MJ_M(size) model.size
  MJMODEL_POINTERS
#undef MJ_M
#undef X
}

// A step from the first state and from each keyframe.
void Try(const mjModel& model) {
  mjData* data = mj_makeData(&model);
  if (data == nullptr) Refuse("MuJoCo has no memory to simulate it");
  for (mjtSize key = -1; key < model.nkey; ++key) {
    if (key < 0) {
      mj_resetData(&model, data);
    } else {
      mj_resetDataKeyframe(&model, data, static_cast<int>(key));
    }
    const std::string before = *warnings;
    mj_step(&model, data);
    for (const int bad : {mjWARN_BADQPOS, mjWARN_BADQVEL, mjWARN_BADQACC, mjWARN_BADCTRL}) {
      if (data->warning[bad].number == 0) continue;
      const std::string text = warnings->substr(before.size());
      Refuse("it cannot be simulated from " +
             (key < 0 ? "its first state" : "keyframe " + std::to_string(key)) + ": " + text);
    }
  }
  mj_deleteData(data);
}

[[noreturn]] void CompileAndAnswer(const std::string& path, const ModelBounds& bounds, int pipe) {
  answer_pipe = pipe;
  warnings = new std::string;
  Confine(bounds);
  mju_setLogHandler(HandleInChild);
  char text[1024] = "";
  mjSpec* spec = mj_parseXML(path.c_str(), nullptr, text, sizeof(text));
  if (spec == nullptr) Refuse(text);
  spec->compiler.usethread = 0;
  const mjModel* model = mj_compile(spec, nullptr);
  if (model == nullptr) Refuse(mjs_getError(spec));
  const std::string of_the_file = *warnings;
  RefuseUnusable(*model);
  Try(*model);
  std::vector<char> bytes(static_cast<size_t>(mj_sizeModel(model)));
  mj_saveModel(model, nullptr, bytes.data(), static_cast<mjtSize>(bytes.size()));
  const auto size = static_cast<uint64_t>(of_the_file.size());
  WriteAll(pipe, &kModel, 1);
  WriteAll(pipe, reinterpret_cast<const char*>(&size), sizeof(size));
  WriteAll(pipe, of_the_file.data(), of_the_file.size());
  WriteAll(pipe, bytes.data(), bytes.size());
  _exit(0);
}

// ---- in the parent

// Closes and reaps what is left.
struct Child {
  pid_t pid;
  int pipe;
  ~Child() {
    close(pipe);
    if (pid > 0) {
      kill(pid, SIGKILL);
      while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
    }
  }

  double Seconds() const {
    clockid_t clock{};
    timespec time{};
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
};

// All that the child writes; what went wrong in `problem`.
std::vector<char> Listen(const Child& child, const ModelBounds& bounds, std::string& problem) {
  constexpr double kWallFactor = 10;  // a loaded machine gives the child that much less
  constexpr int kPollMilliseconds = 10;
  timespec start{};
  clock_gettime(CLOCK_MONOTONIC, &start);
  std::vector<char> answer;
  char block[65536];
  for (;;) {
    pollfd waiting{child.pipe, POLLIN, 0};
    if (poll(&waiting, 1, kPollMilliseconds) > 0) {
      const ssize_t size = read(child.pipe, block, sizeof(block));
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) return answer;
      answer.insert(answer.end(), block, block + size);
      continue;
    }
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const double wall = static_cast<double>(now.tv_sec - start.tv_sec) +
                        1e-9 * static_cast<double>(now.tv_nsec - start.tv_nsec);
    if (child.Seconds() > bounds.seconds || wall > kWallFactor * bounds.seconds) {
      problem = "MuJoCo needs more than " + HumanSeconds(bounds.seconds) + " to compile it";
      return answer;
    }
  }
}

}  // namespace

ModelBounds BoundsOf(const MjcfFiles& files) {
  constexpr uint64_t kMebibyte = uint64_t{1} << 20;
  return {.seconds = 1.5 + 0.25 * static_cast<double>(files.asset_bytes) / kMebibyte,
          .bytes = 256 * kMebibyte + 16 * files.asset_bytes};
}

CompiledModel CompileInChild(const MjcfFiles& files, const ModelBounds& bounds) {
  const std::string& path = files.paths.front();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw Error(ErrorCode::kIo, path + ": no pipe to compile it: " + std::strerror(errno));
  const pid_t pid = fork();
  if (pid == 0) CompileAndAnswer(path, bounds, ends[1]);
  close(ends[1]);
  Child child{pid, ends[0]};
  if (pid < 0)
    throw Error(ErrorCode::kIo, path + ": no process to compile it: " + std::strerror(errno));

  std::string problem;
  const std::vector<char> answer = Listen(child, bounds, problem);
  CompiledModel model;
  uint64_t warnings = 0;
  constexpr size_t kHead = 1 + sizeof(warnings);
  if (!problem.empty()) {
  } else if (answer.empty()) {
    problem = "MuJoCo crashed while compiling it, or asked for more than " +
              HumanBytes(static_cast<double>(bounds.bytes)) + " of memory";
  } else if (answer[0] == kRefusal) {
    problem.assign(answer.begin() + 1, answer.end());
  } else if (answer.size() >= kHead) {
    std::memcpy(&warnings, answer.data() + 1, sizeof(warnings));
    const auto middle = answer.begin() + kHead;
    if (warnings <= answer.size() - kHead) {
      const auto end_of_warnings = middle + static_cast<std::ptrdiff_t>(warnings);
      model.warnings.assign(middle, end_of_warnings);
      model.bytes.assign(end_of_warnings, answer.end());
    }
  }
  if (problem.empty() && !model.bytes.empty()) return model;
  if (problem.empty()) problem = "MuJoCo ended while handing over the model";
  while (!problem.empty() && problem.back() == '\n') problem.pop_back();
  throw Error(ErrorCode::kConfig, path + ": " + problem + " (" + std::to_string(files.elements) +
                                      " elements, most of them <" + files.commonest + ">)");
}

}  // namespace weft
