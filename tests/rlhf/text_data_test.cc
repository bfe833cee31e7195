// Plain text for training from scratch: tokens, windows, and what is kept back.
#include "rlhf/text_data.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/file.h"
#include "dataflow/runtime.h"
#include "rlhf/offline.h"
#include "tests/base/temporary_folder.h"

namespace weft {
namespace {

class Text : public testing::Test {
 protected:
  Text() {
    std::string text;
    for (int i = 0; i < 40; ++i) text += "the cat sat on the mat, é " + std::to_string(i) + "\n";
    WriteFileAtomic(path_, text);
    config_.files = {path_};
    config_.tokenizer = "characters";
    config_.window = 16;
  }
  Tokenizer Made() const {
    return Tokenizer::FromJson(MakeTokenizer(config_).front().second, "tokenizer.json");
  }
  std::unique_ptr<LanguageMethod> Make(const std::string& more) const {
    auto method = LanguageMethods().At("pretrain").make();
    ConfigSource::Text("algorithm: pretrain\ndata: {files: " + path_ +
                           ", tokenizer: characters, window: 16}\nbatch: 4\nthreads: 1\n" +
                           "architecture: {layers: 1, heads: 2, width: 16}\nwarmup_steps: 2\n" +
                           "learning_rate: 0.01\nschedule: constant\ngguf: none\n" + more,
                       "config")
        .Parse(*method);
    return method;
  }
  static Cut Train(const LanguageMethod& method, const Cut* resume = nullptr) {
    FragmentGraph graph;
    method.Build(graph);
    graph.Validate();
    return weft::Run(graph, DistributionPolicies().At("serial")(graph, {.threads = 1}), {}, resume)
        .cut;
  }
  const TemporaryFolder folder_;
  const std::string path_ = folder_.Path("text.txt");
  TextDataConfig config_;
};

TEST_F(Text, CharactersAreTokensAndComeBack) {
  const Tokenizer tokenizer = Made();
  const std::string text = ReadFile(path_);
  const std::vector<int32_t> ids = tokenizer.Encode(text);
  EXPECT_EQ(tokenizer.Decode(ids), text);
  EXPECT_EQ(ids.size(), text.size() - 40) << "each é is two bytes and one token";
}

TEST_F(Text, WindowsStayInTheTrainingPartAndTheRestIsForeseenOnce) {
  const Tokenizer tokenizer = Made();
  const TextData data(config_, tokenizer);
  const std::vector<int32_t> ids = tokenizer.Encode(ReadFile(path_));
  EXPECT_EQ(data.training_tokens(), static_cast<int64_t>(0.9 * static_cast<double>(ids.size())));
  const Examples drawn = data.Draw(7, 0, 200);
  for (int64_t s = 0; s < 200; ++s) {
    const int64_t begin = drawn.number[s];
    ASSERT_LE(begin + 17, data.training_tokens());
    ASSERT_TRUE(std::ranges::equal(drawn.Ids(s), std::span(ids).subspan(begin, 17)));
    ASSERT_EQ(drawn.LearntTokens(s), 16);
  }
  const Examples later = data.Draw(7, 150, 50);
  EXPECT_TRUE(std::equal(later.number.begin(), later.number.end(), drawn.number.begin() + 150));
  int64_t foreseen = 0;
  const Examples kept = data.HeldOut();
  for (int64_t s = 0; s < kept.sequences.count(); ++s) foreseen += kept.LearntTokens(s);
  EXPECT_EQ(foreseen, std::ssize(ids) - data.training_tokens() - 1);
}

TEST_F(Text, AModelFromScratchLearnsResumesAndOpens) {
  const auto whole = Make("total_steps: 30\n");
  const Cut cut = Train(*whole);
  const Cut half = Train(*Make("total_steps: 11\n"));
  const TensorMap policy = cut.at("learner.0").Extract("policy");
  EXPECT_EQ(Hash(Train(*whole, &half).at("learner.0").Extract("policy")), Hash(policy));
  const auto figures = whole->Finish(policy, folder_.path());
  ASSERT_EQ(figures[1].name, "held_out_loss");
  EXPECT_LT(figures[1].value, 0.8 * figures[0].value);
  EXPECT_EQ(ModelFile::Open(folder_.Path("model"))->config().layers, 1);
  EXPECT_EQ(Tokenizer::Load(folder_.Path("model")).Decode(Made().Encode("the cat")), "the cat");
}

TEST_F(Text, TooLittleTextIsAnError) {
  WriteFileAtomic(path_, "too short");
  try {
    const TextData data(config_, Made());
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("fewer than two windows"), std::string::npos);
  }
}

}  // namespace
}  // namespace weft
