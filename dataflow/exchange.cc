#include "dataflow/exchange.h"

#include <map>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "dataflow/wire.h"

namespace weft {
namespace {

[[noreturn]] void Corrupt(const std::string& what) {
  throw Error(ErrorCode::kCorrupt, "another process sent " + what);
}

}  // namespace

Exchange::Exchange(Engine* engine, int process, int processes, Send send)
    : engine_(engine),
      process_(process),
      send_(std::move(send)),
      incarnations_(static_cast<size_t>(processes), 0),
      half_of_link_(engine->edges().size(), -1) {
  std::map<std::tuple<int, int, int>, std::vector<int>> groups;  // by edge, writer, process
  for (size_t i = 0; i < engine->edges().size(); ++i) {
    const Engine::Edge& edge = engine->edges()[i];
    if (edge.writer_process == edge.reader_process || edge.link == nullptr) continue;
    const bool writer = edge.writer_process == process_;
    half_of_link_[i] = static_cast<int>(halves_.size());
    halves_.push_back({.number = static_cast<int>(i),
                       .writer = writer,
                       .link = edge.link.get(),
                       .other = writer ? edge.reader_process : edge.writer_process,
                       .arrivals = edge.arrivals});
    if (writer)
      groups[{edge.spec.edge, edge.spec.writer, edge.reader_process}].push_back(half_of_link_[i]);
  }
  for (auto& [key, halves] : groups) writer_groups_.push_back(std::move(halves));
}

uint32_t Exchange::Life(const Half& half) const {
  return static_cast<uint32_t>(incarnations_[process_] + incarnations_[half.other]);
}

bool Exchange::Live(Half& half) {
  if (half.restarting && !half.link->cut()) half.restarting = false;
  return !half.restarting;
}

void Exchange::Flow() {
  for (Half& half : halves_) {
    if (half.early.empty() || !Live(half)) continue;
    const auto messages = std::exchange(half.early, {});
    const auto numbers = std::exchange(half.early_numbers, {});
    for (size_t i = 0; i < messages.size(); ++i) Deliver(half, messages[i], numbers[i]);
  }
  SendMessages();
  SendCredits();
}

// Halves of a group that have the same message to send next share one copy of its body on the way.
void Exchange::SendMessages() {
  struct Next {
    Half* half;
    uint64_t number, stamp;
  };
  std::vector<Next> next;
  for (const std::vector<int>& group : writer_groups_) {
    while (true) {
      next.clear();
      Message newest;
      for (const int index : group) {
        Half& half = halves_[index];
        if (!Live(half)) continue;
        uint64_t number = half.sent, stamp = 0;
        if (half.link->newest_only()) {
          Message message;
          number = half.link->Newest(&message, &stamp);
          // The next is sent when the last has arrived, so a slow reader skips versions instead of
          // queueing them.
          if (number == half.sent || half.credited != half.sent) continue;
          if (next.empty() || stamp < next[0].stamp) newest = std::move(message);
        } else {
          if (half.sent >= half.link->written()) continue;
          stamp = half.link->StampAt(half.sent);
        }
        if (!next.empty() && stamp < next[0].stamp) next.clear();
        if (next.empty() || stamp == next[0].stamp) next.push_back({&half, number, stamp});
      }
      if (next.empty()) break;
      Writer out = BeginMessage(MessageType::kEdge);
      out.Write(static_cast<uint16_t>(next[0].half->other));
      out.Write(static_cast<uint16_t>(next.size()));
      for (const auto& [half, number, stamp] : next) {
        out.Write(static_cast<uint32_t>(half->number));
        out.Write(Life(*half));
        out.Write(number);
      }
      WriteMessage(
          out, next[0].half->link->newest_only() ? newest : next[0].half->link->At(next[0].number));
      for (const auto& [half, number, stamp] : next)
        half->sent = half->link->newest_only() ? number : number + 1;
      send_(next[0].half->other, out.Take());
    }
  }
}

void Exchange::SendCredits() {
  std::map<int, std::vector<Half*>> changed;  // by process
  for (Half& half : halves_) {
    if (half.writer || !Live(half)) continue;
    const uint64_t read = half.link->newest_only() ? half.link->written() : half.link->read();
    if (read == half.credited) continue;
    half.credited = read;
    changed[half.other].push_back(&half);
  }
  for (const auto& [process, halves] : changed) {
    Writer out = BeginMessage(MessageType::kCredit);
    out.Write(static_cast<uint16_t>(process));
    out.Write(static_cast<uint16_t>(halves.size()));
    for (const Half* half : halves) {
      out.Write(static_cast<uint32_t>(half->number));
      out.Write(Life(*half));
      out.Write(half->credited);
    }
    send_(process, out.Take());
  }
}

Exchange::Half& Exchange::FindHalf(uint32_t number, bool writer) {
  if (number >= half_of_link_.size() || half_of_link_[number] < 0)
    Corrupt("news of a link that does not end here");
  Half& half = halves_[half_of_link_[number]];
  if (half.writer != writer) Corrupt("news of a link for its other end");
  return half;
}

void Exchange::OnEdge(Reader& in) {
  const auto count = in.Read<uint16_t>();
  std::vector<std::pair<Half*, uint64_t>> targets;
  for (int i = 0; i < count; ++i) {
    Half& half = FindHalf(in.Read<uint32_t>(), false);
    const auto life = in.Read<uint32_t>();
    const auto number = in.Read<uint64_t>();
    if (life == Life(half)) targets.emplace_back(&half, number);
  }
  const Message message = ReadMessage(in);
  if (!in.AtEnd()) Corrupt("a message with bytes left over");
  for (const auto& [half, number] : targets) {
    if (Live(*half)) {
      Deliver(*half, message, number);
    } else {
      if (half->early.size() >= static_cast<size_t>(half->link->capacity()))
        Corrupt("more messages than there is room for");
      half->early.push_back(message);
      half->early_numbers.push_back(number);
    }
  }
}

void Exchange::Deliver(Half& half, Message message, uint64_t number) {
  Link& link = *half.link;
  if (link.newest_only()) {
    link.PushNumbered(std::move(message), number);
    return;
  }
  if (number != link.written()) Corrupt("a message out of turn");
  if (!link.HasRoom()) Corrupt("more messages than there is room for");
  link.Push(std::move(message), half.arrivals != nullptr ? half.arrivals->fetch_add(1) : number);
}

void Exchange::OnCredit(Reader& in) {
  const auto count = in.Read<uint16_t>();
  for (int i = 0; i < count; ++i) {
    Half& half = FindHalf(in.Read<uint32_t>(), true);
    const auto life = in.Read<uint32_t>();
    const auto read = in.Read<uint64_t>();
    if (life != Life(half) || !Live(half)) continue;
    if (read > half.sent) Corrupt("credit for messages that were never sent");
    half.credited = read;
    if (!half.link->newest_only()) half.link->Release(read);
  }
  if (!in.AtEnd()) Corrupt("a credit with bytes left over");
}

void Exchange::OnRestarted(int process, int incarnation) {
  incarnations_[process] = incarnation;
  bool any = false;
  for (Half& half : halves_) {
    if (half.other != process) continue;
    half.restarting = true;
    half.sent = half.credited = 0;
    half.early.clear();
    half.early_numbers.clear();
    half.link->SetCut();
    any = true;
  }
  if (any) engine_->control().LinksCut();
}

}  // namespace weft
