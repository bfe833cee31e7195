#include "program/run_directory.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "nn/safetensors.h"
#include "tensor/kernels.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kState[] = "state.safetensors";
constexpr char kPolicy[] = "policy.safetensors";
constexpr char kRecord[] = "checkpoint.json";

bool IsRunName(const std::string& name) {
  return !name.empty() && name.size() <= 64 && name[0] != '.' &&
         std::ranges::all_of(name, [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
         });
}

// A cut as one flat map: "fragment.replica/leaf".
TensorMap Flatten(const Cut& cut) {
  TensorMap flat;
  for (const auto& [owner, state] : cut) {
    flat.Set(owner + "/", Tensor::Empty({0}, DType::kUInt8));  // keeps owners that saved nothing
    for (const auto& [name, tensor] : state)
      flat.Set(owner + "/" + std::string(name.text()), tensor);
  }
  return flat;
}

Cut Unflatten(const TensorMap& flat) {
  Cut cut;
  for (const auto& [name, tensor] : flat) {
    const std::string_view text = name.text();
    const size_t slash = text.find('/');
    if (slash == std::string_view::npos) {
      throw Error(ErrorCode::kCorrupt, "tensor " + std::string(text) + " belongs to no fragment");
    }
    TensorMap& state = cut[std::string(text.substr(0, slash))];
    if (slash + 1 < text.size()) state.Set(text.substr(slash + 1), tensor);
  }
  return cut;
}

std::string StepName(int64_t steps) {
  std::string digits = std::to_string(steps);
  return std::string(12 - std::min<size_t>(12, digits.size()), '0') + digits;
}

void VerifyFile(const std::string& path, const Json& record) {
  const FileSum sum = SumOfFile(path);
  if (sum.bytes != record.at("bytes").get<uint64_t>()) {
    throw Error(ErrorCode::kCorrupt, path + ": has " + std::to_string(sum.bytes) +
                                         " bytes instead of " + record.at("bytes").dump());
  }
  if (sum.crc32c != record.at("crc32c").get<uint32_t>()) {
    throw Error(ErrorCode::kCorrupt, path + ": its checksum does not match checkpoint.json");
  }
}

// Checks lengths and checksums of every file of a checkpoint; returns its record.
Json Verify(const std::string& path) {
  Json record;
  try {
    record = Json::parse(ReadFile(path + "/" + kRecord, 1 << 20));
    for (const auto& [file, facts] : record.at("files").items())
      VerifyFile(path + "/" + file, facts);
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::kCorrupt, path + "/" + kRecord + ": " + error.what());
  }
  return record;
}

std::vector<std::string> CheckpointNames(const std::string& folder) {
  std::vector<std::string> names;
  if (!DirectoryExists(folder)) return names;
  for (const auto& name : ListDirectory(folder)) {
    if (!name.empty() && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; })) {
      names.push_back(name);
    }
  }
  return names;  // sorted, and of equal length: oldest first
}

}  // namespace

RunDirectory RunDirectory::Create(const std::string& name, const std::string& stem,
                                  const std::string& config_yaml) {
  if (!name.empty() && !IsRunName(name)) {
    throw Error(ErrorCode::kConfig,
                "run: \"" + name + "\" is no run name: letters, digits, . _ - and at most 64");
  }
  std::string path = "runs/" + (name.empty() ? stem : name);
  if (name.empty()) {
    for (int copy = 2; DirectoryExists(path); ++copy)
      path = "runs/" + stem + "-" + std::to_string(copy);
  } else if (DirectoryExists(path)) {
    throw Error(ErrorCode::kConfig, path + " exists; `weft resume " + path +
                                        "` goes on with it, another run=NAME "
                                        "starts afresh");
  }
  MakeDirectories(path + "/checkpoints");
  WriteFileAtomic(path + "/config.yaml", config_yaml);
  return RunDirectory(path);
}

RunDirectory RunDirectory::Open(const std::string& path_or_name) {
  std::string path = path_or_name;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (!DirectoryExists(path) && DirectoryExists("runs/" + path)) path = "runs/" + path;
  if (!DirectoryExists(path)) {
    const auto names = DirectoryExists("runs") ? ListDirectory("runs") : std::vector<std::string>{};
    throw Error(ErrorCode::kConfig,
                "there is no run " + path_or_name +
                    DidYouMean(std::filesystem::path(path).filename().string(), names));
  }
  if (!FileExists(path + "/config.yaml")) {
    throw Error(ErrorCode::kConfig, path + " is no run: it has no config.yaml");
  }
  return RunDirectory(path);
}

