// Worker processes: starting, watching and ending them, and the private file that tells one where
// to connect.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft {

// What a worker needs to take part. Kept in a file that only this user can read, inside a folder
// that only this user can enter: whoever knows the session is trusted.
struct Rendezvous {
  std::string endpoint;
  uint64_t session = 0;
  int process = 0;
  int incarnation = 0;
};
void WriteRendezvous(const std::string& path, const Rendezvous& rendezvous);
Rendezvous ReadRendezvous(const std::string& path);  // throws kIo or kCorrupt naming the path

// A folder of mode 0700 for sockets and rendezvous files; its destructor removes it.
class PrivateFolder {
 public:
  PrivateFolder();
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

uint64_t RandomSession();  // from the system; never 0

// Starts a program (arguments[0] is looked up in PATH) in a process group of its own, so that a
// Ctrl-C of the terminal reaches the main process alone, with no descriptor but the standard three.
// Throws kIo.
int StartProcess(const std::vector<std::string>& arguments);
// How a process ended ("killed by signal 9", "exit status 127"), nothing while it runs. Once only.
std::optional<std::string> EndOfProcess(int pid);
void KillProcess(int pid);

// In a worker: the system kills it when its parent dies. Throws kUnavailable when the parent is
// gone already.
void DieWithParent();

}  // namespace weft
