#include "rlhf/rollout.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "base/log.h"
#include "language/language_head.h"
#include "rlhf/language_learner.h"
#include "rlhf/phase_timer.h"
#include "rlhf/reference_model.h"
#include "rlhf/reward_monitor.h"
#include "rlhf/speaker.h"

namespace weft {
namespace {

std::string Phase(const std::string& name, const Samples& samples) {
  return samples.evaluation ? "evaluation_" + name : name;
}

class Prompts final : public Fragment {
 public:
  explicit Prompts(const RolloutOptions& options)
      : options_(options), stream_(options.prompts_from, options.model, options.seed) {
    if (stream_.skipped() > 0) {
      LogWarn(std::to_string(stream_.skipped()) + " prompts are longer than " +
              std::to_string(options.prompts_from.max_prompt_tokens) + " tokens and left out");
    }
  }

  PortSet Needs() const override { return {}; }
  void Step(Ports& ports) override {
    const int64_t every = options_.evaluate_every;
    const bool evaluation = every > 0 && step_ % every == 0 && judged_ != step_;
    const std::vector<Prompt> prompts =
        evaluation ? stream_.held_out() : stream_.Next(options_.prompts);
    if (evaluation) {
      judged_ = step_;
    } else {
      ++step_;
    }
    Samples samples;
    samples.evaluation = evaluation;
    for (const Prompt& prompt : prompts) {
      samples.prompts.push_back(prompt.ids);
      samples.expected.push_back(prompt.expected);
    }
    ports.Write(0, {.body = samples.ToMap(), .version = step_});
  }
  TensorMap Save() const override {
    TensorMap state = stream_.Save();
    state.Set("step", Tensor::From<int64_t>({2}, {step_, judged_}));
    return state;
  }
  void Load(const TensorMap& state) override {
    stream_.Load(state);
    const auto steps = state.At("step").data<int64_t>();
    step_ = steps[0];
    if (steps.size() > 1) judged_ = steps[1];
  }

 private:
  const RolloutOptions options_;
  PromptStream stream_;
  int64_t step_ = 0, judged_ = -1;  // judged: the step before which the last evaluation was
};

class GeneratorStep final : public Fragment {
 public:
  GeneratorStep(const RolloutOptions& options, const Replica& replica)
      : options_(options),
        context_(replica.context),
        speaker_({.model = options.model,
                  .task = options.prompts_from.task,
                  .episodes = options.episodes,
                  .max_new_tokens = options.max_new_tokens,
                  .max_rows = options.prompts * options.group,
                  .sampling = options.sampling}),
        model_(speaker_.file().config(), options.precision) {}

  PortSet Needs() const override { return {0, 1}; }
  void Step(Ports& ports) override {
    const Message prompts = ports.Read(0);
    Message parameters = ports.Read(1);
    Samples samples = Samples::FromMap(prompts.body);
    PhaseTimer timer(Phase("generate", samples), ports);
    model_.Adopt(std::exchange(parameters.body, {}));
    samples.group = samples.evaluation ? options_.evaluation_samples : options_.group;
    samples.version = parameters.version;
    samples.seed = options_.seed;
    samples.first_sample = samples.evaluation ? kEvaluationStreams + samples.group : spoken_;
    speaker_.Speak(context_, model_, samples);
    if (!samples.evaluation) spoken_ += samples.texts.count();
    timer.AddTokens(samples.responses.tokens());
    model_.LetGo();  // before the samples leave: the learner may then write in place
    ports.Write(0, {.body = samples.ToMap(), .version = parameters.version});
  }
  TensorMap Save() const override {
    TensorMap state;
    state.Set("spoken", Tensor::From<int64_t>({1}, {spoken_}));
    return state;
  }
  void Load(const TensorMap& state) override { spoken_ = state.At("spoken").data<int64_t>()[0]; }

 private:
  const RolloutOptions options_;
  const Context context_;
  const Speaker speaker_;
  Transformer model_;
  int64_t spoken_ = 0;  // answers so far: the streams of their draws
};

class Reference final : public Fragment {
 public:
  Reference(const RolloutOptions& options, bool shares_base, const Replica& replica)
      : options_(options),
        context_(replica.context),
        reference_(context_, options.model, options.precision, shares_base) {}

  PortSet Needs() const override { return reference_.needs(); }
  void Step(Ports& ports) override {
    const Message message = ports.Read(ReferenceModel::kSamples);
    reference_.Begin(ports);
    Samples samples = Samples::FromMap(message.body);
    PhaseTimer timer(Phase("reference", samples), ports);
    samples.reference_log_p =
        AnswerLogProbabilities(context_, reference_.model(), samples, options_.micro_batch_tokens,
                               options_.sampling.temperature);
    timer.AddTokens(samples.responses.tokens());
    reference_.End();
    ports.Write(0, {.body = samples.ToMap(), .version = message.version});
  }

 private:
  const RolloutOptions options_;
  const Context context_;
  ReferenceModel reference_;
};

class Scorer final : public Fragment {
 public:
  Scorer(const RolloutOptions& options, RewardSum reward, const Replica& replica)
      : options_(options),
        context_(replica.context),
        tokenizer_(LoadTokenizerOf(*ModelFile::Open(options.model))),
        reward_(std::move(reward)),
        watching_(reward_.watching()),
        monitor_(watching_) {}

