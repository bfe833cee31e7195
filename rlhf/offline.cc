#include "rlhf/offline.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/file.h"
#include "base/log.h"
#include "language/model_name.h"
#include "rlhf/reference_model.h"

namespace weft {
namespace {

// Adds the log-probabilities of the model that training starts from. Those of an example are
// computed once.
class Reference final : public Fragment {
 public:
  Reference(const OfflineTraining& config, const Replica& replica, bool mismatched)
      : context_(replica.context),
        tokens_(config.micro_batch_tokens),
        mismatched_(mismatched),
        reference_(context_, ResolveModel(config.model), config.precision_in_use(),
                   config.shares_base()) {}

  PortSet Needs() const override { return reference_.needs(); }
  void Step(Ports& ports) override {
    const Message message = ports.Read(ReferenceModel::kSamples);
    reference_.Begin(ports);
    DataStep step = DataStep::FromMap(message.body);
    Add(step.train);
    if (step.evaluation.count() > 0) Add(step.evaluation);
    reference_.End();
    ports.Write(0, {.body = step.ToMap(), .version = message.version});
  }

 private:
  void Add(Examples& examples) {
    Examples missing;
    const std::vector<int64_t>& numbers = examples.number;
    for (size_t e = 0; e < numbers.size(); ++e) {
      if (!known_.contains(numbers[e])) missing.Append(examples, static_cast<int64_t>(e));
    }
    const std::vector<double> found =
        SequenceLogProbabilities(context_, reference_.model(), missing, tokens_);
    for (size_t e = 0; e < missing.number.size(); ++e) {
      const auto begin = found.begin() + static_cast<std::ptrdiff_t>(e) * missing.width;
      known_[missing.number[e]].assign(begin, begin + missing.width);
    }
    examples.reference.clear();
    for (const int64_t number : numbers) {
      const std::vector<double>& known = known_.at(number);
      examples.reference.insert(examples.reference.end(), known.begin(), known.end());
    }
    if (mismatched_) {
      examples.mismatched_reference =
          SequenceLogProbabilities(context_, reference_.model(), Mismatched(examples), tokens_);
    }
  }

