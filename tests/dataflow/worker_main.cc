// The processes that tests start: "weft_dataflow_worker SCENARIO PROCESS ADDRESS" is a worker of a
// test's run, "weft_dataflow_worker run SCENARIO" a main process with workers of its own.
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "tests/dataflow/scenario.h"

int main(int count, char** arguments) {
  if (count < 3) return 64;
  try {
    const bool run = std::string(arguments[1]) == "run";
    const auto scenario = weft::testing::Scenario::FromText(arguments[run ? 2 : 1]);
    const weft::FragmentGraph graph = scenario.Graph();
    if (run) {
      weft::Run(graph, scenario.Place(graph), scenario.Options());
    } else if (count == 4) {
      weft::RunWorker(graph, scenario.Place(graph), std::atoi(arguments[2]), arguments[3]);
    }
  } catch (const std::exception& error) {
    std::cerr << "worker: " << error.what() << "\n";
    return 70;
  }
  return 0;
}
