#include "rlhf/rollout.h"

#include <cmath>
#include <memory>
#include <vector>

#include "language/generator.h"
#include "rlhf/samples.h"
#include "rlhf/tasks.h"

namespace weft {
namespace {

// What all three need of a model's files, without its weights.
struct Speech {
  std::unique_ptr<ModelFile> file;
  Tokenizer tokenizer;
  std::optional<ChatTemplate> chat_template;
  std::vector<int32_t> stop_ids;

  explicit Speech(const std::string& path)
      : file(ModelFile::Open(path)),
        tokenizer(LoadTokenizerOf(*file)),
        chat_template(LoadTemplateOf(*file)),
        stop_ids(StopIds(*file, tokenizer)) {
    if (!chat_template) {
      throw Error(ErrorCode::kConfig, "model: " + path + " has no chat template to ask it with");
    }
  }
  std::vector<int32_t> Encode(const JsonValue& messages) const {
    return tokenizer.Encode(chat_template->Render(messages, {.add_generation_prompt = true}).text);
  }
};

class Prompts final : public Fragment {
 public:
  explicit Prompts(const RolloutOptions& options)
      : options_(options),
        task_(options.task),
        speech_(options.model),
        stream_(Task::Stream(options.seed)) {}

  PortSet Needs() const override { return {}; }
  void Step(Ports& ports) override {
    Samples samples;
    for (const TaskPrompt& prompt : task_.Training(stream_, options_.prompts)) {
      samples.prompts.push_back(speech_.Encode(prompt.messages));
      samples.expected.push_back(prompt.expected);
    }
    ports.Write(0, {.body = samples.ToMap(), .version = ++step_});
  }
  TensorMap Save() const override {
    TensorMap state;
    state.Set("stream", Tensor::From<int64_t>({2}, {static_cast<int64_t>(stream_.state()), step_}));
    return state;
  }
  void Load(const TensorMap& state) override {
    const auto values = state.At("stream").data<int64_t>();
    stream_ = SplitMix64(static_cast<uint64_t>(values[0]));
    step_ = values[1];
  }

 private:
  const RolloutOptions options_;
  const Task task_;
  const Speech speech_;
  SplitMix64 stream_;
  int64_t step_ = 0;
};

class GeneratorStep final : public Fragment {
 public:
  GeneratorStep(const RolloutOptions& options, const Replica& replica)
      : options_(options),
        context_(replica.context),
        speech_(options.model),
        model_(speech_.file->config(), options.precision) {}

  PortSet Needs() const override { return {0, 1}; }
  void Step(Ports& ports) override {
    const Message prompts = ports.Read(0), parameters = ports.Read(1);
    model_.Adopt(parameters.body);
    Samples samples = Samples::FromMap(prompts.body);
    samples.group = options_.group;
    std::vector<GenerationRequest> requests;
    for (const auto& prompt : samples.prompts) {
      GenerationRequest& request = requests.emplace_back();
      request.prompt = prompt;
      request.samples = options_.group;
      request.max_new_tokens = options_.max_new_tokens;
      request.stop_ids = speech_.stop_ids;
      request.sampling = options_.sampling;
      request.seed = options_.seed;
      request.first_sample = static_cast<uint64_t>(spoken_);
      spoken_ += options_.group;
    }
    const auto answers =
        Generate(context_, model_, requests,
                 {.max_rows = options_.prompts * options_.group, .max_prompt_tokens = 4096});
    for (const auto& group : answers) {
      for (const GeneratedAnswer& answer : group) {
        samples.ids.insert(samples.ids.end(), answer.ids.begin(), answer.ids.end());
        samples.log_p.insert(samples.log_p.end(), answer.log_probabilities.begin(),
                             answer.log_probabilities.end());
        samples.responses.Add(std::ssize(answer.ids));
        samples.finished.push_back(answer.finish == FinishReason::kStop);
      }
    }
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
  const Speech speech_;
  Transformer model_;
  int64_t spoken_ = 0;  // answers so far: the streams of their draws
};

// The text of an answer without the token that ended it.
std::string AnswerOf(const Tokenizer& tokenizer, std::span<const int32_t> ids, bool finished) {
  return tokenizer.Decode(ids.first(ids.size() - (finished ? 1 : 0)), true);
}

class Scorer final : public Fragment {
 public:
  explicit Scorer(const RolloutOptions& options) : speech_(options.model) {}

  PortSet Needs() const override { return {0}; }
  void Step(Ports& ports) override {
    Message message = ports.Read(0);
    Samples samples = Samples::FromMap(message.body);
    for (int64_t i = 0; i < samples.responses.count(); ++i) {
      const bool finished = samples.finished[i] != 0;
      const std::string answer =
          AnswerOf(speech_.tokenizer,
                   samples.responses.Of(std::span<const int32_t>(samples.ids), i), finished);
      samples.reward.push_back(
          Task::Correct(answer, samples.expected[i / samples.group], finished));
    }
    ports.Write(0, {.body = samples.ToMap(), .version = message.version});
  }

 private:
  const Speech speech_;
};

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

FragmentFactory TaskScorer(const RolloutOptions& options) {
  return {.ports = {.inputs = {{.name = "unscored"}}, .outputs = {{.name = "samples"}}},
          .make = [options](const Replica&) { return std::make_unique<Scorer>(options); }};
}

TaskAccuracy EvaluateTask(const Context& context, const ChatModel& chat, const Transformer& model,
                          const std::string& name, uint64_t seed, int64_t samples) {
  const Task task(name);
  std::vector<GenerationRequest> requests;
  for (const TaskPrompt& prompt : task.held_out()) {
    GenerationRequest& request = requests.emplace_back();
    request.prompt = chat.Encode(prompt.messages);
    request.samples = samples;
    request.max_new_tokens = task.max_new_tokens();
    request.stop_ids = chat.stop_ids;
    request.seed = seed;
    request.first_sample = (uint64_t{1} << 32) + requests.size() * static_cast<uint64_t>(samples);
  }
  const auto answers =
      Generate(context, model, requests, {.max_rows = 128, .max_prompt_tokens = 4096});
  TaskAccuracy accuracy;
  const auto prompts = static_cast<double>(answers.size());
  std::vector<double> shares;
  for (size_t i = 0; i < answers.size(); ++i) {
    double right = 0;
    for (const GeneratedAnswer& answer : answers[i]) {
      const bool finished = answer.finish == FinishReason::kStop;
      accuracy.finished += finished / (prompts * static_cast<double>(samples));
      right += Task::Correct(AnswerOf(chat.tokenizer, answer.ids, finished),
                             task.held_out()[i].expected, finished);
    }
    shares.push_back(right / static_cast<double>(samples));
    accuracy.mean += shares.back() / prompts;
  }
  double squares = 0;
  for (const double share : shares) squares += (share - accuracy.mean) * (share - accuracy.mean);
  accuracy.error = std::sqrt(squares / (prompts - 1) / prompts);
  return accuracy;
}

}  // namespace weft
