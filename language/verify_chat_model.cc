#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "language/chat_model.h"
#include "language/generator.h"
#include "language/json.h"
#include "language/language_head.h"
#include "language/recorded_batch.h"
#include "language/verify_model.h"
#include "nn/safetensors.h"

namespace weft {
namespace {

// One sequence from its beginning.
struct Sequence {
  std::vector<int32_t> ids, positions;
  kernels::AttentionSpan span;

  explicit Sequence(std::vector<int32_t> tokens) : ids(std::move(tokens)) {
    for (size_t i = 0; i < ids.size(); ++i) positions.push_back(static_cast<int32_t>(i));
    span = {0, std::ssize(ids), 0, nullptr};
  }
  TokenBatch tokens() const { return {.ids = ids, .positions = positions, .spans = {&span, 1}}; }
};

void CheckCase(const Context& context, Comparison& comparison, ChatModel& chat,
               const JsonValue& row) {
  const std::vector<double> want_ids = RecordedNumbers(row, "ids");
  const std::string& rendered = row.Find("rendered")->AsString();
  comparison.Check(
      "rendered",
      chat.chat_template->Render(*row.Find("messages"), {.add_generation_prompt = true}).text ==
          rendered,
      true, 0);
  const std::vector<int32_t> ids = chat.tokenizer.Encode(rendered);
  comparison.Check("ids", std::vector<double>(ids.begin(), ids.end()), want_ids, 0);

  const std::vector<double> greedy = RecordedNumbers(row, "greedy_ids");
  const std::vector<double> gaps = RecordedNumbers(row, "greedy_top2_gaps");
  GenerationRequest request{.prompt = ids, .max_new_tokens = std::ssize(greedy)};
  request.sampling.temperature = 0;
  const GeneratedAnswer answer = Generate(context, *chat.model, {&request, 1})[0][0];
  for (size_t t = 0; t < greedy.size(); ++t) {
    comparison.Check("greedy_ids", answer.ids[t], greedy[t], 0);
    if (gaps[t] < 2e-3) break;  // from here on either token is right
  }

  std::vector<int32_t> all = ids;
  for (const double id : greedy) all.push_back(static_cast<int32_t>(id));
  const Sequence sequence(all);
  const Tensor rows = chat.model->Forward(context, sequence.tokens(), nullptr);
  const int64_t last = std::ssize(ids) - 1;
  const Tensor logits = Logits(context, *chat.model, rows.Slice(last, last + 1));
  const std::vector<double> top = RecordedNumbers(row, "top20_ids"),
                            values = RecordedNumbers(row, "top20_logits");
  for (size_t i = 0; i < top.size(); ++i) {
    comparison.Check("logits", logits.data<float>()[static_cast<size_t>(top[i])], values[i], 1e-3);
  }
  std::vector<int32_t> next(all.begin() + 1, all.end());
  next.push_back(-1);
  const TokenScores scores = ScoreTokens(context, *chat.model, rows, next, {});
  const std::vector<double> log_p = RecordedNumbers(row, "logprob_of_token_1_to_end");
  for (size_t i = 0; i < log_p.size(); ++i) {
    comparison.Check("log_probabilities", scores.log_probability.data<float>()[i], log_p[i], 5e-4);
  }
}

void CheckHidden(const Context& context, Comparison& comparison, const ChatModel& chat,
                 const TensorMap& tensors, const std::string& name, int64_t last) {
  std::vector<int32_t> ids;
  for (const int64_t id : tensors.At(name + ".ids").data<int64_t>()) {
    ids.push_back(static_cast<int32_t>(id));
  }
  const Sequence sequence(ids);
  TransformerTrace trace;
  const Tensor rows = chat.model->Forward(context, sequence.tokens(), &trace);
  const auto check = [&](const std::string& what, const Tensor& got, const std::string& want,
                         double tolerance) {
    const auto expected = tensors.At(name + want).data<double>();
    const auto line = got.Row(got.dim(0) == 1 ? 0 : last);
    comparison.Check(what,
                     std::vector<double>(line.data<float>().begin(), line.data<float>().end()),
                     std::vector<double>(expected.begin(), expected.end()), tolerance);
  };
  for (int64_t layer = 0; layer <= chat.model->config().layers; ++layer) {
    const std::string want = ".hidden." + std::to_string(layer) + ".last_prompt_position";
    if (!tensors.Has(name + want)) continue;
    const bool final = layer == chat.model->config().layers;
    check("hidden", final ? rows : trace.layers[layer].x, want, 1e-3);
  }
  check("logits", Logits(context, *chat.model, rows.Slice(last, last + 1)), ".last_prompt_logits",
        1e-3);
}

// The mean loss of two chats, and the norm of each weight's gradient.
void CheckTrainingStep(const Context& context, Comparison& comparison, Transformer& model,
                       const std::string& folder) {
  const TensorMap step = ReadSafetensors(folder + "/train_step.safetensors");
  const JsonValue page = ReadJsonFile(folder + "/train_step.json");
  const RecordedBatch batch(step, "");
  model.EnableGradient();
  model.Refresh(context);
  TransformerTrace trace;
  const Tensor rows = model.Forward(context, batch.tokens(), &trace);
  Tensor d_final;
  const double loss = MeanLoss(context, model, rows, batch.Targets(), &d_final);
  comparison.Check("training loss", loss, RecordedNumber(page, "loss"), 1e-4);
  model.Backward(context, batch.tokens(), trace, d_final);
  PutGradientsInPlace(model);
  const JsonValue& norms = *page.Find("grad_norm_per_tensor");
  for (const Transformer::WeightSlot& slot : model.Weights()) {
    std::vector<float> gradient(slot.rows * slot.columns);
    slot.get(0, gradient);
    double square = 0;
    for (const float g : gradient) square += static_cast<double>(g) * g;
    const double want = RecordedNumber(norms, slot.name.c_str());
    comparison.Check("gradient norms", std::sqrt(square), want, 3e-3 * want);
    const std::string whole = "grad." + slot.name;
    if (!step.Has(whole)) continue;
    const auto expected = step.At(whole).data<float>();
    double difference = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      difference += std::pow(static_cast<double>(gradient[i]) - expected[i], 2);
    }
    comparison.Check("gradients", std::sqrt(difference), 0, 3e-3 * want);
  }
}

}  // namespace

VerifyReport VerifyChatModel(const Context& context, const std::string& model,
                             const std::string& folder) {
  Comparison comparison(folder);
  ChatModel chat =
      LoadChatModel(context, model, {.precision = Precision::kFloat32, .keep_master = true});
  const JsonValue page = ReadJsonFile(folder + "/expected.json");
  const TensorMap tensors = ReadSafetensors(folder + "/tensors.safetensors");
  int64_t number = 0;
  for (const JsonValue& row : page.Find("cases")->Items()) {
    CheckCase(context, comparison, chat, row);
    const std::string name = "case" + std::to_string(number++);
    if (!tensors.Has(name + ".ids")) continue;
    CheckHidden(context, comparison, chat, tensors, name, std::ssize(row.Find("ids")->Items()) - 1);
  }
  CheckTrainingStep(context, comparison, *chat.model, folder);
  return comparison.Report();
}

}  // namespace weft
