// What the main process collects from workers: snapshots for a cut, and reports for a stall.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "dataflow/wire.h"
#include "dataflow/wiring.h"
#include "dataflow/workers.h"

namespace weft {

bool Workers::Quiet(uint64_t epoch) const {
  return std::all_of(workers_.begin(), workers_.end(), [epoch](const Worker& worker) {
    return worker.welcomed && worker.quiet_epoch == epoch;
  });
}

bool Workers::TakeSnapshot(Cut* cut) {
  const uint64_t epoch = engine_->control().park_epoch();
  SendToAll([epoch] { return ShortMessage(MessageType::kTakeSnapshot, epoch); });
  const auto missing = [epoch](const Worker& worker) { return worker.snapshot_epoch != epoch; };
  while (std::any_of(workers_.begin(), workers_.end(), missing)) {
    bell_->Clear();
    Service();
    if (engine_->control().park_epoch() != epoch) return false;
    Wait(20);
  }
  engine_->SaveReplicas(cut);
  for (const Worker& worker : workers_) {
    for (const auto& [key, map] : worker.states) {
      TensorMap& state = (*cut)[key];  // "runtime" comes in parts
      for (const auto& [name, tensor] : map) state.Set(name, tensor);
    }
  }
  for (size_t i = 0; i < engine_->edges().size(); ++i) {
    const Engine::Edge& edge = engine_->edges()[i];
    LinkContents contents = edge.writer_process == 0 ? edge.link->Contents()
                                                     : workers_[edge.writer_process - 1].written[i];
    if (edge.writer_process != edge.reader_process) {
      const auto [read, uses] = edge.reader_process == 0
                                    ? edge.link->ReadPosition()
                                    : workers_[edge.reader_process - 1].read[i];
      contents = Unread(std::move(contents), edge.newest_only, read, uses);
    }
    if (!contents.messages.empty()) (*cut)[edge.channel] = PackMessages(contents);
  }
  for (Worker& worker : workers_) {
    worker.states.clear();
    worker.written.clear();
    worker.read.clear();
  }
  return true;
}

void Workers::OnSnapshot(Worker& worker, Reader& in) {
  const auto epoch = in.Read<uint64_t>();
  worker.states = ReadCut(in);
  worker.written.assign(engine_->edges().size(), {});
  worker.read.assign(engine_->edges().size(), {});
  for (auto count = in.Read<uint32_t>(); count > 0; --count) {
    const auto link = in.Read<uint32_t>();
    if (link >= worker.written.size())
      throw Error(ErrorCode::kCorrupt, "a snapshot of a link that does not exist");
    LinkContents& contents = worker.written[link];
    contents.first = in.Read<uint64_t>();
    contents.uses = in.Read<int32_t>();
    for (auto messages = in.Read<uint32_t>(); messages > 0; --messages)
      contents.messages.push_back(ReadMessage(in));
  }
  for (auto count = in.Read<uint32_t>(); count > 0; --count) {
    const auto link = in.Read<uint32_t>();
    if (link >= worker.read.size())
      throw Error(ErrorCode::kCorrupt, "a snapshot of a link that does not exist");
    worker.read[link].first = in.Read<uint64_t>();
    worker.read[link].second = in.Read<int32_t>();
  }
  worker.snapshot_epoch = epoch;
}

int64_t Workers::Steps() const {
  int64_t steps = 0;
  for (const Worker& worker : workers_) steps += worker.steps;
  return steps;
}

void Workers::AskForReports() {
  for (Worker& worker : workers_) worker.report.clear();
  SendToAll([] { return BeginMessage(MessageType::kReport).Take(); });
}

bool Workers::AllReported() const {
  return std::none_of(workers_.begin(), workers_.end(),
                      [](const Worker& worker) { return worker.report.empty(); });
}

std::string Workers::Reports() const {
  std::string text;
  for (const Worker& worker : workers_) {
    text += worker.report.empty()
                ? "\n  worker process " + std::to_string(worker.process) + " does not answer"
                : worker.report;
  }
  return text;
}

}  // namespace weft