std::string RunDirectory::name() const {
  return std::filesystem::path(path_).filename().string();
}

void RunDirectory::Save(const Checkpoint& checkpoint, int64_t keep) const {
  const std::string folder = path_ + "/checkpoints";
  const std::string target = folder + "/" + StepName(checkpoint.steps);
  if (DirectoryExists(target)) return;  // the same step of the same run: the same state
  const TensorMap policy = PolicyOf(checkpoint);
  for (const auto& [name, tensor] : policy) {
    if (tensor.dtype() != DType::kFloat32) continue;
    if (kernels::FirstNonFinite(CurrentContext(), tensor.stored_elements(),
                                tensor.data<float>().data()) >= 0) {
      throw Error(ErrorCode::kDiverged,
                  "not saved: " + std::string(name.text()) + " is not finite");
    }
  }
  WriteDirectoryAtomic(target, [&](const std::string& temporary) {
    WriteSafetensors(temporary + "/" + kState, Flatten(checkpoint.cut), {});
    WriteSafetensors(temporary + "/" + kPolicy, policy, {});
    Json record{{"steps", checkpoint.steps},
                {"wall_seconds", checkpoint.wall_seconds},
                {"perturbed", checkpoint.perturbed},
                {"files", Json::object()}};
    for (const char* file : {kState, kPolicy}) {
      const FileSum sum = SumOfFile(temporary + "/" + file);
      record["files"][file] = {{"bytes", sum.bytes}, {"crc32c", sum.crc32c}};
    }
    WriteFileAtomic(temporary + "/" + kRecord, record.dump(2) + "\n");
  });
  Verify(target);
  auto names = CheckpointNames(folder);
  for (size_t i = 0; i + static_cast<size_t>(keep) < names.size(); ++i)
    RemoveTree(folder + "/" + names[i]);
}

std::optional<Checkpoint> RunDirectory::Newest(std::vector<std::string>& warnings) const {
  auto names = CheckpointNames(path_ + "/checkpoints");
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    try {
      return ReadCheckpoint(path_ + "/checkpoints/" + *name);
    } catch (const Error& error) {
      warnings.push_back(error.what());
    }
  }
  return std::nullopt;
}

void RunDirectory::UpdateManifest(
    const std::vector<std::pair<std::string, std::string>>& entries) const {
  const std::string path = path_ + "/manifest.json";
  Json manifest = Json::object();
  if (FileExists(path)) manifest = Json::parse(ReadFile(path, 1 << 20), nullptr, false);
  if (!manifest.is_object()) manifest = Json::object();
  for (const auto& [key, value] : entries) manifest[key] = Json::parse(value);
  WriteFileAtomic(path, manifest.dump(2) + "\n");
}

Checkpoint ReadCheckpoint(const std::string& path) {
  const Json record = Verify(path);
  Checkpoint checkpoint{.path = path};
  try {
    checkpoint.steps = record.at("steps").get<int64_t>();
    checkpoint.wall_seconds = record.at("wall_seconds").get<double>();
    checkpoint.perturbed = record.at("perturbed").get<bool>();
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::kCorrupt, path + "/" + kRecord + ": " + error.what());
  }
  checkpoint.cut = Unflatten(ReadSafetensors(path + "/" + kState));
  return checkpoint;
}

int64_t StepsOf(const Cut& cut) {
  const auto learner = cut.find("learner.0");
  if (learner == cut.end()) throw Error(ErrorCode::kCorrupt, "the saved state holds no learner");
  return learner->second.At("steps").data<int64_t>()[0];
}

TensorMap PolicyOf(const Checkpoint& checkpoint) {
  const auto learner = checkpoint.cut.find("learner.0");
  if (learner == checkpoint.cut.end()) {
    throw Error(ErrorCode::kCorrupt, checkpoint.path + ": holds no learner");
  }
  return learner->second.Extract("policy");
}

}  // namespace weft
