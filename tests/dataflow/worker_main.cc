// The worker processes of tests: weft_dataflow_worker SCENARIO PROCESS ADDRESS.
#include <cstdlib>
#include <exception>
#include <iostream>

#include "tests/dataflow/scenario.h"

int main(int count, char** arguments) {
  if (count != 4) return 64;
  try {
    const auto scenario = weft::testing::Scenario::FromText(arguments[1]);
    const weft::FragmentGraph graph = scenario.Graph();
    weft::RunWorker(graph, scenario.Place(graph), std::atoi(arguments[2]), arguments[3]);
  } catch (const std::exception& error) {
    std::cerr << "worker: " << error.what() << "\n";
    return 70;
  }
  return 0;
}
