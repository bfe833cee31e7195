// weft verify: recordings of reference implementations replayed on ours, environments and language
// models, and the conformance checks.
#include "environments/verify/verify.h"

#include <fmt/format.h>
#include <functional>
#include <new>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/check.h"
#include "base/file.h"
#include "base/thread_pool.h"
#include "environments/batch_environment.h"
#include "environments/verify/conformance.h"
#include "language/model_name.h"
#include "language/verify_encoder.h"
#include "language/verify_layers.h"
#include "language/verify_model.h"
#include "language/verify_text.h"
#include "program/commands.h"
#include "program/fields.h"
#include "program/verify_maths.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

int Report(const VerifyReport& report, bool json, bool all_fields) {
  if (json) {
    const VerifyField& worst = report.worst;
    fmt::print("{}\n", Json{{"checked", report.checked},
                            {"failed", report.failed},
                            {"worst",
                             {{"file", worst.file},
                              {"tensor", worst.tensor},
                              {"error", worst.error},
                              {"tolerance", worst.tolerance}}},
                            {"skipped", report.skipped}}
                           .dump());
  } else {
    fmt::print("{}", ToText(report, all_fields));
  }
  return report.failed == 0 ? 0 : 1;
}

// What the environment is like: tables for people, and the same in `json`.
void Describe(const std::string& id, bool print, Json& json) {
  const EnvironmentEntry entry = FindEnvironment(id);
  const auto arguments = entry.make_arguments();
  EnvironmentNotes notes;
  if (entry.notes) notes = entry.notes(*arguments);
  const EnvironmentSpec spec = entry.make_batch(*arguments, {})->spec();
  const std::vector<std::string> fields = FieldLines(spec);
  if (print) {
    for (const std::string& field : fields) fmt::print("      {}\n", field);
    for (const std::string& fact : notes.facts) fmt::print("      {}\n", fact);
    for (const std::string& warning : notes.warnings) fmt::print("WARN  {}\n", warning);
  }
  json["fields"] = fields;
  json["facts"] = notes.facts;
  json["warnings"] = notes.warnings;
}

// Empty unless allocations are counted, which those of sanitizers are not.
std::function<int64_t()> Allocations(const VerifyOptions& options) {
  if (options.allocations == nullptr) return {};
  const int64_t before = options.allocations();
  ::operator delete(::operator new(1));
  if (options.allocations() == before) return {};
  return options.allocations;
}

int Conformance(const VerifyOptions& options) {
  const std::string id = EnvironmentIdOf(options.id);
  Json json{{"environment", id}};
  Describe(id, !options.json, json);
  int64_t failed = 0;
  const auto checks = CheckConformance(id, Allocations(options));
  Json list = Json::array();
  for (const ConformanceCheck& check : checks) {
    const bool holds = check.problem.empty();
    failed += !holds;
    list.push_back({{"claim", check.claim}, {"problem", check.problem}, {"remark", check.remark}});
    if (options.json) continue;
    const bool remark = holds && !check.remark.empty();
    const std::string what = holds ? check.remark : check.problem;
    fmt::print("{}  {}{}\n",
               !holds   ? "FAIL"
               : remark ? "WARN"
                        : "ok  ",
               check.claim, what.empty() ? "" : ": " + what);
  }
  json["checked"] = checks.size();
  json["failed"] = failed;
  json["claims"] = list;
  if (options.json) {
    fmt::print("{}\n", json.dump());
  } else {
    fmt::print("{} claims, {} failed\n", checks.size(), failed);
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace

int VerifyEnvironment(const VerifyOptions& options) {
  if (options.all) {
    if (options.reference.empty()) {
      throw Error(ErrorCode::kConfig,
                  "--all needs --reference DIR, the folder with the recordings");
    }
    return Report(VerifyEnvironmentFolder(options.reference), options.json, false);
  }
  if (options.id.empty()) {
    throw Error(ErrorCode::kConfig,
                "name an environment and its recording, or --all --reference DIR");
  }
  return options.file.empty()
             ? Conformance(options)
             : Report(VerifyEnvironmentFile(options.id, options.file), options.json, true);
}

int VerifyLanguage(const VerifyLanguageOptions& options) {
  ThreadPool pool(static_cast<int>(std::thread::hardware_concurrency()));
  const Context context{.pool = &pool};
  if (!options.reference.empty()) {
    VerifyReport report = VerifyModels(context, options.reference);
    Merge(VerifyTexts(options.reference), report);
    const std::string maths = options.reference + "/maths";
    if (DirectoryExists(maths)) {
      Merge(VerifyLayers(context, maths), report);
      Merge(VerifyMaths(maths), report);
    }
    return Report(report, options.json, false);
  }
  std::string expected = options.expected;
  if (expected.empty() && options.model.ends_with(".gguf")) {
    expected = options.model.substr(0, options.model.size() - 5) + ".expected.safetensors";
  }
  if (expected.empty()) expected = options.model + "/expected.safetensors";
  return Report(VerifyModel(context, options.model, expected), options.json, true);
}

int VerifyTokenizerFile(const VerifyTextOptions& options) {
  return Report(VerifyTokenizer(ResolveModel(options.path),
                                options.reference.empty() ? options.path : options.reference),
                options.json, true);
}

int VerifyEncoderFile(const VerifyTextOptions& options) {
  ThreadPool pool(static_cast<int>(std::thread::hardware_concurrency()));
  return Report(VerifyEncoder({.pool = &pool}, options.path, options.reference), options.json,
                true);
}

int VerifyTemplateFile(const VerifyTextOptions& options) {
  return Report(options.reference.empty()
                    ? VerifyTemplates(options.path)
                    : VerifyTemplate(ResolveModel(options.path), options.reference),
                options.json, true);
}

}  // namespace weft
