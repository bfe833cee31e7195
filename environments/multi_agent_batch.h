// A batch of N multi-agent environments. Every environment has its own random stream, keyed by
// seed, purpose and its global number.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "environments/batch_layout.h"
#include "environments/multi_agent.h"
#include "environments/row_activity.h"

namespace weft {

class MultiAgentBatch final : public BatchEnvironment {
 public:
  using Make = std::function<std::unique_ptr<MultiAgentEnvironment>()>;

  // options.rows environments; step_nanoseconds: what a step of one costs.
  MultiAgentBatch(const Make& make, const BatchOptions& options, double step_nanoseconds);

  const EnvironmentSpec& spec() const override { return layout_.spec(); }
  int64_t rows() const override { return layout_.options().rows; }
  TimeStep MakeTimeStep() const override { return weft::MakeTimeStep(layout_.spec(), rows()); }
  void Reset(TimeStep& out) override;
  void Step(const Tensor& action, TimeStep& out) override;
  void Render(int64_t environment, Canvas& canvas) const override {
    worlds_[static_cast<size_t>(environment)].environment->Render(canvas);
  }
  std::string Text(int64_t environment) const override {
    return worlds_[static_cast<size_t>(environment)].environment->Text();
  }
  TensorMap Save() const override;
  void Load(const TensorMap& state) override;

 private:
  struct World {
    std::unique_ptr<MultiAgentEnvironment> environment;
    RowProgress progress;
    // [G], of the running step.
    std::vector<double> reward, discount, sum;
    std::vector<uint8_t> absent;
  };

  MultiAgentBatch(std::unique_ptr<MultiAgentEnvironment> first, const Make& make,
                  const BatchOptions& options, double step_nanoseconds);

  std::span<StepType> TypesOf(size_t world) {
    return std::span(types_).subspan(world * agents_, agents_);
  }
  std::vector<StepType> WorldTypes() const;  // [N]: kLast where the episode is over, else kMid
  void Run(const BatchLayout::View& view);
  void StepRange(const BatchLayout::View& view, int64_t begin, int64_t end);
  void CheckAgentActions(const BatchLayout::View& view, int64_t world);
  void Advance(const BatchLayout::View& view, int64_t world);
  void StepWorld(const BatchLayout::View& view, int64_t world, AgentRows out);

  BatchLayout layout_;  // of agent rows
  const size_t agents_;
  const int64_t step_limit_;
  std::vector<World> worlds_;
  std::vector<StepType> types_;  // [N * G], of the last step; kLast before the first
  RowActivity own_activity_;
  RowActivity& activity_;
  std::vector<int64_t> own_limits_;  // [G], of a discrete action; empty where all are the row's
  int64_t grain_;
  bool inline_;
};

}  // namespace weft
