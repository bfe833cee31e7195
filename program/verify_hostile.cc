// weft verify hostile: every file of a folder with a manifest is loaded in a child process, and
// must be refused or accepted as the manifest says.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/check.h"
#include "language/json_keys.h"
#include "program/commands.h"
#include "program/hostile.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;
using Kind = HostileOutcome::Kind;

struct Case {
  std::string file, format, fault, expect;
  HostileOutcome outcome;

  bool Holds() const {
    const bool accepted = outcome.kind == Kind::kAccepted, refused = outcome.kind == Kind::kRefused;
    if (expect == "reject") return refused;
    if (expect == "accept_container") return accepted;
    return accepted || refused;  // no_crash
  }
};

struct Manifest {
  HostileLimits limits;
  std::vector<Case> cases;
};

Manifest ReadManifest(const std::string& folder) {
  const std::string path = folder + "/manifest.json";
  const JsonValue json = ReadJsonFile(path);
  JsonKeys keys(json, path);
  Manifest manifest;
  if (const JsonValue* limits = keys.Find("limits")) {
    JsonKeys inner(*limits, path, "limits.");
    manifest.limits.seconds = inner.Number("seconds_per_file").value_or(manifest.limits.seconds);
    manifest.limits.extra_bytes =
        inner.Integer("extra_memory_bytes", 0, INT64_MAX).value_or(manifest.limits.extra_bytes);
  }
  const JsonValue* files = keys.Find("files");
  if (!files || !files->IsArray()) keys.Fail("files", "must list files");
  for (const JsonValue& entry : files->Items()) {
    JsonKeys inner(entry, path, "files.");
    const auto text = [&](const char* key) { return inner.String(key).value_or(""); };
    Case& c = manifest.cases.emplace_back();
    c.file = text("file");
    c.format = text("format");
    c.fault = text("fault");
    c.expect = text("expect");
    if (c.expect != "reject" && c.expect != "no_crash" && c.expect != "accept_container") {
      inner.Fail("expect",
                 "must be reject, no_crash or accept_container, not \"" + c.expect + "\"");
    }
  }
  return manifest;
}

struct FormatRow {
  int64_t files = 0, refused = 0, accepted = 0, failed = 0;
  double slowest = 0;
};

}  // namespace

int VerifyHostile(const VerifyOptions& options) {
  if (options.reference.empty()) {
    throw Error(ErrorCode::kConfig, "name the folder of files and manifest.json: --reference DIR");
  }
  Manifest manifest = ReadManifest(options.reference);
  std::map<std::string, FormatRow> rows;
  std::map<std::string, int64_t> skipped;
  std::vector<const Case*> failures;
  for (Case& c : manifest.cases) {
    if (!ReadsFormat(c.format)) {
      ++skipped[c.format];
      continue;
    }
    c.outcome = LoadInChild(c.format, options.reference + "/" + c.file, manifest.limits);
    FormatRow& row = rows[c.format];
    ++row.files;
    row.refused += c.outcome.kind == Kind::kRefused;
    row.accepted += c.outcome.kind == Kind::kAccepted;
    row.slowest = std::max(row.slowest, c.outcome.seconds);
    if (!c.Holds()) {
      ++row.failed;
      failures.push_back(&c);
    }
  }

  int64_t checked = 0;
  for (const auto& [format, row] : rows) checked += row.files;
  if (options.json) {
    Json formats = Json::object(), faults = Json::array(), left_out = Json::array();
    for (const auto& [format, row] : rows) {
      formats[format] = {{"files", row.files},
                         {"refused", row.refused},
                         {"accepted", row.accepted},
                         {"failed", row.failed},
                         {"slowest_ms", row.slowest * 1e3}};
    }
    for (const Case* c : failures) {
      faults.push_back({{"file", c->file},
                        {"expect", c->expect},
                        {"outcome", Name(c->outcome.kind)},
                        {"message", c->outcome.message}});
    }
    for (const auto& [format, count] : skipped) {
      left_out.push_back(
          fmt::format("{}: {} files, a format that weft does not read", format, count));
    }
    const Json line = {{"checked", checked},
                       {"failed", failures.size()},
                       {"formats", formats},
                       {"failures", faults},
                       {"skipped", left_out}};
    fmt::print("{}\n", line.dump(-1, ' ', false, Json::error_handler_t::replace));
  } else {
    fmt::print("{:<30} {:>6} {:>8} {:>9} {:>7} {:>11}\n", "format", "files", "refused", "accepted",
               "failed", "slowest ms");
    for (const auto& [format, row] : rows) {
      fmt::print("{:<30} {:>6} {:>8} {:>9} {:>7} {:>11.1f}\n", format, row.files, row.refused,
                 row.accepted, row.failed, row.slowest * 1e3);
    }
    for (const auto& [format, count] : skipped) {
      fmt::print("{:<30} {:>6} skipped: weft does not read this format\n", format, count);
    }
    for (const Case* c : failures) {
      fmt::print("FAIL {}: {}: {}, expected {}{}{}\n", c->file, c->fault, Name(c->outcome.kind),
                 c->expect, c->outcome.message.empty() ? "" : ": ", c->outcome.message);
    }
    fmt::print("{} files, {} failed\n", checked, failures.size());
  }
  return failures.empty() ? 0 : 1;
}

}  // namespace weft
