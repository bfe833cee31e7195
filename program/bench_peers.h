// Other programs on this machine, measured in turns with ours.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "program/subprocess.h"

namespace weft {

// The first line of a peer's output: Error(kUnavailable) with the reason where it is not "ready".
void AwaitReady(FedProcess& peer);

// The chat model in the forms that peers read, in runs/bench_models until the end: a Hugging Face
// folder in f32 and, by the names of their types, GGUFs.
class PeerModel {
 public:
  explicit PeerModel(const std::vector<std::string>& gguf_types);
  ~PeerModel();
  PeerModel(const PeerModel&) = delete;
  PeerModel& operator=(const PeerModel&) = delete;
};

// What Python (WEFT_PYTHON, or python3) has of llama-cpp-python, and torch with transformers and
// peft. The constructor throws Error(kUnavailable) where it has neither.
class LanguagePeers {
 public:
  explicit LanguagePeers(int threads);

  // A sample of this row of weft bench language by each peer that can do it: its name and its
  // tokens per second, or seconds for first_token.
  std::map<std::string, double> Measure(const std::string& row);

 private:
  FedProcess python_;
  const PeerModel model_;
};

// Steps of TRL's GRPO at the settings of configs/bench/grpo_8x4x32.yaml.
struct TrlFigure {
  double seconds, generate;  // of a step, the first not counted
  double peak_bytes;
};
// In bf16 (f32 masters) or f32. Takes minutes; throws Error(kUnavailable) where Python has no trl.
TrlFigure MeasureTrl(const PeerModel& model, const std::string& precision, int threads);

}  // namespace weft
