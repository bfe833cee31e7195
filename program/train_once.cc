#include "program/train_once.h"

#include "base/file.h"
#include "program/subprocess.h"

namespace weft {

std::string TrainOnce(std::vector<std::string> arguments) {
  RemoveTree("runs/bench");
  arguments.insert(arguments.begin(), "train");
  arguments.insert(arguments.end(), {"run=bench", "--json"});
  const std::string output = OutputOfSelf(arguments);
  RemoveTree("runs/bench");
  const size_t end = output.find_last_not_of('\n');
  const size_t begin = output.rfind('\n', end);
  return output.substr(begin == std::string::npos ? 0 : begin + 1);
}

}  // namespace weft
