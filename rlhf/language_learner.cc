#include "rlhf/language_learner.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numbers>

#include "base/file.h"
#include "base/log.h"
#include "language/generator.h"
#include "language/lora_files.h"
#include "language/model_name.h"
#include "language/model_writer.h"
#include "tensor/kernels.h"

namespace weft {

void LoraConfig::Fields(FieldVisitor& v) {
  v.Field("rank", rank, "columns of each adapter; 0: none, all weights are trained",
          Range::Between(0, 4096));
  v.Field("alpha", alpha, "adapters count alpha / rank times", Range::Positive());
  v.Field("targets", targets, "matrices that get one, by the ends of their names");
}

void MeanConfig::Fields(FieldVisitor& v) {
  v.Field("decay", decay, "share of it that an update leaves, below 1; 0: none is kept",
          Range{.low = 0, .high = 0.9999999});
}

void LanguageTraining::Fields(FieldVisitor& v) {
  LanguageMethod::Fields(v);
  v.Field("model", model, "folder, .gguf file or name of the model to begin with");
  v.Choice("precision", precision, {"bf16", "f32"},
           "of products; master weights and sums are f32 in both");
  v.Field("learning_rate", learning_rate, "step size of the optimiser", Range::Positive());
  v.Choice("schedule", schedule, {"constant", "linear", "cosine"},
           "of the learning rate from the end of the warm-up to the end of the run");
  v.Field("final_learning_rate", final_learning_rate, "where linear and cosine end",
          Range::AtLeast(0));
  v.Field("warmup_steps", warmup_steps, "steps in which it rises to that", Range::AtLeast(0));
  v.Field("max_gradient_norm", max_gradient_norm,
          "global norm above which gradients are scaled; 0: none", Range::AtLeast(0));
  v.Field("micro_batch_tokens", micro_batch_tokens,
          "tokens that go through the model together; a step's loss does not depend on it",
          Range::AtLeast(1));
  v.Field("recompute", recompute,
          "keep each layer's input alone for the way back (gradient checkpointing)");
  v.Choice("gguf", gguf, {"none", "q8_0", "bf16", "f16"}, "also leave a .gguf of this type");
  v.Section("lora", lora, "adapters instead of changed weights");
  v.Section("ema", ema, "a running mean of the weights, which is then what the run leaves");
  v.Section("optimizer", optimizer, "the optimiser");
}

LearnerOptions LanguageTraining::LearnerSettings() const {
  return {.total_steps = total_steps,
          .evaluation_every = total_steps + 1,
          .checkpoint_every = CheckpointEvery(),
          .checkpoint_min_seconds = checkpoint.min_seconds};
}

double LanguageTraining::LearningRate(int64_t step) const {
  if (step <= warmup_steps) {
    return learning_rate * static_cast<double>(step) / static_cast<double>(warmup_steps);
  }
  if (schedule == "constant") return learning_rate;
  const auto span = static_cast<double>(std::max<int64_t>(1, total_steps - warmup_steps));
  const double done = std::min(1.0, static_cast<double>(step - warmup_steps) / span);
  const double left = schedule == "linear" ? 1 - done : (1 + std::cos(std::numbers::pi * done)) / 2;
  return final_learning_rate + left * (learning_rate - final_learning_rate);
}

std::unique_ptr<Transformer> LanguageTraining::LoadStart(const Context& context,
                                                         const LoadOptions& options) const {
  return LoadTransformer(context, *ModelFile::Open(ResolveModel(model)), options);
}

ModelDescription LanguageTraining::Description() const {
  return ModelFile::Open(ResolveModel(model))->description();
}

TextFiles LanguageTraining::TokenizerFiles() const {
  const auto file = ModelFile::Open(ResolveModel(model));
  return file->gguf() == nullptr ? CopyTokenizerFiles(file->path())
                                 : MakeTokenizerFiles(*file->gguf(), file->config().context);
}

void LanguageTraining::AddAdapters(Transformer& trained) const {
  if (lora.rank == 0) return;
  Rng rng(seed, Purpose::kInitialise, 1);
  try {
    trained.AddAdapters(lora.rank, lora.scale(), lora.targets, rng);
  } catch (const Error& error) {
    throw Error(ErrorCode::kConfig, "lora.targets: " + error.message());
  }
}

TensorMap LanguageTraining::Result(const TensorMap& learner) const {
  return learner.Extract(ema.decay > 0 ? "learner.ema" : "policy");
}

std::unique_ptr<Transformer> LanguageTraining::Trained(const Context& context,
                                                       const TensorMap& policy,
                                                       Precision precision_of_use) const {
  if (lora.rank == 0) {
    auto trained = std::make_unique<Transformer>(Description().config, precision_of_use);
    trained->UseParameters(policy);
    trained->Refresh(context);
    return trained;
  }
  auto trained = LoadStart(context, {.precision = precision_of_use, .keep_master = true});
  AddAdapters(*trained);
  LoadState(trained->Parameters(), policy);
  trained->MergeAdapters(context);
  return trained;
}

namespace {

LoraAdapter AdapterOf(Transformer& model, const LoraConfig& lora, const std::string& base) {
  LoraAdapter adapter{.rank = lora.rank, .alpha = lora.alpha, .base_model = base, .matrices = {}};
  for (const Transformer::AdapterSlot& slot : model.Adapters()) {
    const Projection &a = slot.adapter->a, &b = slot.adapter->b;
    LoraMatrix& matrix = adapter.matrices.emplace_back();
    matrix.weight = slot.name + ".weight";
    matrix.in = a.in();
    matrix.out = b.out();
    matrix.a.resize(static_cast<size_t>(a.in() * a.out()));
    matrix.b.resize(static_cast<size_t>(b.in() * b.out()));
    a.GetRows(0, matrix.a);
    b.GetRows(0, matrix.b);
  }
  return adapter;
}

void WriteGguf(const std::string& folder, const std::string& path, const std::string& type) {
  const auto file = ModelFile::Open(folder);
  GgufWriteOptions options;
  options.type = FindWeightType(type)->type;
  options.name = "model";
  try {
    if (HasTokenizer(folder)) {
      options.tokenizer = MakeGgufTokenizer(folder, file->config().vocabulary);
      options.tokenizer_json = ReadFile(folder + "/tokenizer.json");
    }
    RemoveTree(path);
    WriteModelGguf(path, file->description(), file->weights(), options);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) throw;
    LogWarn("no " + path + ": " + error.message());
  }
}

}  // namespace

