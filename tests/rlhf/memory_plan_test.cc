#include "rlhf/memory_plan.h"

#include <gtest/gtest.h>

#include "rlhf/language_learner.h"
#include "tests/base/temporary_folder.h"
#include "tests/rlhf/method_run.h"
#include "tests/rlhf/tiny_words.h"

namespace weft {
namespace {

class Plans : public testing::Test {
 protected:
  Plans() {
    WriteTinyModel(folder_.Path("model"));
    std::string rows;
    for (const char* n : {"one", "two", "three", "four", "five", "six"}) {
      rows += R"({"prompt":")" + std::string(n) + R"( ","completion":"two three"})" + "\n";
    }
    WriteFileAtomic(folder_.Path("rows.jsonl"), rows);
  }
  MemoryPlan Plan(const std::string& name, const std::string& changes = "") const {
    const auto method = ParseMethod(
        name,
        "model: " + folder_.Path("model") + "\ndata: {files: " + folder_.Path("rows.jsonl") + "}\n",
        (name == "sft" ? "" : "max_new_tokens: 9\nrewards: [{name: length}]\n") + changes);
    FragmentGraph graph;
    method->Build(graph);
    return PlanMemory(*method, graph);
  }
  static int64_t Part(const MemoryPlan& plan, const std::string& phase, const std::string& part) {
    for (const MemoryPhase& p : plan.phases()) {
      if (p.name != phase) continue;
      for (const MemoryPart& q : p.parts) {
        if (q.name == part || (part == "activations" && q.name.starts_with(part))) return q.bytes;
      }
    }
    return -1;
  }
  const TemporaryFolder folder_;
};

// 258 x 32 embedding, 2 layers of q 32 x 32, k and v 16 x 32, o 32 x 32, gate, up and down 64 x 32,
// two norms each, a last norm; panels are as wide as outputs rounded up to 16.
constexpr int64_t kWeights = 272 * 32 + 2 * (32 * 32 * 2 + 16 * 32 * 2 + 3 * 64 * 32 + 2 * 32) + 32;
constexpr int64_t kVectors = 5 * 32;

TEST_F(Plans, CountWhatALearnerHolds) {
  const MemoryPlan plan = Plan("sft");
  EXPECT_EQ(Part(plan, "learning", "weights"), 4 * kWeights);
  EXPECT_EQ(Part(plan, "learning", "weights in bf16"), 2 * (kWeights - kVectors));
  EXPECT_EQ(Part(plan, "learning", "gradients"), 4 * kWeights);
  EXPECT_EQ(Part(plan, "learning", "moments"), 8 * kWeights);
  EXPECT_EQ(Part(Plan("sft", "optimizer.name: sgd\n"), "learning", "moments"), 0);
  EXPECT_EQ(Part(Plan("sft", "lora.rank: 2\nlora.targets: [q_proj]\n"), "learning", "gradients"),
            4 * 2 * (32 * 16 + 2 * 32));
}

TEST_F(Plans, CountWhatThePartsOfAnOnlineMethodHold) {
  const MemoryPlan grpo = Plan("grpo", "precision: f32\n");
  EXPECT_EQ(Part(grpo, "learning", "reference model"), -1);
  EXPECT_EQ(Part(Plan("grpo", "precision: f32\nbeta: 0.1\n"), "learning", "reference model"),
            4 * kWeights);
  // Of 16 prompts of up to 6 tokens with 8 answers of 9: a page of 64 positions for each answer, in
  // 2 layers and 2 heads; a key has 8 numbers, a value lies in 16.
  constexpr int64_t kPage = 64 * 2 * 2 * (8 + 16) * 4;
  EXPECT_EQ(Part(grpo, "answering", "keys and values"), 16 * 8 * kPage);
  EXPECT_EQ(Part(Plan("grpo", "precision: f32\nprompts: 4\n"), "answering", "keys and values"),
            4 * 8 * kPage);
}

TEST_F(Plans, SayWhatIsLargestAndWhatLowersIt) {
  const MemoryPlan plan = Plan("grpo", "precision: f32\n");
  for (const MemoryPhase& phase : plan.phases()) EXPECT_LE(phase.bytes(), plan.peak_bytes());
  EXPECT_NE(plan.ToText().find("at most, while " + plan.largest().name), std::string::npos);
  const int64_t kept = Part(Plan("sft", "micro_batch_tokens: 64\n"), "learning", "activations");
  const int64_t recomputed =
      Part(Plan("sft", "micro_batch_tokens: 64\nrecompute: true\n"), "learning", "activations");
  EXPECT_LT(recomputed, kept);
}

}  // namespace
}  // namespace weft
