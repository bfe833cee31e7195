#include "program/bench_peers.h"

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

std::vector<std::string> StartPeers(const std::string& folder, int threads) {
  return {PythonInterpreter(), "-c", kLanguagePeers, folder, std::to_string(threads)};
}

}  // namespace

LanguagePeers::LanguagePeers(int threads)
    : python_(StartPeers(folder_, threads), /*answers=*/true) {
  if (const std::string state = python_.ReadLine(); state != "ready") {
    throw Error(ErrorCode::kUnavailable, PythonInterpreter() + ": " + state);
  }
  const std::string model = ResolveModel("smollm2-135m-instruct");
  RemoveTree(folder_);
  MakeDirectories(folder_);
  OutputOfSelf({"convert", model, folder_ + "/hf", "--type", "f32"});
  for (const std::string type : {"f32", "bf16", "q4_1"}) {
    OutputOfSelf({"convert", model, folder_ + "/" + type + ".gguf", "--type", type});
  }
}

LanguagePeers::~LanguagePeers() {
  RemoveTree(folder_);
}

std::map<std::string, double> LanguagePeers::Measure(const std::string& row) {
  python_.Write(row + "\n");
  const auto figures = nlohmann::json::parse(python_.ReadLine());
  // Their threads wait for work for a while on a core that ours need.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  return figures;
}

}  // namespace weft