void LanguageTraining::WriteModel(const TensorMap& policy, const std::string& folder,
                                  const std::string& name) const {
  const std::string path = folder + "/" + name;
  const ModelDescription description = Description();
  if (lora.rank > 0) {
    const auto adapted = LoadStart({}, {.precision = Precision::kFloat32, .keep_master = true});
    AddAdapters(*adapted);
    LoadState(adapted->Parameters(), policy);
    RemoveTree(path + "_adapter");
    try {
      WriteLoraAdapter(path + "_adapter", AdapterOf(*adapted, lora, model), description.config);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidArgument) throw;
      LogWarn("no " + path + "_adapter: " + error.message());
    }
  }
  const auto trained = Trained({}, policy, Precision::kFloat32);
  std::vector<Transformer::WeightSlot> slots = trained->Weights();
  std::vector<StoredWeight> weights;
  for (const WeightSpec& spec : ModelWeights(description.config)) {
    const auto slot = std::ranges::find(slots, spec.name, &Transformer::WeightSlot::name);
    weights.emplace_back(spec, [slot](int64_t begin, int64_t end, float* out) {
      slot->get(begin, {out, static_cast<size_t>((end - begin) * slot->columns)});
    });
  }
  const std::string fresh = path + ".tmp";
  RemoveTree(fresh);
  WriteModelFolder(fresh, description, weights, WeightType::kBF16, TokenizerFiles());
  RemoveTree(path);  // of an earlier end of the run
  std::filesystem::rename(fresh, path);
  if (gguf != "none") WriteGguf(path, path + ".gguf", gguf);
}

