#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "dataflow/engine.h"

namespace weft {
namespace {

using Kind = Contract::Kind;

// Versions of writers may differ where arrival order or a lag decides what a fragment gets.
bool MixesVersions(const FragmentGraph& graph) {
  return std::any_of(graph.edges().begin(), graph.edges().end(),
                     [](const FragmentGraph::Edge& edge) {
                       return edge.contract.kind == Kind::kMerge || edge.contract.max_lag > 0;
                     });
}

// Threads that outnumber the cores would only take the time of those they wait for by spinning.
int SpinRounds(const Placement& placement) {
  size_t threads = placement.processes > 1 ? 1 : 0;  // the thread that talks to processes
  for (const auto& runner : placement.runners) threads += static_cast<size_t>(runner.threads);
  return threads <= std::thread::hardware_concurrency() ? 2000 : 0;
}

}  // namespace

Engine::Engine(const FragmentGraph& graph, const Placement& placement, Options options)
    : options_(std::move(options)), control_(options_.process == 0, options_.coordinator) {
  const Seats seats(graph, placement);
  std::map<std::pair<int, int>, RunnerBell*> bells;
  for (const auto& placed : placement.runners) {
    if (placed.process != options_.process) continue;
    runners_.push_back(
        std::make_unique<Runner>(Runner::Options{.threads = placed.threads,
                                                 .spin = SpinRounds(placement),
                                                 .incarnation = options_.incarnation},
                                 &control_));
    RunnerBell* bell = runners_.back()->bell();
    control_.AddRunner(bell);
    for (const auto& [node, replica] : placed.members) {
      runners_.back()->Add(
          std::make_unique<Member>(graph, node, replica, bell, &control_, &options_.metrics));
      bells[{node, replica}] = bell;
    }
  }
  Wire(graph, seats);
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const int node = static_cast<int>(n);
    groups_.emplace_back();
    std::vector<bool> local;
    for (const int process : seats.process[n]) local.push_back(process == options_.process);
    const bool any_here = std::find(local.begin(), local.end(), true) != local.end();
    const bool all_here = std::find(local.begin(), local.end(), false) == local.end();
    if (!graph.Reduces(node) || local.size() < 2 || (options_.process != 0 && !any_here)) continue;
    ReduceGroup::Carrier carrier;
    if (options_.process != 0 || !all_here) {
      carrier = [this, node](int replica, std::span<const Tensor> tensors) {
        options_.carrier(node, replica, tensors);
      };
    }
    groups_.back() = std::make_unique<ReduceGroup>(
        graph.nodes()[n].name, local, options_.process == 0, &control_, std::move(carrier));
  }
  for (const auto& runner : runners_) {
    for (const auto& member : runner->members()) {
      member->ports = std::make_unique<ReplicaPorts>(Inputs(graph, member->node, member->replica),
                                                     Outputs(graph, member->node, member->replica),
                                                     member.get());
      member->group = groups_[member->node].get();
    }
  }
  for (Edge& edge : edges_) {
    if (edge.link == nullptr) continue;
    const auto& ends = graph.edges()[edge.spec.edge];
    const auto find = [&](int node, int replica) -> Bell* {
      const auto found = bells.find({node, replica});
      return found == bells.end() ? options_.coordinator : found->second;
    };
    Bell* writer = find(ends.from, edge.spec.writer);
    Bell* reader = find(ends.to, edge.spec.reader);
    if (writer != reader) edge.link->SetBells(writer, reader);
    // A reader that begins anew gets the last parameters, or the token of a cycle, which was lost
    // with it.
    const bool repeats = ends.contract.kind == Kind::kBroadcast ||
                         graph.nodes()[ends.from].factory.ports.outputs[ends.from_port].primed;
    if (repeats && edge.reader_process != edge.writer_process &&
        edge.writer_process == options_.process) {
      edge.link->KeepLast();
    }
  }
}

Engine::~Engine() {
  Close();
}

void Engine::Wire(const FragmentGraph& graph, const Seats& seats) {
  std::map<std::pair<int, int>, std::atomic<uint64_t>*> counters;  // (edge, reader)
  for (const LinkSpec& spec : LinkSpecs(graph)) {
    const auto& ends = graph.edges()[spec.edge];
    Edge edge{.spec = spec,
              .writer_process = seats.process[ends.from][spec.writer],
              .reader_process = seats.process[ends.to][spec.reader],
              .channel = ChannelName(graph, spec),
              .newest_only = ends.contract.max_lag > 0,
              .link = nullptr};
    if (edge.writer_process == options_.process || edge.reader_process == options_.process) {
      edge.link = std::make_unique<Link>(LinkCapacity(graph, spec), edge.newest_only,
                                         ends.contract.max_lag);
    }
    if (ends.contract.kind == Kind::kMerge && edge.reader_process == options_.process) {
      std::atomic<uint64_t>*& counter = counters[{spec.edge, spec.reader}];
      if (counter == nullptr) {
        arrivals_.push_back(std::make_unique<std::atomic<uint64_t>>(uint64_t{1} << 62));
        counter = arrivals_.back().get();
      }
      edge.arrivals = counter;
    }
    edges_.push_back(std::move(edge));
  }
}

