// tests/signatures.txt holds one hash for each algorithm: its policy after 200 updates on a probe,
// which calls no libm, with the portable kernels. Any change of arithmetic, draws or order shows up
// here, on any machine; the other instruction sets have to give the same bits.
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <sstream>

#include "tensor/context.h"
#include "tests/algorithms/run_algorithm.h"

namespace weft {
namespace {

constexpr char kFile[] = "tests/signatures.txt";

std::map<std::string, std::string> Recorded() {
  std::ifstream file(kFile);
  std::map<std::string, std::string> signatures;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    std::string algorithm;
    words >> algorithm >> signatures[algorithm];
  }
  return signatures;
}

// With as many parts of each algorithm as are free of libm.
std::string ConfigOf(const std::string& algorithm) {
  const std::string common =
      "algorithm: " + algorithm +
      "\nseed: 5\nthreads: 1\nevaluation: {every: 1e9}\nlearning_rate: 1e-3\n"
      "network: {hidden: [32, 24]}\n";
  if (algorithm == "ppo") {
    return common +
           "total_steps: 620\nenvironment: {id: Probe-Memory-v0, rows: 4, normalise_observation: "
           "{enabled: true}, normalise_reward: {enabled: true}}\nrollout_steps: 8\nminibatch: 16\n"
           "epochs: 4\nvalue_clip: 0.2\nentropy_coefficient: 0.01\nclip_schedule: linear\n";
  }
  const std::string replay =
      "replay: {capacity: 300, batch_size: 32, min_size: 40, updates_per_step: 0.5, n_step: 2}\n"
      "train_every: 4\ntotal_steps: 436\n";
  if (algorithm == "dqn") {
    return common + replay +
           "environment: {id: Probe-Memory-v0, rows: 2}\ntarget_every: 40\ndouble: true\n"
           "dueling: true\n";
  }
  return common + replay +
         "environment: {id: Probe-Memory-v0, rows: 2, arguments: {continuous: true}}\n";
}

int64_t UpdatesOf(const AlgorithmRun& run) {
  const TensorMap& learner = run.result.cut.at("learner.0");
  const Tensor* steps = learner.Find("learner.optimizer.step");
  if (steps == nullptr) steps = &learner.At("learner.critic_optimizer.step");
  return steps->data<int64_t>()[0];
}

class Signature : public testing::TestWithParam<std::string> {};

std::string SignatureAt(Isa isa, const std::string& algorithm) {
  const Context context{.isa = isa};
  const ContextScope scope(context);
  const AlgorithmRun run = RunAlgorithm(*AlgorithmFrom(ConfigOf(algorithm)));
  EXPECT_EQ(UpdatesOf(run), 200);
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016lx", static_cast<unsigned long>(run.hash));
  return hash;
}

TEST_P(Signature, IsTheRecordedOne) {
  const std::string hash = SignatureAt(Isa::kPortable, GetParam());
  EXPECT_EQ(Recorded()[GetParam()], hash)
      << "A change that is meant to alter the numbers of " << GetParam() << " puts the line\n  "
      << GetParam() << " " << hash << "\ninto " << kFile
      << ", and its commit message ends with\n  Signature: " << GetParam() << " "
      << hash.substr(0, 8);
}

TEST_P(Signature, IsTheSameOnEveryInstructionSet) {
  const std::string portable = SignatureAt(Isa::kPortable, GetParam());
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    if (isa <= BestIsa()) {
      EXPECT_EQ(SignatureAt(isa, GetParam()), portable) << Name(isa);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, Signature, testing::ValuesIn(Algorithms().Names()),
                         [](const auto& name) { return name.param; });

TEST(Signatures, OfNoOtherAlgorithmAreRecorded) {
  for (const auto& [algorithm, hash] : Recorded()) {
    EXPECT_TRUE(Algorithms().Find(algorithm) != nullptr) << kFile << ": " << algorithm;
  }
}

}  // namespace
}  // namespace weft