  const Context context_;
  const int64_t tokens_;
  const bool mismatched_;
  ReferenceModel reference_;
  std::unordered_map<int64_t, std::vector<double>> known_;  // by the example's number
};

}  // namespace

void OfflineTraining::Fields(FieldVisitor& v) {
  LanguageTraining::Fields(v);
  DataFields(v);
  v.Field("batch", batch, "examples of a step", Range::Between(1, 1 << 20));
  v.Field("evaluate_every", evaluate_every,
          "steps between evaluations; 0: before the first and after the last", Range::AtLeast(0));
}

void OfflineTraining::DataFields(FieldVisitor& v) {
  v.Section("data", data, "what is learnt from");
}

FragmentFactory OfflineTraining::MakeData() const {
  return DataFragment({.data = data,
                       .examples = ExamplesWanted(),
                       .batch = batch,
                       .total_steps = total_steps,
                       .evaluate_every = evaluate_every});
}

ExampleSource OfflineTraining::Look() const {
  ExampleOptions options = ExamplesWanted();
  options.quiet = true;
  return {data, options};
}

Examples OfflineTraining::HeldOut() const {
  return Look().evaluation();
}

int64_t OfflineTraining::LargestMicroBatch() const {
  constexpr int64_t kSteps = 50;
  ExampleSource source = Look();
  int64_t largest = 0;
  for (int64_t step = 0; step < std::min(kSteps, total_steps); ++step) {
    const Examples examples = source.Next(batch);
    ForMicroBatches(examples, micro_batch_tokens, [&](int64_t begin, int64_t end) {
      largest = std::max(largest, BatchOf(examples, begin, end).tokens());
    });
  }
  return largest;
}

std::vector<LanguageMethod::Figure> OfflineTraining::Compare(const Context&, const Examples&,
                                                             Transformer&, Transformer&) const {
  return {};
}

void OfflineTraining::WriteBest(const Context&, Transformer&, const Examples&,
                                const TensorMap& policy, const std::string& folder) const {
  WriteModel(policy, folder, "best");
}

void OfflineTraining::Check() const {
  if (model.empty()) throw ConfigProblem("model", "name the model to begin with");
}

void OfflineTraining::Build(FragmentGraph& graph) const {
  graph.Add("data", 1, MakeData(), Role::kWorker);
  PortList ports = Learner::Ports("batch");
  for (Port& port : ports.outputs) port.optional = true;
  graph.Add("learner", 1, {.ports = ports, .make = [this](const Replica& replica) {
                             return MakeLearner(replica);
                           }});
  if (!needs_reference()) {
    graph.Connect("data.batch", "learner.batch", Rows());
    return;
  }
  PortList reference = {.inputs = {{.name = "unscored"}}, .outputs = {{.name = "batch"}}};
  ReferenceModel::AddPort(shares_base(), reference);
  graph.Add("reference", 1,
            {.ports = reference,
             .make =
                 [this](const Replica& replica) {
                   return std::make_unique<Reference>(*this, replica, needs_mismatched());
                 }},
            Role::kWorker);
  graph.Connect("data.batch", "reference.unscored", Rows());
  graph.Connect("reference.batch", "learner.batch", Rows());
  if (shares_base()) {
    graph.Connect("learner.parameters", "reference.parameters", Broadcast(/*max_lag=*/0));
  }
}

std::vector<LanguageMethod::Figure> OfflineTraining::Finish(const TensorMap& policy,
                                                            const std::string& folder) const {
  std::vector<Figure> figures = Judged(policy);
  WriteModel(policy, folder);
  return figures;
}

std::vector<LanguageMethod::Figure> OfflineTraining::Judged(const TensorMap& policy) const {
  ThreadPool pool(ThreadBudget());
  const Context context{.pool = &pool};
  const ContextScope scope(context);
  std::vector<Figure> figures;
  Examples held_out = HeldOut();
  const auto start = LoadStart(context, {.precision = precision_in_use(), .keep_quantised = false});
  const auto trained = Trained(context, policy, precision_in_use());
  if (held_out.count() > 0) {
    if (needs_reference()) {
      held_out.reference = SequenceLogProbabilities(context, *start, held_out, micro_batch_tokens);
    }
    if (needs_mismatched()) {
      held_out.mismatched_reference =
          SequenceLogProbabilities(context, *start, Mismatched(held_out), micro_batch_tokens);
    }
    for (const auto& [name, value] : Judge(context, *start, held_out)) {
      figures.push_back({"held_out_" + name + "_before", value});
    }
    for (const auto& [name, value] : Judge(context, *trained, held_out)) {
      figures.push_back({"held_out_" + name, value});
    }
  }
  for (const Figure& figure : Compare(context, held_out, *start, *trained)) {
    figures.push_back(figure);
  }
  return figures;
}

Learner::Learned OfflineLearner::Learn(const Message& message, weft::Ports& ports) {
  const DataStep step = DataStep::FromMap(message.body);
  if (step.evaluate_before) Evaluate(step.evaluation, ports);
  Improve(step.train, ports);
  const double rate = learning_rate();
  ports.Log("gradient_norm", Minimise(ports));
  ports.Log("learning_rate", rate);
  ports.Log("epochs", step.epochs);
  ports.Log("rows_skipped", step.skipped);
  trained_tokens_ += step.train.sequences.tokens();
  ports.Log("trained_tokens", static_cast<double>(trained_tokens_));
  if (step.evaluate_after) Evaluate(step.evaluation, ports);
  return {.env_steps = env_steps() + 1};
}

void OfflineLearner::Evaluate(const Examples& examples, weft::Ports& ports) {
  const std::vector<LanguageMethod::Figure> figures = config_.Judge(context(), model(), examples);
  for (const auto& [name, value] : figures) ports.Log("evaluation_" + name, value);
  const double loss = figures.front().value;
  if (!std::isfinite(loss)) {
    throw Error(ErrorCode::kDiverged, "the loss on the evaluation's rows is not finite");
  }
  if (loss >= best_loss_) return;
  best_loss_ = loss;
  const bool middle = env_steps() > 0 && config_.evaluate_every > 0;
  if (middle && !config_.run_folder.empty()) {
    config_.WriteBest(context(), model(), examples, CopyPolicy(), config_.run_folder);
  }
}

TensorMap OfflineLearner::SaveRest() const {
  TensorMap state = LanguageLearner::SaveRest();
  state.Set("best_loss", Tensor::Scalar(best_loss_, DType::kFloat64));
  state.Set("trained_tokens", Tensor::From<int64_t>({1}, {trained_tokens_}));
  return state;
}

void OfflineLearner::LoadRest(const TensorMap& state) {
  LanguageLearner::LoadRest(state);
  best_loss_ = state.At("best_loss").Item();
  trained_tokens_ = state.At("trained_tokens").data<int64_t>()[0];
}

void ForMicroBatches(const Examples& examples, int64_t tokens,
                     const std::function<void(int64_t begin, int64_t end)>& use) {
  const int64_t count = examples.sequences.count();
  for (int64_t begin = 0; begin < count;) {
    int64_t end = begin, together = 0;
    do {
      for (int64_t i = 0; i < examples.width; ++i) together += examples.sequences.length(end++);
    } while (end < count && together + examples.sequences.length(end) * examples.width <= tokens);
    use(begin, end);
    begin = end;
  }
}

LanguageBatch BatchOf(const Examples& examples, int64_t begin, int64_t end) {
  LanguageBatch batch;
  for (int64_t s = begin; s < end; s += examples.width) {
    const int64_t prompt = examples.PromptTokens(s);
    const auto first = examples.Ids(s).first(prompt);
    bool shared = examples.width > 1 && prompt > 0;
    std::vector<std::span<const int32_t>> answers;
    for (int64_t i = s; i < s + examples.width; ++i) {
      const auto ids = examples.Ids(i);
      shared = shared && examples.PromptTokens(i) == prompt &&
               examples.LearntTokens(i) == std::ssize(ids) - prompt &&
               std::ranges::equal(ids.first(prompt), first);
      if (shared) answers.push_back(ids.subspan(prompt));
    }
    if (shared) {
      batch.AddAnswers(first, answers);
    } else {
      for (int64_t i = s; i < s + examples.width; ++i) {
        batch.AddSequence(examples.Ids(i), examples.Learnt(i));
      }
    }
  }
  return batch;
}

std::vector<double> SequenceLogProbabilities(const Context& context, Transformer& model,
                                             const Examples& examples, int64_t micro_batch_tokens) {
  std::vector<double> sums(static_cast<size_t>(examples.sequences.count()), 0);
  ForMicroBatches(examples, micro_batch_tokens, [&](int64_t begin, int64_t end) {
    const LanguageBatch batch = BatchOf(examples, begin, end);
    const Tensor rows = model.Forward(context, batch.view(), nullptr);
    const TokenScores scores = ScoreTokens(context, model, rows, batch.targets, {});
    const auto log_p = scores.log_probability.data<float>();
    size_t row = 0;
    for (int64_t s = begin; s < end; ++s) {
      for (int64_t t = 0; t < examples.LearntTokens(s); ++row) {
        if (batch.targets[row] < 0) continue;
        sums[static_cast<size_t>(s)] += log_p[row];
        ++t;
      }
    }
  });
  return sums;
}

Examples Mismatched(const Examples& examples) {
  Examples result;
  const int64_t count = examples.count();
  for (int64_t i = 0; i < count; ++i) {
    const auto prompt = examples.Ids(i).first(examples.PromptTokens(i));
    const int64_t other = (i + 1) % count;
    const auto answer = examples.Ids(other).subspan(examples.PromptTokens(other));
    MarkedSequence sequence{.ids = {prompt.begin(), prompt.end()}, .learnt = {}};
    sequence.learnt.assign(prompt.size(), 0);
    sequence.ids.insert(sequence.ids.end(), answer.begin(), answer.end());
    sequence.learnt.insert(sequence.learnt.end(), answer.size(), 1);
    result.Add({.place = {}, .sequences = {std::move(sequence)}}, i);
  }
  return result;
}

}  // namespace weft
