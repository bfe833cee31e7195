// What flows along links between processes: messages one way, news of what was read the other way.
// One end per process, used by the thread that talks to processes; the main process passes on what
// workers send each other.
//
// A link between processes is in its n-th life after n restarts of either end. Whatever belongs to
// an earlier life is dropped on arrival; what belongs to a new life waits until the runner of the
// local end has restarted its half (link.h).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "base/archive.h"
#include "dataflow/engine.h"

namespace weft {

class Exchange {
 public:
  // Takes a finished message for a process.
  using Send = std::function<void(int process, std::vector<uint8_t> message)>;

  Exchange(Engine* engine, int process, int processes, Send send);

  void SetIncarnation(int process, int incarnation) { incarnations_[process] = incarnation; }
  const std::vector<int>& incarnations() const { return incarnations_; }

  // Sends new messages of links that leave this process, and credits; delivers messages that had to
  // wait.
  void Flow();

  // The rest of a kEdge or kCredit message that is for this process. Throws kCorrupt on links,
  // numbers or amounts that cannot be.
  void OnEdge(Reader& in);
  void OnCredit(Reader& in);
  // The process began anew: its links start from nothing.
  void OnRestarted(int process, int incarnation);

 private:
  struct Half {
    int number;  // of the link
    bool writer;
    Link* link;
    int other;  // the process at the other end
    std::atomic<uint64_t>* arrivals;
    uint64_t sent = 0;               // writer: messages sent; newest-only: number of the last sent
    uint64_t credited = 0;           // writer: reads heard of; reader: reads told
    bool restarting = false;         // the runner has not restarted its half yet
    std::deque<Message> early = {};  // reader: arrived meanwhile
    std::deque<uint64_t> early_numbers = {};
  };
  uint32_t Life(const Half& half) const;
  bool Live(Half& half);  // false while the runner has to restart its half
  void SendMessages();
  void SendCredits();
  void Deliver(Half& half, Message message, uint64_t number);
  Half& FindHalf(uint32_t number, bool writer);

  Engine* const engine_;
  const int process_;
  const Send send_;
  std::vector<int> incarnations_;  // by process
  std::vector<Half> halves_;
  std::vector<int> half_of_link_;  // index in halves_, -1 when the link is not ours
  std::vector<std::vector<int>>
      writer_groups_;  // halves that get the same messages in the same process
};

}  // namespace weft