void LanguageBatch::AddAnswers(std::span<const int32_t> prompt,
                               std::span<const std::span<const int32_t>> answers,
                               std::span<const std::span<const uint8_t>> learnt,
                               int64_t beginning) {
  const int64_t shared = std::ssize(prompt) - 1;
  int64_t parent = beginning > 0 ? 0 : -1;
  const auto add = [&](int32_t id, int64_t position, int32_t target) {
    ids.push_back(id);
    positions.push_back(static_cast<int32_t>(position));
    targets.push_back(target);
  };
  if (shared > beginning) {
    spans.push_back({.first_row = tokens(),
                     .rows = shared - beginning,
                     .past = beginning,
                     .pages = nullptr,
                     .parent = parent});
    parent = std::ssize(spans) - 1;
    for (int64_t t = beginning; t < shared; ++t) add(prompt[t], t, -1);
  }
  for (size_t i = 0; i < answers.size(); ++i) {
    const std::span<const int32_t> answer = answers[i];
    spans.push_back({.first_row = tokens(),
                     .rows = std::ssize(answer),
                     .past = shared,
                     .pages = nullptr,
                     .parent = parent});
    for (int64_t t = 0; t < std::ssize(answer); ++t) {
      const bool wanted = learnt.empty() || learnt[i][t] != 0;
      add(t == 0 ? prompt.back() : answer[t - 1], shared + t, wanted ? answer[t] : -1);
    }
  }
}

LanguageBatch BatchOf(const Samples& samples, std::span<const int64_t> prompts) {
  LanguageBatch batch;
  const int64_t beginning = CommonBeginning(samples, prompts);
  if (beginning > 0) {
    batch.AddSequence(std::span(samples.prompts[prompts[0]]).first(beginning), {});
  }
  for (const int64_t prompt : prompts) {
    std::vector<std::span<const int32_t>> answers;
    std::vector<std::span<const uint8_t>> said;
    for (int64_t i = prompt * samples.group; i < (prompt + 1) * samples.group; ++i) {
      answers.push_back(samples.texts.Of(std::span<const int32_t>(samples.ids), i));
      said.push_back(samples.texts.Of(std::span<const uint8_t>(samples.said), i));
    }
    batch.AddAnswers(samples.prompts[prompt], answers, said, beginning);
  }
  return batch;
}

void LanguageBatch::AddSequence(std::span<const int32_t> sequence,
                                std::span<const uint8_t> learnt) {
  const int64_t count = std::ssize(sequence) - (learnt.empty() ? 0 : 1);
  spans.push_back({.first_row = tokens(), .rows = count, .past = 0});
  for (int64_t t = 0; t < count; ++t) {
    const bool wanted = !learnt.empty() && learnt[t + 1] != 0;
    ids.push_back(sequence[t]);
    positions.push_back(static_cast<int32_t>(t));
    targets.push_back(wanted ? sequence[t + 1] : -1);
  }
}

std::vector<int64_t> LanguageBatch::AddBranches(
    std::span<const std::span<const int32_t>> sequences) {
  int64_t shared = std::ssize(sequences) > 1 ? std::ssize(sequences[0]) : 0;
  for (const auto& sequence : sequences) {
    WEFT_CHECK(!sequence.empty()) << "a sequence needs a token to be scored at";
    shared = std::min({shared, SharedBeginning(sequences[0], sequence), std::ssize(sequence) - 1});
  }
  const auto add = [&](std::span<const int32_t> tokens_of, int64_t past, int64_t parent) {
    spans.push_back({.first_row = tokens(),
                     .rows = std::ssize(tokens_of),
                     .past = past,
                     .pages = nullptr,
                     .parent = parent});
    for (const int32_t id : tokens_of) {
      positions.push_back(static_cast<int32_t>(past++));
      ids.push_back(id);
      targets.push_back(-1);
    }
  };
  const int64_t parent = shared > 0 ? std::ssize(spans) : -1;
  if (shared > 0) add(sequences[0].first(shared), 0, -1);
  std::vector<int64_t> last;
  for (const auto& sequence : sequences) {
    add(sequence.subspan(shared), shared, parent);
    last.push_back(tokens() - 1);
  }
  return last;
}