std::vector<ReplicaPorts::Input> Engine::Inputs(const FragmentGraph& graph, int node, int replica) {
  const auto& from = graph.nodes()[node];
  std::vector<ReplicaPorts::Input> inputs;
  for (size_t port = 0; port < from.factory.ports.inputs.size(); ++port) {
    ReplicaPorts::Input input{.name = from.name + "." + from.factory.ports.inputs[port].name};
    for (const Edge& edge : edges_) {
      const auto& ends = graph.edges()[edge.spec.edge];
      if (ends.to != node || ends.to_port != static_cast<int>(port) || edge.spec.reader != replica)
        continue;
      input.edge = ends.name;
      input.merge = ends.contract.kind == Kind::kMerge;
      input.dim = ends.contract.dim;
      input.mixed_versions = options_.incarnation > 0 || MixesVersions(graph);
      input.links.push_back(edge.link.get());
      input.writers.push_back(ReplicaLabel(graph, ends.from, edge.spec.writer));
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

std::vector<ReplicaPorts::Output> Engine::Outputs(const FragmentGraph& graph, int node,
                                                  int replica) {
  const auto& from = graph.nodes()[node];
  std::vector<ReplicaPorts::Output> outputs;
  for (size_t port = 0; port < from.factory.ports.outputs.size(); ++port) {
    const Port& declared = from.factory.ports.outputs[port];
    ReplicaPorts::Output output{
        .name = from.name + "." + declared.name, .primed = declared.primed, .edges = {}};
    for (size_t e = 0; e < graph.edges().size(); ++e) {
      const auto& ends = graph.edges()[e];
      if (ends.from != node || ends.from_port != static_cast<int>(port)) continue;
      ReplicaPorts::OutputEdge part;
      part.edge = ends.name;
      const bool splits =
          ends.contract.kind == Kind::kRows && graph.nodes()[ends.to].replicas > from.replicas;
      if (splits) part.split_dim = ends.contract.dim;
      for (const Edge& edge : edges_) {
        if (edge.spec.edge != static_cast<int>(e) || edge.spec.writer != replica) continue;
        part.links.push_back(edge.link.get());
        part.readers.push_back(ReplicaLabel(graph, ends.to, edge.spec.reader));
        if (edge.arrivals != nullptr) part.arrivals.push_back(edge.arrivals);
      }
      output.edges.push_back(std::move(part));
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

void Engine::StartThreads(const Cut* resume) {
  for (const auto& runner : runners_) {
    threads_.emplace_back([pointer = runner.get(), resume] { pointer->Run(resume); });
  }
}

void Engine::Close() {
  control_.Close();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Engine::RestoreLinks(const Cut& resume) {
  for (size_t i = 0; i < edges_.size(); ++i) {
    Edge& edge = edges_[i];
    if (edge.link == nullptr) continue;
    const auto channel = resume.find(edge.channel);
    if (channel == resume.end()) continue;
    edge.link->Restore(UnpackMessages(channel->second), static_cast<uint64_t>(i) << 32,
                       edge.writer_process == options_.process);
  }
  for (const auto& runner : runners_) {
    for (const auto& member : runner->members())
      member->steps.store(SavedSteps(resume, member->key));
  }
}

bool Engine::Quiet() const {
  const uint64_t epoch = control_.park_epoch();
  if (epoch == 0) return false;
  for (const auto& runner : runners_) {
    if (runner->quiet_epoch() != epoch) return false;
  }
  return !control_.pending() && control_.park_epoch() == epoch;
}

void Engine::SaveReplicas(Cut* cut) const {
  for (const auto& runner : runners_) {
    for (const auto& member : runner->members()) {
      (*cut)[member->key] = member->fragment->Save();
      SaveSteps(cut, member->key, member->steps.load(std::memory_order_relaxed));
    }
  }
}

int64_t Engine::Steps() const {
  int64_t steps = 0;
  for (const auto& runner : runners_) {
    for (const auto& member : runner->members())
      steps += member->steps.load(std::memory_order_relaxed);
  }
  return steps;
}

std::string Engine::Describe() const {
  std::string text;
  for (const auto& runner : runners_) {
    for (const auto& member : runner->members()) text += "\n  " + member->Describe();
  }
  return text;
}

}  // namespace weft