  PortSet Needs() const override { return {0}; }
  void Step(Ports& ports) override {
    const Message message = ports.Read(0);
    Samples samples = Samples::FromMap(message.body);
    const PhaseTimer timer(Phase("reward", samples), ports);
    const std::vector<ScoredAnswer> answers = ScoredAnswers(samples, tokenizer_);
    std::vector<RewardSum::Part> parts;
    samples.reward = reward_.Score(context_, answers, &parts);
    if (!samples.evaluation) Watch(samples, answers, parts, ports);
    ports.Write(0, {.body = samples.ToMap(), .version = message.version});
  }
  TensorMap Save() const override {
    TensorMap state;
    state.Set("step", Tensor::From<int64_t>({1}, {step_}));
    state.Merge("monitor", monitor_.Save());
    return state;
  }
  void Load(const TensorMap& state) override {
    step_ = state.At("step").data<int64_t>()[0];
    monitor_.Load(state.Extract("monitor"));
  }

 private:
  void Watch(const Samples& samples, std::span<const ScoredAnswer> answers,
             std::span<const RewardSum::Part> parts, Ports& ports) {
    std::vector<double> watched;
    for (const RewardSum::Part& part : parts) {
      if (parts.size() > 1) ports.Log("reward_" + part.name, part.mean());
      if (std::ranges::find(watching_, part.name) != watching_.end())
        watched.push_back(part.mean());
    }
    const std::string warning =
        monitor_.Add(RewardSum::Part{.name = {}, .score = samples.reward}.mean(), watched);
    if (!warning.empty()) LogWarn(warning);
    if (options_.show_every > 0 && step_ % options_.show_every == 0) {
      LogInfo("reward " + std::to_string(samples.reward[0]) + ": " + answers[0].answer);
    }
    ++step_;
  }

  const RolloutOptions options_;
  const Context context_;
  const Tokenizer tokenizer_;
  RewardSum reward_;
  const std::vector<std::string> watching_;
  RewardMonitor monitor_;
  int64_t step_ = 0;
};

PortList FromSamplesTo(const char* input) {
  return {.inputs = {{.name = input}}, .outputs = {{.name = "samples"}}};
}

}  // namespace

FragmentFactory PromptSource(const RolloutOptions& options) {
  return {.ports = {.inputs = {}, .outputs = {{.name = "prompts"}}},
          .make = [options](const Replica&) { return std::make_unique<Prompts>(options); }};
}

FragmentFactory GeneratorFragment(const RolloutOptions& options) {
  return {.ports = {.inputs = {{.name = "prompts"}, {.name = "parameters"}},
                    .outputs = {{.name = "samples"}}},
          .make = [options](const Replica& replica) {
            return std::make_unique<GeneratorStep>(options, replica);
          }};
}

FragmentFactory ReferenceFragment(const RolloutOptions& options, bool shares_base) {
  PortList ports = FromSamplesTo("samples");
  ReferenceModel::AddPort(shares_base, ports);
  return {.ports = ports, .make = [options, shares_base](const Replica& replica) {
            return std::make_unique<Reference>(options, shares_base, replica);
          }};
}

FragmentFactory ScorerFragment(const RolloutOptions& options, std::function<RewardSum()> reward) {
  return {.ports = FromSamplesTo("unscored"), .make = [options, reward](const Replica& replica) {
            return std::make_unique<Scorer>(options, reward(), replica);
          }};
}

std::vector<ScoredAnswer> ScoredAnswers(const Samples& samples, const Tokenizer& tokenizer) {
  std::vector<ScoredAnswer> answers;
  for (int64_t i = 0; i < samples.texts.count(); ++i) {
    const auto ids = samples.texts.Of(std::span<const int32_t>(samples.ids), i);
    const auto [begin, end] = samples.TurnsOf(i).back();
    const bool finished = samples.finished[i] != 0;
    std::vector<int32_t> before = samples.prompts[i / samples.group];
    before.insert(before.end(), ids.begin(), ids.begin() + begin);
    const auto turn = ids.subspan(begin, end - begin);
    std::string prompt = tokenizer.Decode(before, false);
    answers.push_back(
        {.prompt = std::move(prompt),
         .answer = tokenizer.Decode(turn.first(turn.size() - (finished ? 1 : 0)), true),
         .expected = samples.expected[i / samples.group],
         .finished = finished,
         .outcome = samples.outcome[i],
         .prompt_ids = std::move(before),
         .answer_ids = turn});
  }
  return answers;
}

std::vector<float> AnswerLogProbabilities(const Context& context, Transformer& model,
                                          const Samples& samples, int64_t tokens,
                                          double temperature) {
  std::vector<float> log_p;
  ForPrompts(samples, AllPrompts(samples), tokens, [&](std::span<const int64_t> prompts) {
    const LanguageBatch batch = BatchOf(samples, prompts);
    const Tensor rows = model.Forward(context, batch.view(), nullptr);
    const TokenScores scores = ScoreTokens(context, model, rows, batch.targets,
                                           {.temperature = static_cast<float>(temperature)});
    batch.ForWanted(
        [&](int64_t, int64_t row) { log_p.push_back(scores.log_probability.data<float>()[row]); });
  });
  return log_p;
}

}  // namespace weft
