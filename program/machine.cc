#include "program/machine.h"

#include <algorithm>
#include <fstream>
#include <thread>

#include "dataflow/runtime.h"

namespace weft {

MachineFacts DescribeMachine() {
  MachineFacts facts;
  facts.cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    facts.cpu = line.substr(line.find(':') + 2);
    break;
  }
#ifdef __VERSION__
  facts.compiler = __VERSION__;
#endif
  return facts;
}

}  // namespace weft
