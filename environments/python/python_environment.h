// Environments that live in Python, named "python:MODULE:NAME(KEY=VALUE, ...)". Their rows are
// stepped by worker processes (python_worker.h), which a batch starts and supervises: a worker that
// ends or hangs is started again, and the open episodes of its rows end there, truncated.
//
// Every episode is reset with a seed of its own, drawn from the row's stream. So rows depend
// neither on the number of workers nor on how they are split over batches, and a saved batch is
// restored exactly by resetting to the seed of the open episode and repeating its actions, as long
// as the environment itself depends on nothing else.
#pragma once

#include <string>

#include "environments/environment.h"

namespace weft {

constexpr char kPythonPrefix[] = "python:";

// id: with the prefix. The spec is asked of Python once per process and target.
EnvironmentEntry PythonEnvironment(const std::string& id);

}  // namespace weft
