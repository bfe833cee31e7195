#include "rlhf/online.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/log.h"
#include "base/random.h"
#include "language/model_name.h"
#include "rlhf/answer_evaluation.h"
#include "rlhf/next_token.h"
#include "rlhf/phase_timer.h"
#include "rlhf/rollout.h"

namespace weft {

// ---- Config

void PtxConfig::Fields(FieldVisitor& v) {
  v.Field("coefficient", coefficient, "weight of it in the loss; 0: none", Range::AtLeast(0));
  v.Field("batch", batch, "rows of an update", Range::AtLeast(1));
  if (coefficient > 0) v.Section("data", data, "the rows");
}

void OnlineTraining::Fields(FieldVisitor& v) {
  LanguageTraining::Fields(v);
  v.Section("data", prompts_from, "the prompts");
  v.Section("episodes", episodes, "turns that a counterpart answers");
  v.Field("prompts", prompts, "prompts of a step", Range::Between(1, 4096));
  v.Field("group", group, "answers to each prompt", Range::Between(1, 1024));
  v.Field("max_new_tokens", max_new_tokens, "longest answer, or turn of one; 0: the task's",
          Range::AtLeast(0));
  v.Field("temperature", temperature, "of sampling, and of training alike", Range::Positive());
  rewards.Fields(v, "what answers are worth, a weighted sum; none: a right answer is worth 1");
  v.Field("epochs", epochs, "passes over a step's answers", Range::Between(1, 64));
  v.Field("minibatches", minibatches, "optimiser steps in each pass", Range::Between(1, 1024));
  v.Field("kl_stop", kl_stop,
          "the run ends when the policy is so many nats an answer from where it began; 0: never",
          Range::AtLeast(0));
  v.Field("evaluation_samples", evaluation_samples,
          "answers to each held-out prompt, before and after; 0: none", Range::Between(0, 64));
  v.Field("evaluate_every", evaluate_every,
          "steps between evaluations on the held-out prompts, the first before the first step; the "
          "best model stays in the run's folder; 0: none during the run",
          Range::AtLeast(0));
  v.Names("drift_files", drift_files,
          "JSONL rows whose perplexity to the start model and to the trained one is compared");
  v.Field(
      "resample_rounds", resample_rounds,
      "times that prompts whose answers are all worth the same give way to others before a step "
      "is made (DAPO's dynamic sampling); 0: none",
      Range::Between(0, 100));
  v.Field("max_lag", max_lag,
          "updates by which the parameters that answer are behind, exactly: with 1 the next "
          "answers are given while these are learnt from",
          Range::Between(0, 1));
  v.Section("ptx", ptx, "data that stay likely, a part of every update");
  v.Field("ledger", ledger, "keep every sample in samples.jsonl");
  v.Field("show_every", show_every, "steps between answers shown in the log; 0: none",
          Range::AtLeast(0));
  MethodFields(v);
}

void OnlineTraining::Check() const {
  if (model.empty()) throw ConfigProblem("model", "name the model to begin with");
  if (TurnTokens() == 0) {
    throw ConfigProblem("max_new_tokens", "say how long answers may be; no task does");
  }
  if (rewards.empty() && prompts_from.task.empty() && episodes.peer.empty()) {
    throw ConfigProblem("rewards", "say what answers are worth; no task does");
  }
  if (evaluate_every > 0 && evaluation_samples == 0) {
    throw ConfigProblem("evaluation_samples",
                        "evaluate_every asks for evaluations without answers");
  }
  if (evaluate_every > 0 && max_lag > 0) {
    throw ConfigProblem("evaluate_every",
                        "with max_lag: 1 the weights that answer are gone when they are judged; "
                        "leave one of the two 0");
  }
  if (prompts % minibatches != 0) {
    throw ConfigProblem("minibatches", "must divide prompts, " + std::to_string(prompts));
  }
}

int64_t OnlineTraining::TurnTokens() const {
  if (max_new_tokens > 0 || prompts_from.task.empty()) return max_new_tokens;
  return Task::MaxNewTokens(prompts_from.task);
}

int64_t OnlineTraining::AnswerTokens() const {
  return TurnTokens() * TurnsOf(episodes, prompts_from.task);
}

RewardSum OnlineTraining::MakeRewards() const {
  const RewardSetting setting{.policy = ResolveModel(model), .precision = precision_in_use()};
  if (!rewards.empty()) return {rewards, setting};
  RewardList right;
  right.Add(TurnsOf(episodes, prompts_from.task) > 1 ? "episode" : "exact");
  return {right, setting};
}

LearnerOptions OnlineTraining::LearnerSettings() const {
  LearnerOptions options = LanguageTraining::LearnerSettings();
  options.lag = max_lag;
  return options;
}

// ---- Graph

void OnlineTraining::Build(FragmentGraph& graph) const {
  rewards.Look();
  const RolloutOptions rollout{.model = ResolveModel(model),
                               .precision = precision_in_use(),
                               .prompts_from = prompts_from,
                               .episodes = episodes,
                               .seed = seed,
                               .prompts = prompts,
                               .group = group,
                               .evaluate_every = evaluate_every,
                               .evaluation_samples = evaluation_samples,
                               .max_new_tokens = TurnTokens(),
                               .micro_batch_tokens = micro_batch_tokens,
                               .show_every = show_every,
                               .sampling = {.temperature = temperature}};
  // A bad line stops here, before a run is made.
  const PromptStream stream(prompts_from, rollout.model, seed, rewards.comparing());
  if (evaluate_every > 0 && stream.held_out().empty()) {
    throw Error(ErrorCode::kConfig,
                "evaluate_every: there are no held-out prompts; see data.evaluation_files");
  }
  DriftRows(/*quiet=*/true);
  graph.Add("prompts", 1, PromptSource(rollout), Role::kWorker);
  graph.Add("generator", 1, GeneratorFragment(rollout), Role::kWorker);
  graph.Add("scorer", 1, ScorerFragment(rollout, [this] { return MakeRewards(); }), Role::kWorker);
  graph.Add("learner", 1,
            {.ports = Learner::Ports("samples"),
             .make = [this](const Replica& replica) { return MakeLearner(replica); }});
  graph.Connect("prompts.prompts", "generator.prompts", Rows());
  if (needs_reference()) {
    graph.Add("reference", 1, ReferenceFragment(rollout, shares_base()), Role::kWorker);
    graph.Connect("generator.samples", "reference.samples", Rows());
    graph.Connect("reference.samples", "scorer.unscored", Rows());
  } else {
    graph.Connect("generator.samples", "scorer.unscored", Rows());
  }
  graph.Connect("scorer.samples", "learner.samples", Rows());
  graph.Connect("learner.parameters", "generator.parameters", Broadcast(/*max_lag=*/0));
  if (needs_reference() && shares_base()) {
    graph.Connect("learner.parameters", "reference.parameters", Broadcast(/*max_lag=*/0));
  }
}

Examples OnlineTraining::DriftRows(bool quiet) const {
  if (drift_files.empty()) return {};
  DataConfig rows;
  rows.files = rows.evaluation_files = drift_files;
  return ExampleSource(rows, {.model = ResolveModel(model), .seed = seed, .quiet = quiet})
      .evaluation();
}

std::vector<LanguageMethod::Figure> OnlineTraining::Finish(const TensorMap& policy,
                                                           const std::string& folder) const {
  std::vector<Figure> figures;
  if (evaluation_samples > 0) {
    ThreadPool pool(ThreadBudget());
    const Context context{.pool = &pool};
    const ChatModel start = LoadChatModel(context, model, {.precision = precision_in_use()});
    const auto trained = Trained(context, policy, precision_in_use());
    const PromptStream stream(prompts_from, start.file->path(), seed);
    RewardSum reward = MakeRewards();
    const Speaker speaker({.model = start.file->path(),
                           .task = prompts_from.task,
                           .episodes = episodes,
                           .max_new_tokens = TurnTokens(),
                           .sampling = {.temperature = temperature}});
    const AnswerEvaluation evaluation{.context = context,
                                      .speaker = speaker,
                                      .prompts = stream.held_out(),
                                      .reward = reward,
                                      .seed = seed,
                                      .samples = evaluation_samples};
    figures = evaluation.Compare(*start.model, *trained);
    if (const Examples drift = DriftRows(/*quiet=*/false); drift.count() > 0) {
      const auto perplexity = [&](Transformer& judged) {
        return std::exp(JudgeNextToken(context, judged, drift, micro_batch_tokens)[0].value);
      };
      figures.push_back({"text_perplexity_before", perplexity(*start.model)});
      figures.push_back({"text_perplexity", perplexity(*trained)});
    }
  }
  WriteModel(policy, folder);
  return figures;
}

// ---- Learner

OnlineLearner::OnlineLearner(const OnlineTraining& config, const Replica& replica)
    : LanguageLearner(config, replica, config.temperature), config_(config) {
  if (config.ledger && !config.run_folder.empty()) {
    ledger_ = std::make_unique<Ledger>(config.run_folder, ResolveModel(config.model));
  }
  if (config.ptx.coefficient > 0) {
    ptx_ = std::make_unique<ExampleSource>(
        config.ptx.data, ExampleOptions{.model = ResolveModel(config.model), .seed = config.seed});
  }
}

void OnlineLearner::Evaluate(const Samples& samples, weft::Ports& ports) {
  const auto answers = static_cast<double>(samples.responses.count());
  const auto mean = [&](const auto& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / answers;
  };
  const double reward = mean(samples.reward);
  ports.Log("evaluation_reward", reward);
  ports.Log("evaluation_finished", mean(samples.finished));
  ports.Log("evaluation_answer_tokens", static_cast<double>(samples.responses.tokens()) / answers);
  if (!samples.reference_log_p.empty()) {
    ports.Log("evaluation_kl", mean(samples.log_p) - mean(samples.reference_log_p));
  }
  const bool best = reward > best_reward_;
  LogInfo("step " + std::to_string(env_steps()) + ": held-out reward " + std::to_string(reward) +
          (best && env_steps() > 0 ? ", the best so far" : ""));
  if (!best) return;
  best_reward_ = reward;
  if (env_steps() > 0 && !config_.run_folder.empty()) {
    config_.WriteModel(CopyPolicy(), config_.run_folder, "best");
  }
}

bool OnlineLearner::Collect(Samples& samples) {
  if (config_.resample_rounds == 0) return true;
  const bool last = rounds_ == config_.resample_rounds;
  for (int64_t p = 0; p < std::ssize(samples.prompts); ++p) {
    const bool full = std::ssize(collected_.prompts) == config_.prompts;
    const int64_t left = std::ssize(samples.prompts) - p;
    const bool must = last && std::ssize(collected_.prompts) + left <= config_.prompts;
    if (!full && (samples.Mixed(p) || must)) collected_.Append(samples, p);
  }
  ++rounds_;
  if (std::ssize(collected_.prompts) < config_.prompts) return false;
  rounds_ = 0;
  samples = std::move(collected_);
  collected_ = Samples();
  return true;
}

Learner::Learned OnlineLearner::Learn(const Message& message, weft::Ports& ports) {
  Lesson lesson{.samples = Samples::FromMap(message.body)};
  if (lesson.samples.evaluation) {
    Evaluate(lesson.samples, ports);
    return {.env_steps = env_steps()};
  }
  PhaseTimer timer("learn", ports);
  if (ledger_) ledger_->Add(env_steps(), lesson.samples);
  if (!Collect(lesson.samples)) return {.env_steps = env_steps()};
  const auto prompts = std::ssize(lesson.samples.prompts);
  lesson.teaches.assign(static_cast<size_t>(prompts), 1);
  Judge(lesson, ports);
  timer.AddTokens(config_.epochs * lesson.samples.responses.tokens());
  Totals totals;
  std::vector<int64_t> order = AllPrompts(lesson.samples);
  for (int64_t epoch = 0; epoch < config_.epochs; ++epoch) {
    if (config_.minibatches > 1) {
      Rng(config_.seed, Purpose::kLearner,
          static_cast<uint64_t>(env_steps() * config_.epochs + epoch))
          .Shuffle(order);
    }
    const int64_t each = prompts / config_.minibatches;
    for (int64_t begin = 0; begin < prompts; begin += each) {
      Update(lesson, {order.data() + begin, static_cast<size_t>(each)}, totals, ports);
    }
  }
  Report(lesson, totals, ports);
  return {.env_steps = env_steps() + 1};
}

// One optimiser step.
void OnlineLearner::Update(const Lesson& lesson, std::span<const int64_t> prompts, Totals& totals,
                           weft::Ports& ports) {
  const Samples& samples = lesson.samples;
  int64_t tokens = 0;
  std::vector<int64_t> teaching;
  for (const int64_t prompt : prompts) {
    tokens += samples.SaidTokensOf(prompt);
    if (lesson.teaches[prompt] != 0) teaching.push_back(prompt);
  }
  if (teaching.empty()) return;
  const int64_t answers = std::ssize(prompts) * samples.group;
  ForPrompts(samples, teaching, config_.micro_batch_tokens, [&](std::span<const int64_t> some) {
    Improve(lesson, some, answers, tokens, totals);
  });
  if (ptx_) {
    totals.ptx_loss += AddLikelihood(ptx_->Next(config_.ptx.batch), config_.ptx.coefficient);
  }
  totals.norm += Minimise(ports);
  OnUpdate(ports);
  ++totals.updates;
}

// Adds the gradient of some prompts' answers; answers and tokens are those of the minibatch.
void OnlineLearner::Improve(const Lesson& lesson, std::span<const int64_t> prompts, int64_t answers,
                            int64_t tokens, Totals& totals) {
  const Samples& samples = lesson.samples;
  LessonPart part{.answer_weight = 1 / static_cast<double>(answers)};
  const auto append = [](std::vector<double>& to, const auto& from, int64_t begin, int64_t end) {
    if (!from.empty()) to.insert(to.end(), from.begin() + begin, from.begin() + end);
  };
  for (const int64_t prompt : prompts) {
    for (int64_t i = prompt * samples.group; i < (prompt + 1) * samples.group; ++i) {
      const int64_t begin = samples.responses.offsets[i], end = samples.responses.offsets[i + 1];
      part.answers.push_back(i);
      part.responses.Add(end - begin);
      append(part.old_log_p, samples.log_p, begin, end);
      append(part.reference_log_p, samples.reference_log_p, begin, end);
      append(part.advantage, lesson.advantage, begin, end);
      append(part.returns, lesson.returns, begin, end);
      append(part.value, lesson.value, begin, end);
    }
  }
  part.weight =
      TokenWeights(part.responses, aggregation(), config_.AnswerTokens(), answers, tokens);

  const LanguageBatch batch = BatchOf(samples, prompts);
  TransformerTrace trace;
  Tensor rows, d_rows;
  const std::vector<float> log_p = LogProbabilities(batch, &trace, &rows);
  const LessonLoss loss = Loss(part, std::vector<double>(log_p.begin(), log_p.end()),
                               has_critic() ? Values(batch, rows) : std::vector<double>());
  if (has_critic()) AddValueGradient(batch, rows, loss.d_value, &d_rows);
  AddGradient(batch, trace, rows, loss.d_log_p, has_critic() ? &d_rows : nullptr);
  const auto count = static_cast<double>(part.responses.tokens());
  totals.loss += loss.loss;
  totals.clipped += loss.clipped;
  totals.approximate_kl += loss.approximate_kl * count;
  totals.tokens += count;
  if (totals.updates == 0)
    totals.max_log_ratio = std::max(totals.max_log_ratio, loss.max_log_ratio);
}

std::vector<double> OnlineLearner::ValuesOf(const Samples& samples) {
  std::vector<double> values;
  ForPrompts(samples, AllPrompts(samples), config_.micro_batch_tokens,
             [&](std::span<const int64_t> prompts) {
               const LanguageBatch batch = BatchOf(samples, prompts);
               const Tensor rows = model().Forward(context(), batch.view(), nullptr);
               const std::vector<double> part = Values(batch, rows);
               values.insert(values.end(), part.begin(), part.end());
             });
  return values;
}

void OnlineLearner::Report(const Lesson& lesson, const Totals& totals, weft::Ports& ports) {
  const Samples& samples = lesson.samples;
  const auto answers = static_cast<double>(samples.responses.count());
  const auto tokens = static_cast<double>(samples.responses.tokens());
  const auto updates = static_cast<double>(std::max<int64_t>(1, totals.updates));
  const double reward =
      std::accumulate(samples.reward.begin(), samples.reward.end(), 0.0) / answers;
  int64_t mixed = 0;
  for (int64_t p = 0; p < std::ssize(samples.prompts); ++p) mixed += samples.Mixed(p);
  double log_p = 0, kl = 0;
  for (const float x : samples.log_p) log_p += x;
  for (size_t t = 0; t < samples.reference_log_p.size(); ++t) {
    kl += static_cast<double>(samples.log_p[t]) - samples.reference_log_p[t];
  }
  kl /= answers;
  ports.Log("reward", reward);
  ports.Log("mixed_groups",
            static_cast<double>(mixed) / static_cast<double>(samples.prompts.size()));
  ports.Log("answer_tokens", tokens / answers);
  if (TurnsOf(config_.episodes, config_.prompts_from.task) > 1) {
    int64_t turns = 0;
    for (int64_t i = 0; i < samples.texts.count(); ++i) turns += std::ssize(samples.TurnsOf(i));
    ports.Log("turns", static_cast<double>(turns) / answers);
  }
  ports.Log("finished",
            std::accumulate(samples.finished.begin(), samples.finished.end(), 0.0) / answers);
  ports.Log("entropy", -log_p / tokens);  // estimated by the tokens that were drawn
  if (!samples.reference_log_p.empty()) {
    ports.Log("kl", kl);
    ports.Log("kl_token", kl * answers / tokens);
  }
  ports.Log("policy_loss", totals.loss / updates);
  if (ptx_) ports.Log("ptx_loss", totals.ptx_loss / updates);
  ports.Log("clip_fraction", totals.clipped / updates);
  ports.Log("approximate_kl", totals.tokens > 0 ? totals.approximate_kl / totals.tokens : 0);
  ports.Log("max_log_ratio", totals.max_log_ratio);
  ports.Log("lag", static_cast<double>(newest_version() - samples.version));
  ports.Log("gradient_norm", totals.norm / updates);
  ports.Log("learning_rate", learning_rate());
  unmixed_steps_ = mixed > 0 || samples.group == 1 ? 0 : unmixed_steps_ + 1;
  if (unmixed_steps_ == 10) {
    LogWarn(
        "for 10 steps no prompt had answers of different worth: nothing is learnt any more (mean "
        "reward " +
        std::to_string(reward) + "); the policy has settled or collapsed");
  }
  if (config_.kl_stop > 0 && kl > config_.kl_stop) {
    ports.Stop("the policy is " + std::to_string(kl) +
               " nats an answer from where it began, above kl_stop");
  }
}

TensorMap OnlineLearner::SaveRest() const {
  TensorMap state = LanguageLearner::SaveRest();
  state.Set("online", Tensor::From<int64_t>({2}, {unmixed_steps_, rounds_}));
  state.Set("best_reward", Tensor::Scalar(best_reward_, DType::kFloat64));
  state.Merge("collected", collected_.ToMap());
  if (ptx_) state.Merge("ptx", ptx_->Save());
  return state;
}

void OnlineLearner::LoadRest(const TensorMap& state) {
  LanguageLearner::LoadRest(state);
  unmixed_steps_ = state.At("online").data<int64_t>()[0];
  rounds_ = state.At("online").data<int64_t>()[1];
  if (state.Has("best_reward")) best_reward_ = state.At("best_reward").Item();
  collected_ = Samples::FromMap(state.Extract("collected"));
  if (ptx_) ptx_->Load(state.Extract("ptx"));
}

}  // namespace weft
