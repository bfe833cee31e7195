// A graph and a placement in one line of text, so that a test and the worker processes it starts
// build the same.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "tests/dataflow/graphs.h"
#include "tests/dataflow/loop.h"
#include "tests/dataflow/relay.h"

namespace weft::testing {

struct Scenario {
  bool loop = true;
  LoopOptions loop_options = {};
  RelayOptions relay_options = {};
  int runners = 3, processes = 2;
  uint64_t code = 0;  // 0: the policy split_actors with processes - 1 workers

  std::string ToText() const {
    std::ostringstream text;
    const LoopOptions& l = loop_options;
    const RelayOptions& r = relay_options;
    text << loop << ' ' << l.workers << ' ' << l.centres << ' ' << l.steps << ' ' << l.horizon
         << ' ' << l.max_lag << ' ' << l.checkpoint_every << ' ' << l.throw_at << ' ' << l.crash_at
         << ' ' << l.crash_node << ' ' << l.pause_microseconds << ' ' << r.writers << ' '
         << r.readers << ' ' << r.steps << ' ' << static_cast<int>(r.contract.kind) << ' '
         << r.contract.dim << ' ' << r.contract.capacity << ' ' << r.contract.max_lag << ' '
         << runners << ' ' << processes << ' ' << code;
    return text.str();
  }
  static Scenario FromText(const std::string& line) {
    std::istringstream text(line);
    Scenario s;
    LoopOptions& l = s.loop_options;
    RelayOptions& r = s.relay_options;
    int kind = 0;
    text >> s.loop >> l.workers >> l.centres >> l.steps >> l.horizon >> l.max_lag >>
        l.checkpoint_every >> l.throw_at >> l.crash_at >> l.crash_node >> l.pause_microseconds >>
        r.writers >> r.readers >> r.steps >> kind >> r.contract.dim >> r.contract.capacity >>
        r.contract.max_lag >> s.runners >> s.processes >> s.code;
    r.contract.kind = static_cast<Contract::Kind>(kind);
    return s;
  }
  FragmentGraph Graph() const { return loop ? Loop(loop_options) : Relay(relay_options); }
  Placement Place(const FragmentGraph& graph) const {
    return code == 0 ? Policy("split_actors", graph, 2, processes - 1)
                     : Scatter(graph, runners, processes, code);
  }
  RuntimeOptions Options() const {
    RuntimeOptions options;
    options.worker_command = [text = ToText()](int process) {
      return std::vector<std::string>{WEFT_TEST_WORKER, text, std::to_string(process)};
    };
    return options;
  }
};

inline RunResult RunScenario(const Scenario& scenario, const RuntimeOptions& options,
                             const Cut* resume = nullptr) {
  const FragmentGraph graph = scenario.Graph();
  return weft::Run(graph, scenario.Place(graph), options, resume);
}

}  // namespace weft::testing
