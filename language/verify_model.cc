#include "language/verify_model.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "language/generator.h"
#include "language/json.h"
#include "language/language_head.h"
#include "language/language_model.h"
#include "language/lora_files.h"
#include "language/model_name.h"
#include "language/recorded_batch.h"
#include "language/stored_tensors.h"
#include "nn/safetensors.h"

namespace weft {
namespace {

using kernels::AttentionSpan;

std::vector<double> Doubles(const Tensor& tensor) {
  if (tensor.dtype() == DType::kFloat64) {
    return {tensor.data<double>().begin(), tensor.data<double>().end()};
  }
  return {tensor.data<float>().begin(), tensor.data<float>().end()};
}
std::vector<double> Doubles(std::span<const float> values) {
  return {values.begin(), values.end()};
}

// Compares rows [T, C] with those of a recorded [B, T, C].
void CheckRows(Comparison& comparison, const std::string& name, const RecordedBatch& batch,
               const Tensor& got, const Tensor& want, double tolerance) {
  const int64_t columns = got.dim(1);
  for (size_t i = 0; i < batch.place.size(); ++i) {
    comparison.Check(name, Doubles(got.data<float>().subspan(i * columns, columns)),
                     Doubles(want.data<float>().subspan(batch.place[i] * columns, columns)),
                     tolerance);
  }
}

// Recorded [B, T - 1], entry t of what comes after token t.
void CheckTokens(Comparison& comparison, const std::string& name, const RecordedBatch& batch,
                 const Tensor& got, const Tensor& want) {
  const std::vector<int32_t> next = batch.Next();
  for (size_t i = 0; i < next.size(); ++i) {
    if (next[i] < 0) continue;
    const int64_t row = batch.place[i] / batch.columns, column = batch.place[i] % batch.columns;
    comparison.Check(name, got.data<float>()[i],
                     want.data<float>()[row * (batch.columns - 1) + column], 1e-4);
  }
}

std::vector<StoredWeight> ReadGradients(const ModelFile& file, const MappedFile& mapped,
                                        const std::string& path) {
  const SafetensorsHeader header = ParseSafetensorsHeader(mapped.bytes(), path);
  std::vector<FoundTensor> found;
  for (const SafetensorsEntry& entry : header.entries) {
    const auto dims = entry.shape.dims();
    // Gradients come under the module's name, which differs from the file's in one family.
    const bool renamed = entry.name == "lm_head.weight" && file.config().family == "gpt_neox";
    found.push_back({.name = renamed ? "embed_out.weight" : entry.name,
                     .shape = {dims.begin(), dims.end()},
                     .type = WeightType::kF32,
                     .bytes = mapped.bytes().subspan(header.data_begin + entry.begin,
                                                     entry.end - entry.begin)});
  }
  return JoinWeights(file.config(), FileFormat::kHuggingFace, std::move(found), {}, path);
}

void CheckGradient(Comparison& comparison, std::span<const float> got,
                   std::span<const float> expected) {
  double largest = 0;
  for (const float value : expected) largest = std::max<double>(largest, std::fabs(value));
  comparison.Check("gradients", Doubles(got), Doubles(expected), std::max(1e-6, 5e-5 * largest));
}

void CheckGradients(Comparison& comparison, Transformer& model, const ModelFile& file,
                    const std::string& path) {
  const MappedFile mapped(path);
  PutGradientsInPlace(model);
  const std::vector<StoredWeight> want = ReadGradients(file, mapped, path);
  for (const Transformer::WeightSlot& slot : model.Weights()) {
    const auto found = std::ranges::find(want, slot.name, &StoredWeight::name);
    const std::vector<float> expected = found->Read();
    std::vector<float> got(expected.size());
    slot.get(0, got);
    CheckGradient(comparison, got, expected);
  }
}

struct Opened {
  std::unique_ptr<ModelFile> file;
  std::unique_ptr<Transformer> model;
};
Opened OpenInFloat32(const Context& context, const std::string& path) {
  Opened opened;
  opened.file = ModelFile::Open(path);
  opened.model = LoadTransformer(context, *opened.file,
                                 {.precision = Precision::kFloat32, .keep_master = true});
  return opened;
}

void CheckScores(Comparison& comparison, const RecordedBatch& batch, const Tensor& scores,
                 const TensorMap& recording) {
  CheckRows(comparison, "value_per_token", batch, scores,
            recording.At("value_per_token")
                .Reshape({recording.At("value_per_token").dim(0), batch.columns, 1}),
            1e-4);
  std::vector<double> last;
  for (const AttentionSpan& span : batch.spans) {
    last.push_back(scores.data<float>()[span.first_row + span.rows - 1]);
  }
  comparison.Check("score", last, Doubles(recording.At("score")), 1e-4);
}

void CheckGreedy(const Context& context, Comparison& comparison, const Transformer& model,
                 const RecordedBatch& batch, const TensorMap& recording) {
  const Tensor want = recording.At("greedy_ids");
  std::vector<GenerationRequest> requests;
  for (const AttentionSpan& span : batch.spans) {
    GenerationRequest& request = requests.emplace_back();
    request.prompt.assign(batch.ids.begin() + span.first_row,
                          batch.ids.begin() + span.first_row + span.rows);
    request.max_new_tokens = want.dim(1);
    request.sampling.temperature = 0;
  }
  const auto answers = Generate(context, model, requests);
  for (size_t b = 0; b < answers.size(); ++b) {
    for (int64_t t = 0; t < want.dim(1); ++t) {
      const int64_t at = static_cast<int64_t>(b) * want.dim(1) + t;
      comparison.Check("greedy_ids", answers[b][0].ids[t],
                       static_cast<double>(want.data<int64_t>()[at]), 0);
      comparison.Check("greedy_logprob", answers[b][0].log_probabilities[t],
                       recording.At("greedy_logprob").data<float>()[at], 1e-4);
    }
  }
}

}  // namespace

VerifyReport VerifyModel(const Context& context, const std::string& path,
                         const std::string& expected) {
  const TensorMap recording = ReadSafetensors(expected);
  Opened opened = OpenInFloat32(context, path);
  Transformer& model = *opened.model;
  Comparison comparison(path);
  const RecordedBatch batch(recording, "_right");
  const bool gradients = recording.Has("labels_right");
  if (gradients) {
    model.EnableGradient();
    model.Refresh(context);
  }
  TransformerTrace trace;
  const Tensor rows = model.Forward(context, batch.tokens(), &trace);
  const Tensor logits = Logits(context, model, rows);
  if (recording.Has("score")) {
    CheckScores(comparison, batch, logits, recording);
    return comparison.Report();
  }
  CheckRows(comparison, "logits", batch, logits, recording.At("logits_right"), 1e-4);
  for (int64_t layer = 0; recording.Has("hidden_right." + std::to_string(layer)); ++layer) {
    const bool last = layer == model.config().layers;
    CheckRows(comparison, "hidden", batch, last ? rows : trace.layers[layer].x,
              recording.At("hidden_right." + std::to_string(layer)), 1e-4);
  }
  for (const auto& [name, temperature] : {std::pair{"t1.0", 1.0f}, {"t0.7", 0.7f}}) {
    const std::string log_p = std::string("logprob_") + name + "_right";
    if (!recording.Has(log_p)) continue;
    const TokenScores scores = ScoreTokens(context, model, rows, batch.Next(),
                                           {.temperature = temperature, .entropy = true});
    CheckTokens(comparison, log_p, batch, scores.log_probability, recording.At(log_p));
    const std::string entropy = std::string("entropy_") + name + "_right";
    if (recording.Has(entropy)) {
      CheckTokens(comparison, entropy, batch, scores.entropy, recording.At(entropy));
    }
  }
  if (recording.Has("input_ids_left")) {  // the same rows, whatever stood around them
    const RecordedBatch left(recording, "_left");
    CheckRows(comparison, "logits_left", left,
              Logits(context, model, model.Forward(context, left.tokens(), nullptr)),
              recording.At("logits_left"), 1e-4);
  }
  if (recording.Has("greedy_ids")) CheckGreedy(context, comparison, model, batch, recording);
  if (gradients) {
    Tensor d_final;
    const double loss = MeanLoss(context, model, rows, batch.Targets(), &d_final);
    comparison.Check("loss", loss, recording.At("loss").Item(), 1e-5);
    const std::string file = path + "/gradients.safetensors";
    if (FileExists(file)) {
      model.Backward(context, batch.tokens(), trace, d_final);
      CheckGradients(comparison, model, *opened.file, file);
    }
  }
  return comparison.Report();
}

VerifyReport VerifyAdapter(const Context& context, const std::string& folder) {
  const TensorMap recording = ReadSafetensors(folder + "/expected.safetensors");
  const std::string base =
      ReadJsonFile(folder + "/adapter_config.json").Find("base_model_name_or_path")->AsString();
  Opened opened = OpenInFloat32(context, folder + "/" + base);
  Transformer& model = *opened.model;
  const LoraAdapter adapter = ReadLoraAdapter(folder, opened.file->config());
  // As training would have them, with the weights that were learnt.
  std::set<std::string> targets;
  for (const LoraMatrix& matrix : adapter.matrices) {
    const std::string module = matrix.weight.substr(0, matrix.weight.rfind('.'));
    targets.insert(module.substr(module.rfind('.') + 1));
  }
  Rng rng(0, Purpose::kTest);
  model.AddAdapters(adapter.rank, static_cast<float>(adapter.scale()),
                    std::vector<std::string>(targets.begin(), targets.end()), rng);
  for (const Transformer::AdapterSlot& slot : model.Adapters()) {
    const auto found =
        std::ranges::find(adapter.matrices, slot.name + ".weight", &LoraMatrix::weight);
    slot.adapter->a.SetRows(0, found->a);
    slot.adapter->b.SetRows(0, found->b);
  }
  model.Refresh(context);
  Comparison comparison(folder);
  const RecordedBatch batch(recording, "_right");
  TransformerTrace trace;
  const Tensor rows = model.Forward(context, batch.tokens(), &trace);
  CheckRows(comparison, "logits", batch, Logits(context, model, rows), recording.At("logits_right"),
            1e-4);
  Tensor d_final;
  const double loss = MeanLoss(context, model, rows, batch.Targets(), &d_final);
  comparison.Check("loss", loss, recording.At("loss").Item(), 1e-5);
  model.Backward(context, batch.tokens(), trace, d_final);
  PutGradientsInPlace(model);
  for (const Transformer::AdapterSlot& slot : model.Adapters()) {
    for (const auto& [name, matrix] :
         {std::pair{"lora_A", &slot.adapter->a}, {"lora_B", &slot.adapter->b}}) {
      const Tensor want =
          recording.At("grad.base_model.model." + slot.name + "." + name + ".weight");
      std::vector<float> got(static_cast<size_t>(want.elements()));
      matrix->GetRows(0, got);
      CheckGradient(comparison, got, want.data<float>());
    }
  }
  return comparison.Report();
}

VerifyReport VerifyModels(const Context& context, const std::string& folder) {
  VerifyReport report;
  std::vector<std::string> paths;
  for (const char* part : {"models", "gguf"}) {
    if (!DirectoryExists(folder + "/" + part)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder + "/" + part)) {
      paths.push_back(entry.path().string());
    }
  }
  std::ranges::sort(paths);
  for (const std::string& path : paths) {
    std::string expected;
    if (FileExists(path + "/adapter_config.json")) {
      Merge(VerifyAdapter(context, path), report);
    } else if (DirectoryExists(path)) {
      expected = path + "/expected.safetensors";
      if (!FileExists(path + "/model.safetensors")) expected.clear();
    } else if (path.ends_with(".gguf")) {
      expected = path.substr(0, path.size() - 5) + ".expected.safetensors";
    }
    if (expected.empty() || !FileExists(expected)) continue;
    if (!ReadSafetensors(expected).Has("input_ids_right")) continue;
    Merge(VerifyModel(context, path, expected), report);
  }
  const std::string chats = folder + "/smollm2_135m";
  if (!DirectoryExists(chats)) return report;
  try {
    Merge(VerifyChatModel(context, ResolveModel("smollm2-135m-instruct"), chats), report);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable) throw;
    report.skipped.push_back("smollm2_135m: " + error.message());
  }
  return report;
}

}  // namespace weft
