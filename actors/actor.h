// The actor fragment: steps an agent along its environment rows, records, hands pieces of T steps
// on, and takes the learner's parameters between two pieces.
//
//   environment ==timestep==> actor ==piece==> learner or replay
//        ^=======action=========|  <==parameters==
//
// It has two phases. On the step after T recorded ones it hands the piece on and keeps that step
// pending; then it waits for parameters, and acts on the pending step with them. Without the
// pending step the graph would deadlock: the actor would wait for parameters, the learner for the
// piece.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/agent.h"
#include "actors/episode_statistics.h"
#include "actors/recorder.h"
#include "dataflow/fragment.h"

namespace weft {

struct ActorOptions {
  int64_t rows = 1;         // N, of all replicas together; a replica takes N / replicas
  int64_t agents = 1;       // rows of one environment
  int64_t piece_steps = 1;  // T, recorded steps per row between two parameter updates
  uint64_t seed = 0;
};

class Actor final : public Fragment {
 public:
  enum Input { kTimestep, kParameters };
  enum Output { kAction, kPiece };
  // piece: what the algorithm calls the output, "rollout" or "transitions".
  static PortList Ports(const char* piece);

  Actor(const Replica& replica, const ActorOptions& options, std::unique_ptr<Agent> agent,
        std::unique_ptr<Recorder> recorder);

  PortSet Needs() const override;
  void Step(weft::Ports& ports) override;
  TensorMap Save() const override;
  void Load(const TensorMap& state) override;

 private:
  void TakeParameters(const Message& message);
  void Act(weft::Ports& ports, const TensorMap& step);
  void HandOn(weft::Ports& ports, const TensorMap& step);

  const ActorOptions options_;
  const int64_t rows_;  // of this replica
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<Recorder> recorder_;
  EpisodeStatistics statistics_;
  std::vector<Rng> rngs_;  // [rows_], keyed by the global row
  TensorMap chosen_;
  TensorMap parameters_;  // the snapshot in use, for checkpoints
  TensorMap pending_;     // the step to act on once parameters are there; empty at the very start
  bool wants_parameters_ = true;
  int64_t version_ = 0;   // of parameters_
  int64_t recorded_ = 0;  // steps of the piece so far
  int64_t ticks_ = 0;     // steps of a row so far
};

}  // namespace weft
