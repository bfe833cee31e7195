#include "actors/actor.h"

#include "base/check.h"
#include "tensor/rng_state.h"

namespace weft {

PortList Actor::Ports(const char* piece) {
  return {.inputs = {{.name = "timestep"}, {.name = "parameters"}},
          .outputs = {{.name = "action"}, {.name = piece}}};
}

Actor::Actor(const Replica& replica, const ActorOptions& options, std::unique_ptr<Agent> agent,
             std::unique_ptr<Recorder> recorder)
    : options_(options),
      rows_(options.rows / replica.count),
      agent_(std::move(agent)),
      recorder_(std::move(recorder)),
      statistics_(rows_, options.agents) {
  WEFT_CHECK_EQ(rows_ * replica.count, options.rows) << "environment rows over the actors";
  for (int64_t row = 0; row < rows_; ++row) {
    rngs_.emplace_back(SeedOf(options.seed, replica.incarnation), Purpose::kAction,
                       replica.index * rows_ + row);
  }
}

PortSet Actor::Needs() const {
  return wants_parameters_ ? PortSet{kParameters} : PortSet{kTimestep};
}

void Actor::Step(weft::Ports& ports) {
  if (wants_parameters_) {
    TakeParameters(ports.Read(kParameters));
    if (!pending_.empty()) Act(ports, pending_);
    pending_.Clear();
    return;
  }
  const Message message = ports.Read(kTimestep);
  statistics_.Observe(message.body);
  if (recorded_ == options_.piece_steps) {
    HandOn(ports, message.body);
  } else {
    Act(ports, message.body);
  }
}

void Actor::TakeParameters(const Message& message) {
  agent_->Load(message.body);
  parameters_ = message.body;
  version_ = message.version;
  wants_parameters_ = false;
}

void Actor::Act(weft::Ports& ports, const TensorMap& step) {
  agent_->Act({.step = step, .explore = true, .env_steps = ticks_ * options_.rows, .rngs = rngs_},
              chosen_);
  recorder_->Record(step, chosen_);
  ++recorded_;
  ++ticks_;
  Message action{.body = {}, .version = version_};
  action.body.Set("action", chosen_.At("action"));
  ports.Write(kAction, std::move(action));
}

void Actor::HandOn(weft::Ports& ports, const TensorMap& step) {
  ports.Write(kPiece, {.body = recorder_->Flush(step), .version = version_});
  pending_ = step;
  wants_parameters_ = true;
  recorded_ = 0;
  for (const auto& episode : statistics_.ended()) {
    ports.Log("episode_return", episode.episode_return);
    ports.Log("episode_length", static_cast<double>(episode.length));
  }
  statistics_.Clear();
}

TensorMap Actor::Save() const {
  TensorMap state;
  state.Merge("recorder", recorder_->Save());
  state.Merge("statistics", statistics_.Save());
  state.Merge("parameters", parameters_);
  state.Merge("pending", pending_);
  state.Merge("policy_state", agent_->State());
  state.Set("rng", SavePositions(rngs_));
  state.Set("progress",
            Tensor::From<int64_t>({4}, {wants_parameters_, version_, recorded_, ticks_}));
  return state;
}

void Actor::Load(const TensorMap& state) {
  recorder_->Load(state.Extract("recorder"));
  statistics_.Load(state.Extract("statistics"));
  parameters_ = state.Extract("parameters");
  if (!parameters_.empty()) agent_->Load(parameters_);
  pending_ = state.Extract("pending");
  agent_->SetState(state.Extract("policy_state"));
  LoadPositions(state.At("rng"), rngs_);
  const auto progress = state.At("progress").data<int64_t>();
  wants_parameters_ = progress[0] != 0;
  version_ = progress[1];
  recorded_ = progress[2];
  ticks_ = progress[3];
}

}  // namespace weft
