#include "program/bench_peers.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/check.h"
#include "base/file.h"
#include "environments/python/python_worker.h"
#include "language/model_name.h"
#include "program/python_peers.h"

namespace weft {
namespace {

constexpr const char* kModels = "runs/bench_models";

double MedianAfterFirst(const nlohmann::json& steps) {
  std::vector<double> values = steps;
  values.erase(values.begin());
  std::ranges::sort(values);
  return values.at(values.size() / 2);
}

}  // namespace

void AwaitReady(FedProcess& peer) {
  if (const std::string state = peer.ReadLine(); state != "ready") {
    throw Error(ErrorCode::kUnavailable, PythonInterpreter() + ": " + state);
  }
}

PeerModel::PeerModel(const std::vector<std::string>& gguf_types) {
  const std::string model = ResolveModel("smollm2-135m-instruct"), folder = kModels;
  RemoveTree(folder);
  MakeDirectories(folder);
  OutputOfSelf({"convert", model, folder + "/hf", "--type", "f32"});
  for (const std::string& type : gguf_types) {
    OutputOfSelf({"convert", model, folder + "/" + type + ".gguf", "--type", type});
  }
}

PeerModel::~PeerModel() {
  RemoveTree(kModels);
}

LanguagePeers::LanguagePeers(int threads)
    : python_({PythonInterpreter(), "-c", kLanguagePeers, kModels, std::to_string(threads)},
              /*answers=*/true),
      model_({"f32", "bf16", "q4_1"}) {
  AwaitReady(python_);
}

std::map<std::string, double> LanguagePeers::Measure(const std::string& row) {
  python_.Write(row + "\n");
  const auto figures = nlohmann::json::parse(python_.ReadLine());
  // Their threads wait for work for a while on a core that ours need.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  return figures;
}

TrlFigure MeasureTrl(const PeerModel&, const std::string& precision, int threads) {
  constexpr const char* kSteps = "4";
  FedProcess python(
      {PythonInterpreter(), "-c", kTrlGrpo, std::string(kModels) + "/hf",
       "configs/rlhf/data/prompts.jsonl", std::to_string(threads), precision, kSteps, "1"},
      /*answers=*/true);
  AwaitReady(python);
  const auto figures = nlohmann::json::parse(python.ReadLine());
  python.Finish();
  return {.seconds = MedianAfterFirst(figures.at("seconds")),
          .generate = MedianAfterFirst(figures.at("generate")),
          .peak_bytes = figures.at("peak_bytes")};
}

}  // namespace weft
