#include "rlhf/language_learner.h"

#include <algorithm>

#include "base/file.h"
#include "language/language_model.h"
#include "language/model_name.h"
#include "language/model_writer.h"

namespace weft {

void LanguageTraining::Fields(FieldVisitor& v) {
  LanguageMethod::Fields(v);
  v.Field("model", model, "folder, .gguf file or name of the model to begin with");
  v.Choice("precision", precision, {"bf16", "f32"},
           "of products; master weights and sums are f32 in both");
  v.Field("learning_rate", learning_rate, "step size of the optimiser", Range::Positive());
  v.Field("warmup_steps", warmup_steps, "steps in which it rises to that", Range::AtLeast(0));
  v.Field("max_gradient_norm", max_gradient_norm,
          "global norm above which gradients are scaled; 0: none", Range::AtLeast(0));
  v.Field("micro_batch_tokens", micro_batch_tokens,
          "tokens that go through the model together; a step's loss does not depend on it",
          Range::AtLeast(1));
  v.Section("optimizer", optimizer, "the optimiser");
}

LearnerOptions LanguageTraining::LearnerSettings() const {
  return {.total_steps = total_steps,
          .evaluation_every = total_steps + 1,
          .checkpoint_every = CheckpointEvery(),
          .checkpoint_min_seconds = checkpoint.min_seconds};
}

void LanguageTraining::WriteModel(const TensorMap& policy, const std::string& folder) const {
  const auto file = ModelFile::Open(ResolveModel(model));
  Transformer trained(file->config(), Precision::kFloat32);
  LoadState(trained.Parameters(), policy);
  std::vector<StoredWeight> weights;
  std::vector<Transformer::WeightSlot> slots = trained.Weights();
  for (const Transformer::WeightSlot& slot : slots) {
    const StoredWeight& stored = file->Find(slot.name);
    weights.emplace_back(
        WeightSpec{slot.name, stored.shape()}, [&slot](int64_t begin, int64_t end, float* out) {
          slot.get(begin, {out, static_cast<size_t>((end - begin) * slot.columns)});
        });
  }
  RemoveTree(folder + "/model");  // of an earlier end of the run
  WriteModelFolder(folder + "/model", file->description(), weights, WeightType::kBF16,
                   file->gguf() == nullptr
                       ? CopyTokenizerFiles(file->path())
                       : MakeTokenizerFiles(*file->gguf(), file->config().context));
}

void LanguageBatch::AddAnswers(std::span<const int32_t> prompt,
                               std::span<const std::span<const int32_t>> answers) {
  const int64_t shared = std::ssize(prompt) - 1;
  const int64_t parent = shared > 0 ? std::ssize(spans) : -1;
  const auto add = [&](int32_t id, int64_t position, int32_t target) {
    ids.push_back(id);
    positions.push_back(static_cast<int32_t>(position));
    targets.push_back(target);
  };
  if (shared > 0) {
    spans.push_back({.first_row = tokens(), .rows = shared, .past = 0});
    for (int64_t t = 0; t < shared; ++t) add(prompt[t], t, -1);
  }
  for (const std::span<const int32_t> answer : answers) {
    spans.push_back({.first_row = tokens(),
                     .rows = std::ssize(answer),
                     .past = shared,
                     .pages = nullptr,
                     .parent = parent});
    for (int64_t t = 0; t < std::ssize(answer); ++t) {
      add(t == 0 ? prompt.back() : answer[t - 1], shared + t, answer[t]);
    }
  }
}

LanguageLearner::LanguageLearner(const LanguageTraining& config, const Replica& replica)
    : Learner(config.LearnerSettings()), config_(config), context_(replica.context) {
  const auto file = ModelFile::Open(ResolveModel(config.model));
  model_ = LoadTransformer(context_, *file,
                           {.precision = config.precision_in_use(), .keep_master = true});
  model_->EnableGradient();
  model_->Refresh(context_);
  parameters_ = model_->Parameters();
  gradients_ = model_->Gradients();
  optimizer_ = std::make_unique<Optimizer>(config.optimizer, parameters_);
}

std::vector<float> LanguageLearner::LogProbabilities(const LanguageBatch& batch,
                                                     TransformerTrace* trace, Tensor* rows) {
  *rows = model_->Forward(context_, batch.view(), trace);
  const TokenScores scores = ScoreTokens(context_, *model_, *rows, batch.targets, {});
  std::vector<float> log_p;
  for (int64_t t = 0; t < batch.tokens(); ++t) {
    if (batch.targets[t] >= 0) log_p.push_back(scores.log_probability.data<float>()[t]);
  }
  return log_p;
}

void LanguageLearner::AddGradient(const LanguageBatch& batch, TransformerTrace& trace,
                                  const Tensor& rows, std::span<const double> d_log_p) {
  std::vector<float> by_row(batch.targets.size());
  size_t next = 0;
  for (size_t t = 0; t < batch.targets.size(); ++t) {
    if (batch.targets[t] >= 0) by_row[t] = static_cast<float>(d_log_p[next++]);
  }
  Tensor d_final;
  ScoreTokens(
      context_, *model_, rows, batch.targets, {},
      [&](const HeadBlock& block) {
        for (size_t i = 0; i < block.rows.size(); ++i) {
          block.d_log_probability[i] = by_row[block.rows[i]];
        }
      },
      &d_final);
  model_->Backward(context_, batch.view(), trace, d_final);
}

double LanguageLearner::learning_rate() const {
  const auto step = static_cast<double>(env_steps() + 1);
  if (config_.warmup_steps == 0) return config_.learning_rate;
  return config_.learning_rate * std::min(1.0, step / static_cast<double>(config_.warmup_steps));
}

double LanguageLearner::Minimise(weft::Ports& ports) {
  ports.AllReduce(gradients_);
  const double norm = optimizer_->Step(
      gradients_, learning_rate(),
      config_.max_gradient_norm > 0 ? config_.max_gradient_norm : Optimizer::kNoClip);
  for (Tensor& gradient : gradients_) gradient.Fill(0);
  model_->Refresh(context_);
  return norm;
}

void LanguageLearner::LoadPolicy(const TensorMap& policy) {
  LoadState(parameters_, policy);
  model_->Refresh(context_);
}

TensorMap LanguageLearner::SaveRest() const {
  TensorMap state;
  state.Merge("optimizer", optimizer_->Save());
  return state;
}

void LanguageLearner::LoadRest(const TensorMap& state) {
  optimizer_->Load(state.Extract("optimizer"));
}

}  // namespace weft