LanguageLearner::LanguageLearner(const LanguageTraining& config, const Replica& replica,
                                 double temperature)
    : Learner(config.LearnerSettings()),
      config_(config),
      context_(replica.context),
      head_{.temperature = static_cast<float>(temperature)},
      model_(config.LoadStart(context_, {.precision = config.precision_in_use(),
                                         .keep_quantised = false,
                                         .keep_master = config.lora.rank == 0})) {
  if (config.lora.rank > 0) {
    config.AddAdapters(*model_);
  } else {
    model_->EnableGradient();
  }
  model_->Refresh(context_);
  parameters_ = model_->Parameters();
  optimizer_ = std::make_unique<Optimizer>(config.optimizer, parameters_);
  if (config.ema.decay == 0) return;
  for (const NamedParameter& parameter : parameters_) mean_.push_back(parameter.tensor->Clone());
  for (size_t i = 0; i < mean_.size(); ++i) {
    named_mean_.push_back({.name = parameters_[i].name, .tensor = &mean_[i]});
  }
}

std::vector<float> LanguageLearner::LogProbabilities(const LanguageBatch& batch,
                                                     TransformerTrace* trace, Tensor* rows) {
  if (trace != nullptr) trace->recompute = config_.recompute;
  *rows = model_->Forward(context_, batch.view(), trace);
  const TokenScores scores = ScoreTokens(context_, *model_, *rows, batch.targets, head_);
  std::vector<float> log_p;
  for (int64_t t = 0; t < batch.tokens(); ++t) {
    if (batch.targets[t] >= 0) log_p.push_back(scores.log_probability.data<float>()[t]);
  }
  return log_p;
}

void LanguageLearner::AddGradient(const LanguageBatch& batch, TransformerTrace& trace,
                                  const Tensor& rows, std::span<const double> d_log_p,
                                  const Tensor* d_rows) {
  std::vector<float> by_row(batch.targets.size());
  size_t next = 0;
  for (size_t t = 0; t < batch.targets.size(); ++t) {
    if (batch.targets[t] >= 0) by_row[t] = static_cast<float>(d_log_p[next++]);
  }
  Tensor d_final;
  ScoreTokens(
      context_, *model_, rows, batch.targets, head_,
      [&](const HeadBlock& block) {
        for (size_t i = 0; i < block.rows.size(); ++i) {
          block.d_log_probability[i] = by_row[block.rows[i]];
        }
      },
      &d_final);
  if (d_rows != nullptr) {
    float* const sum = d_final.data<float>().data();
    kernels::BinaryForward(context_, Binary::kAdd, Broadcasting::kNone, 1, d_final.elements(), sum,
                           d_rows->data<float>().data(), sum);
  }
  model_->Backward(context_, batch.view(), trace, d_final);
}

double LanguageLearner::learning_rate() const {
  return config_.LearningRate(env_steps() + 1);
}

double LanguageLearner::Minimise(weft::Ports& ports) {
  std::vector<Tensor> gradients = model_->Gradients();
  ports.AllReduce(gradients);
  for (const NamedParameter& parameter : parameters_) HaveAlone(*parameter.tensor);
  const double norm = optimizer_->Step(
      gradients, learning_rate(),
      config_.max_gradient_norm > 0 ? config_.max_gradient_norm : Optimizer::kNoClip);
  model_->ClearGradients();
  if (!mean_.empty()) {
    for (Tensor& mean : mean_) HaveAlone(mean);
    LerpParameters(static_cast<float>(1 - config_.ema.decay), parameters_, named_mean_);
  }
  model_->Refresh(context_);
  return norm;
}

void LanguageLearner::LoadPolicy(const TensorMap& policy) {
  for (const NamedParameter& parameter : parameters_) HaveAlone(*parameter.tensor);
  LoadState(parameters_, policy);
  model_->Refresh(context_);
}

TensorMap LanguageLearner::SaveRest() const {
  TensorMap state;
  state.Merge("optimizer", optimizer_->Save());
  if (!mean_.empty()) state.Merge("ema", ShareState(named_mean_));
  return state;
}

void LanguageLearner::LoadRest(const TensorMap& state) {
  optimizer_->Load(state.Extract("optimizer"));
  if (mean_.empty()) return;
  const TensorMap mean = state.Extract("ema");
  if (mean.size() == 0) {
    throw Error(ErrorCode::kConfig,
                "ema.decay: the run that is resumed kept no mean of its weights; set it to 0");
  }
  for (Tensor& tensor : mean_) HaveAlone(tensor);
  LoadState(named_mean_, mean);
}

}  // namespace weft
