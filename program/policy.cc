#include "program/policy.h"

#include <filesystem>

#include "base/file.h"
#include "base/log.h"
#include "environments/environment.h"
#include "program/run_directory.h"

namespace weft {
namespace {

Checkpoint NewestOf(const RunDirectory& run) {
  std::vector<std::string> warnings;
  auto checkpoint = run.Newest(warnings);
  for (const auto& warning : warnings) LogWarn(warning);
  if (!checkpoint) throw Error(ErrorCode::kConfig, run.path() + " has no checkpoint yet");
  return *std::move(checkpoint);
}

}  // namespace

Policy Policy::Load(const std::string& run_or_checkpoint, int64_t rows) {
  const bool one = FileExists(run_or_checkpoint + "/checkpoint.json");
  const auto folder = std::filesystem::absolute(run_or_checkpoint).lexically_normal();
  const auto run =
      RunDirectory::Open(one ? folder.parent_path().parent_path().string() : run_or_checkpoint);
  const Checkpoint checkpoint = one ? ReadCheckpoint(run_or_checkpoint) : NewestOf(run);

  Policy policy;
  policy.algorithm_ = LoadAlgorithm(ConfigSource::File(run.config_path()));
  policy.spec_ = policy.algorithm_->environment.Spec();
  policy.parameters_ = PolicyOf(checkpoint);
  policy.rows_ = rows * policy.spec_.agent_count();
  policy.agent_ = policy.algorithm_->MakeAgent(policy.rows_);
  policy.agent_->Load(policy.parameters_);
  policy.steps_ = checkpoint.steps;
  return policy;
}

Tensor Policy::Act(const Tensor& observation, const Tensor& first, const Tensor& mask) {
  WEFT_CHECK_EQ(observation.shape(), spec_.leaf("observation").shape.Prepend(rows_))
      << "observation of " << spec_.id;
  Tensor type = Tensor::Full({rows_}, static_cast<double>(StepType::kMid), DType::kUInt8);
  for (int64_t row = 0; first.defined() && row < rows_; ++row) {
    if (first.data<uint8_t>()[static_cast<size_t>(row)] != 0)
      type.data<uint8_t>()[static_cast<size_t>(row)] = static_cast<uint8_t>(StepType::kFirst);
  }
  TensorMap step, chosen;
  step.Set("observation", observation);
  if (mask.defined()) step.Set("action_mask", mask);
  step.Set("type", type);
  agent_->Act({.step = step, .explore = false}, chosen);
  return chosen.At("action");
}

}  // namespace weft
