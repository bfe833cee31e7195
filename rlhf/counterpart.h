// Who answers a model's turns in an episode: a tool, a game, a user that another program plays.
//
//   episodes: {peer: "tcp://127.0.0.1:5006", turns: 4}
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rlhf/remote_peer.h"

namespace weft {

// An episode so far. turns: the model's and the counterpart's in turn, the model's first and last.
struct Dialogue {
  std::string prompt;  // as the model read it
  std::string expected;
  std::vector<std::string> turns;  // the model's without the tokens that ended them
  bool finished = true;            // the last turn ended by itself
};

// over: the episode ends with the model's turn, and nothing is said. score: what it is worth so
// far, the last counts.
struct Reply {
  std::string text;
  bool over = true;
  double score = 0;
};

class Counterpart {
 public:
  virtual ~Counterpart() = default;
  // One reply each, in order. What it says depends on the dialogue alone, so that episodes can be
  // said again. Throws Error naming what failed.
  virtual std::vector<Reply> Answer(std::span<const Dialogue> dialogues) = 0;
};

struct EpisodeConfig : Config {
  std::string peer;
  int64_t turns = 0;
  std::string role = "user";
  Patience patience;

  void Fields(FieldVisitor& v) override;
  void Check() const override;
};

// How many turns a model has in an episode at most, of a task ("": none) or of a peer; 1: answers
// are no episodes.
int64_t TurnsOf(const EpisodeConfig& config, const std::string& task);
// Null where answers are no episodes.
std::unique_ptr<Counterpart> MakeCounterpart(const EpisodeConfig& config, const std::string& task);

}  // namespace weft
