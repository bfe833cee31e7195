#include "learners/learner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "environments/rollout_leaves.h"
#include "nn/safetensors.h"

namespace weft {

PortList Learner::Ports(const char* data, bool priority) {
  PortList ports{
      .inputs = {{.name = data}, {.name = "evaluation", .optional = true, .late = true}},
      .outputs = {{.name = "parameters", .primed = true}, {.name = "snapshot", .optional = true}}};
  if (priority) ports.outputs.push_back({.name = "priority", .optional = true});
  return ports;
}

void Learner::Start(weft::Ports& ports) {
  if (!options_.initial_policy.empty()) LoadPolicy(ReadSafetensors(options_.initial_policy));
  next_evaluation_ = options_.evaluation_every;
  next_checkpoint_ = options_.checkpoint_every;
  for (int64_t i = 0; i < options_.lag; ++i) {
    ports.Write(kParameters, {.body = Snapshot(), .version = version_});
  }
  Publish(ports);
}

PortSet Learner::Needs() const {
  return awaits_evaluation_ ? PortSet{kEvaluation} : PortSet{kData};
}

void Learner::Step(weft::Ports& ports) {
  if (awaits_evaluation_) {
    awaits_evaluation_ = false;
    const double mean = ports.Read(kEvaluation).body.At("mean").Item();
    if (mean >= options_.stop_at_return) ports.Stop("an evaluation reached stop_at_return");
    return;
  }
  const Learned learned = Learn(ports.Read(kData), ports);
  if (!learned.publish) return;
  const int64_t before = env_steps_;
  env_steps_ = learned.env_steps;
  Publish(ports);
  WriteSnapshot(before, ports);
  if (env_steps_ >= next_checkpoint_) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_checkpoint_ >= std::chrono::duration<double>(options_.checkpoint_min_seconds)) {
      last_checkpoint_ = now;
      next_checkpoint_ = env_steps_ + options_.checkpoint_every;
      ports.RequestCheckpoint();
    }
  }
  ports.Log("steps", static_cast<double>(env_steps_));
  if (finished()) ports.Stop("all steps done");
}

void Learner::WriteSnapshot(int64_t before, weft::Ports& ports) {
  int wanted = 0;
  if (env_steps_ >= next_evaluation_) {
    next_evaluation_ += ((env_steps_ - next_evaluation_) / options_.evaluation_every + 1) *
                        options_.evaluation_every;
    wanted |= kWantsEvaluation;
  }
  if (const int64_t every = options_.video_every; every > 0 && env_steps_ / every > before / every)
    wanted |= kWantsVideo;
  if (wanted == 0 || !ports.Connected(kSnapshot)) return;
  TensorMap snapshot = Snapshot();
  AddWanted(wanted, snapshot);
  ports.Write(kSnapshot, {.body = std::move(snapshot), .version = env_steps_});
  awaits_evaluation_ = (wanted & kWantsEvaluation) != 0 && std::isfinite(options_.stop_at_return);
}

void Learner::Publish(weft::Ports& ports) {
  ports.Write(kParameters, {.body = Snapshot(), .version = version_++});
}

double Learner::progress() const {
  return std::min(1.0, static_cast<double>(env_steps_) / static_cast<double>(options_.total_steps));
}

double Learner::Minimise(Tape& tape, const Tensor& loss, Optimizer& optimizer,
                         std::span<const Tensor> parameters, double learning_rate, double max_norm,
                         weft::Ports& ports) {
  if (!std::isfinite(loss.Item())) {
    throw Error(ErrorCode::kDiverged, "the loss is not finite; the first op with such a value is " +
                                          tape.FirstNonFinite());
  }
  const std::span<const Tensor> gradients = tape.Gradient(loss, parameters);
  ports.AllReduce({const_cast<Tensor*>(gradients.data()), gradients.size()});
  return optimizer.Step(gradients, learning_rate, max_norm > 0 ? max_norm : Optimizer::kNoClip);
}

double Learner::GlobalSum(const Tensor& values, weft::Ports& ports) {
  double sum = 0;
  for (const float value : values.data<float>()) sum += value;
  Tensor total = Tensor::Scalar(sum, DType::kFloat64);
  ports.AllReduce({&total, 1});
  return total.Item();
}

TensorMap Learner::Save() const {
  TensorMap state;
  state.Merge("policy", CopyPolicy());
  state.Merge("learner", SaveRest());
  state.Set("steps", Tensor::From<int64_t>({1}, {env_steps_}));
  state.Set("progress", Tensor::From<int64_t>({4}, {version_, next_evaluation_, next_checkpoint_,
                                                    int64_t{awaits_evaluation_}}));
  return state;
}

void Learner::Load(const TensorMap& state) {
  LoadPolicy(state.Extract("policy"));
  LoadRest(state.Extract("learner"));
  env_steps_ = state.At("steps").data<int64_t>()[0];
  const auto progress = state.At("progress").data<int64_t>();
  version_ = progress[0];
  next_evaluation_ = progress[1];
  next_checkpoint_ = progress[2];
  awaits_evaluation_ = progress[3] != 0;
}

}  // namespace weft
