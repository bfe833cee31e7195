// Facts about the machine and the build, for manifests and result tables.
#pragma once

#include <map>
#include <string>

namespace weft {

struct MachineFacts {
  std::string cpu;  // model name
  int cores = 1;
  std::string compiler;
  std::map<std::string, std::string> libraries;  // name -> version
};
MachineFacts DescribeMachine();

}  // namespace weft
