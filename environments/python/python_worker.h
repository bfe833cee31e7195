// One Python process that steps environments (python/weft_environment.py), and the memory it shares
// with this one. Started here, watched, and started again when it is lost.
// What the two say to each other: docs/python_environments.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "environments/space.h"

namespace weft {

class ZmqSocket;

struct PythonTarget {
  std::string name;  // MODULE:NAME(KEY=VALUE, ...)
  std::string preset = "none";
  bool training = true;     // false for evaluations, where a lost life ends no Atari game
  bool vector = false;      // one Gymnasium vector environment for all rows
  int64_t time_limit = -1;  // steps; -1: the registered one; 0: none
  double timeout = 60;      // seconds for one answer; longer means hung
};

// What a worker is asked to do with an environment.
enum class PythonCommand : uint8_t { kStep, kReset, kSkip };
// What an agent did in it.
enum class PythonPresence : uint8_t { kAbsent, kFirst, kStepped };

// What the environments of a worker read and write. The first spans have one element for each
// environment, the others one element or block for each row: of G agents, an environment has G.
struct PythonRows {
  std::span<PythonCommand> command;
  std::span<uint64_t> seed;     // of a reset, below 2^31
  std::span<uint64_t> steps;    // repeats to make at most; then those that were made, 0 for a reset
  std::span<std::byte> action;  // f32 or i64, as the space's canonical form plus its start
  std::span<double> reward;     // summed over the action's repeats
  std::span<uint8_t> terminated, truncated;
  std::span<PythonPresence> present;
  std::vector<std::span<std::byte>> leaves;
};

// WEFT_PYTHON, or python3.
std::string PythonInterpreter();

class PythonWorker {
 public:
  // Starts the process with PythonInterpreter(); does not wait for it.
  PythonWorker(PythonTarget target, int64_t environments);
  ~PythonWorker();

  // Makes the environments and says what they are. Throws kConfig for a target that cannot be made,
  // kUnavailable when Python or one of the packages is missing.
  EnvironmentSpec Open();
  // Opens, and maps memory for rows of such a spec, which Begin and Finish need.
  void Attach(const EnvironmentSpec& spec);

  int64_t environments() const { return environments_; }
  PythonRows& shared() { return shared_; }

  // Carries out the commands of all environments; Finish waits for it. False when the process was
  // lost (it ended, or did not answer in time) and `lost` says how. Throws kInternal, naming the
  // environment through `name`, when it threw or broke its own space.
  void Begin();
  bool Finish(const std::function<std::string(int64_t)>& name, std::string* lost);

  // A new process with new environments on the same memory.
  void Restart();

 private:
  class Memory;
  class Process;

  std::string Ask(const std::string& request);

  const PythonTarget target_;
  const int64_t environments_;
  std::unique_ptr<Process> process_;
  std::unique_ptr<Memory> memory_;
  std::string attach_;  // the request that maps the memory
  PythonRows shared_;
};

}  // namespace weft
