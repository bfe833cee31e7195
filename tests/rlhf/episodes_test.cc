// Episodes: answers in which a counterpart has turns too, whose tokens are read and never learnt.
#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "language/generator.h"
#include "rlhf/language_learner.h"
#include "rlhf/rollout.h"
#include "rlhf/speaker.h"
#include "tests/base/temporary_folder.h"
#include "tests/rlhf/episode_peer.h"
#include "tests/rlhf/method_run.h"
#include "tests/rlhf/tiny_words.h"

namespace weft {
namespace {

class EpisodesBase : public testing::Test {
 protected:
  void SetUp() override {
    WriteEpisodeModel(folder_.Path("model"));
    WritePrompts(folder_.Path("prompts.jsonl"));
  }
  std::unique_ptr<LanguageMethod> Make(const std::string& name, const std::string& more) const {
    return ParseMethod(name,
                       "model: " + folder_.Path("model") +
                           "\ndata: {files: " + folder_.Path("prompts.jsonl") +
                           ", evaluation_prompts: 0}\nprecision: f32\nthreads: 1\n"
                           "warmup_steps: 0\nprompts: 4\ngroup: 4\nmax_new_tokens: 6\n"
                           "learning_rate: 1e-2\nepisodes: {peer: \"" +
                           peer_.address() + "\", turns: 3, timeout_seconds: 20}\n",
                       more);
  }
  SpeakerOptions Speaking() const {
    SpeakerOptions options{.model = folder_.Path("model"), .max_new_tokens = 6};
    options.episodes.peer = peer_.address();
    options.episodes.turns = 3;
    return options;
  }
  static Samples Asked(const Speaker& speaker) {
    Samples samples;
    samples.group = 8;
    samples.seed = 3;
    samples.first_sample = 40;
    for (const char* text : {"<|im_start|>user\none<|im_end|>\n<|im_start|>assistant\n",
                             "<|im_start|>user\nfour five<|im_end|>\n<|im_start|>assistant\n"}) {
      samples.prompts.push_back(speaker.tokenizer().Encode(text));
      samples.expected.emplace_back();
    }
    return samples;
  }
  static uint64_t HashOf(const MethodRun& run) { return Hash(run.policy()); }

  const TemporaryFolder folder_;
  const EpisodePeer peer_;
};

TEST_F(EpisodesBase, KeepTheTokensOfTheModelAndPutTheCounterpartsBehindThem) {
  const Speaker speaker(Speaking());
  const auto model = LoadTransformer({}, speaker.file(), {.precision = Precision::kFloat32});
  Samples samples = Asked(speaker);
  speaker.Speak({}, *model, samples);
  ASSERT_EQ(samples.texts.count(), 16);
  int64_t episodes = 0;
  for (int64_t i = 0; i < samples.texts.count(); ++i) {
    const auto ids = samples.texts.Of(std::span<const int32_t>(samples.ids), i);
    const auto turns = samples.TurnsOf(i);
    episodes += turns.size() > 1;
    EXPECT_EQ(turns.back().second, std::ssize(ids)) << "an episode ends with the model's turn";
    int64_t drawn = 0;
    for (size_t turn = 0; turn < turns.size(); ++turn) {
      const auto [begin, end] = turns[turn];
      if (turn > 0) {  // what the template writes, the end of the turn before it left out
        const auto between = ids.subspan(turns[turn - 1].second, begin - turns[turn - 1].second);
        EXPECT_EQ(speaker.tokenizer().Decode(between), "\n<|im_start|>user\ngo on " +
                                                           std::to_string(turn) +
                                                           "<|im_end|>\n<|im_start|>assistant\n");
      }
      // The same words from a model that reads all that was before as a prompt.
      GenerationRequest request{.prompt = samples.prompts[i / samples.group]};
      request.prompt.insert(request.prompt.end(), ids.begin(), ids.begin() + begin);
      request.max_new_tokens = 6;
      request.stop_ids = StopIds(speaker.file(), speaker.tokenizer());
      request.seed = 3;
      request.first_sample = static_cast<uint64_t>(40 + i);
      request.drawn = drawn;
      const auto again = Generate({}, *model, {&request, 1})[0][0];
      EXPECT_TRUE(std::ranges::equal(again.ids, ids.subspan(begin, end - begin)));
      const auto log_p = samples.responses.Of(std::span<const float>(samples.log_p), i)
                             .subspan(drawn, end - begin);
      EXPECT_TRUE(std::ranges::equal(again.log_probabilities, log_p));
      drawn += end - begin;
    }
    EXPECT_EQ(drawn, samples.responses.length(i));
  }
  EXPECT_GT(episodes, 4);
  const Samples copy = Samples::FromMap(samples.ToMap());
  EXPECT_EQ(copy.said, samples.said);
  EXPECT_EQ(copy.responses.offsets, samples.responses.offsets);
  EXPECT_EQ(copy.outcome, samples.outcome);
}

TEST_F(EpisodesBase, TheCounterpartsTokensAreReadAndNotLearnt) {
  const Speaker speaker(Speaking());
  const auto model =
      LoadTransformer({}, speaker.file(), {.precision = Precision::kFloat32, .keep_master = true});
  model->EnableGradient();
  model->Refresh({});
  Samples samples = Asked(speaker);
  speaker.Speak({}, *model, samples);
  // The gradient of the sum of log p over a batch's targets, and the sum.
  const auto learn = [&](const LanguageBatch& batch, double* sum) {
    model->ClearGradients();
    TransformerTrace trace;
    const Tensor rows = model->Forward({}, batch.view(), &trace);
    Tensor d_rows;
    const TokenScores scores = ScoreTokens(
        {}, *model, rows, batch.targets, {},
        [](const HeadBlock& block) { std::ranges::fill(block.d_log_probability, 1.0f); }, &d_rows);
    model->Backward({}, batch.view(), trace, d_rows);
    *sum = 0;
    batch.ForWanted(
        [&](int64_t, int64_t row) { *sum += scores.log_probability.data<float>()[row]; });
    std::vector<float> gradient;
    for (const Tensor& tensor : model->Gradients()) {
      gradient.insert(gradient.end(), tensor.data<float>().begin(), tensor.data<float>().end());
    }
    return gradient;
  };
  const auto difference = [](const std::vector<float>& a, const std::vector<float>& b) {
    double worst = 0;
    for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::fabs(double{a[i]} - b[i]));
    return worst;
  };
  double masked = 0, by_hand = 0, all = 0, said = 0;
  const std::vector<float> gradient = learn(BatchOf(samples, AllPrompts(samples)), &masked);
  for (const float log_p : samples.log_p) said += log_p;
  EXPECT_NEAR(masked, said, 1e-3) << "log p of what was said, as it was said";
  // Each episode as a sequence of its own, whose marks are set by hand.
  LanguageBatch marked, everything;
  for (int64_t i = 0; i < samples.texts.count(); ++i) {
    std::vector<int32_t> ids = samples.prompts[i / samples.group];
    std::vector<uint8_t> learnt(ids.size(), 0), every(ids.size(), 0);
    for (int64_t t = samples.texts.offsets[i]; t < samples.texts.offsets[i + 1]; ++t) {
      ids.push_back(samples.ids[t]);
      learnt.push_back(samples.said[t]);
      every.push_back(1);
    }
    marked.AddSequence(ids, learnt);
    everything.AddSequence(ids, every);
  }
  const std::vector<float> want = learn(marked, &by_hand);
  EXPECT_NEAR(by_hand, masked, 1e-3);
  EXPECT_LT(difference(gradient, want), 1e-4);
  // Were the counterpart's words learnt, it would be another gradient.
  EXPECT_GT(difference(learn(everything, &all), want), 0.1);
  EXPECT_LT(all, by_hand - 1);
}

class Episodes : public EpisodesBase, public testing::WithParamInterface<std::string> {};
INSTANTIATE_TEST_SUITE_P(Methods, Episodes,
                         testing::Values("grpo", "rloo", "reinforce_pp", "ppo", "best_of_n",
                                         "online_dpo"));

TEST_P(Episodes, HaveOneHashInEveryPlacementAndAfterResume) {
  const std::string settings = "epochs: 2\nminibatches: 2\nkl_stop: 1000\n";
  const auto whole = Make(GetParam(), settings + "total_steps: 4\n");
  const MethodRun run = RunMethod(*whole);
  EXPECT_EQ(run.metrics.at("max_log_ratio")[0], 0) << "the first ratio is exactly 1";
  EXPECT_EQ(run.metrics.at("kl")[0], 0);
  EXPECT_NE(run.metrics.at("kl")[1], 0);
  EXPECT_GT(run.metrics.at("turns")[0], 1.2);
  EXPECT_EQ(HashOf(RunMethod(*whole, "threads")), HashOf(run));
  const MethodRun half = RunMethod(*Make(GetParam(), settings + "total_steps: 2\n"));
  EXPECT_NE(HashOf(half), HashOf(run));
  EXPECT_EQ(HashOf(RunMethod(*whole, "serial", &half.cut)), HashOf(run));
}

TEST_P(Episodes, AStepDoesNotDependOnMicroBatches) {
  const std::string settings = "total_steps: 2\nlearning_rate: 1e-3\n";
  const TensorMap a =
      RunMethod(*Make(GetParam(), settings + "micro_batch_tokens: 100000\n")).policy();
  const TensorMap b = RunMethod(*Make(GetParam(), settings + "micro_batch_tokens: 1\n")).policy();
  double worst = 0;
  for (const auto& [name, tensor] : a) {
    const auto x = tensor.data<float>(), y = b.At(name.text()).data<float>();
    for (size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::fabs(double{x[i]} - y[i]));
  }
  EXPECT_LT(worst, 2e-5);
}

TEST_P(Episodes, RaiseWhatTheyAreWorth) {
  const MethodRun run = RunMethod(*Make(GetParam(), "total_steps: 40\ngroup: 8\n"));
  const auto& reward = run.metrics.at("reward");
  double first = 0, last = 0;
  for (size_t i = 0; i < 5; ++i) {
    first += reward[i] / 5;
    last += reward[reward.size() - 1 - i] / 5;
  }
  EXPECT_GT(last, first + 0.05) << first << " -> " << last;
}

TEST_F(EpisodesBase, CountAndKeepWhatTheModelSaidAlone) {
  const auto method = Make("grpo", "total_steps: 1\n");
  method->run_folder = folder_.Path("");
  const MethodRun run = RunMethod(*method);
  const std::string text = ReadFile(folder_.Path("samples.jsonl"));
  int64_t lines = 0, said = 0;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1, ++lines) {
    const JsonValue line = ParseJson(text.substr(at, text.find('\n', at) - at), "samples.jsonl");
    const int64_t ids = std::ssize(line.Find("ids")->Items());
    int64_t own = 0;
    if (const JsonValue* turns = line.Find("turns")) {
      for (const JsonValue& turn : turns->Items()) {
        int64_t begin = 0, end = 0;
        ASSERT_TRUE(turn.Items()[0].GetInteger(begin) && turn.Items()[1].GetInteger(end));
        own += end - begin;
      }
      EXPECT_LT(own, ids);
    } else {
      own = ids;
    }
    EXPECT_EQ(std::ssize(line.Find("log_p")->Items()), own);
    said += own;
  }
  ASSERT_EQ(lines, 16);
  EXPECT_DOUBLE_EQ(run.metrics.at("answer_tokens")[0], static_cast<double>(said) / 16);
}

TEST_F(EpisodesBase, FaultsAreNamed) {
  const auto fault = [&](const std::function<void()>& act) {
    try {
      act();
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  using testing::HasSubstr;
  EXPECT_THAT(fault([&] { Make("grpo", "episodes: {peer: \"tcp://x:1\"}\n"); }),
              HasSubstr("turns"));
  WriteTinyModel(folder_.Path("other"),
                 "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}");
  SpeakerOptions options = Speaking();
  options.model = folder_.Path("other");
  EXPECT_THAT(fault([&] { Speaker speaker(options); }), HasSubstr("no token that ends an answer"));
  const std::string turn = "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n";
  options.episodes.role = "tool";
  for (const auto& [chat, reason] :
       {std::pair{"{% if m.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}" + turn,
                  "cannot write a turn of the tool"},
        {"{% if m.role != 'tool' %}" + turn + "{% endif %}", "leaves out what the tool says"}}) {
    RemoveTree(options.model);
    WriteTinyModel(options.model, "{% for m in messages %}" + chat + "{% endfor %}");
    EXPECT_THAT(fault([&] { Speaker speaker(options); }), HasSubstr(reason));
  }
}

// A template that shows a tool's answer to the model as a user's words with marks, as Qwen's does.
TEST_F(EpisodesBase, AToolSpeaksAsTheTemplateWritesIt) {
  WriteEpisodeModel(folder_.Path("tools"),
                    "{% for m in messages %}{% if m.role == 'tool' %}<|im_start|>user\n"
                    "<tool_response>\n{{ m.content }}\n</tool_response><|im_end|>\n{% else %}"
                    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endif %}{% endfor %}"
                    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}");
  SpeakerOptions options = Speaking();
  options.model = folder_.Path("tools");
  options.episodes.role = "tool";
  const Speaker speaker(options);
  const auto model = LoadTransformer({}, speaker.file(), {.precision = Precision::kFloat32});
  Samples samples = Asked(speaker);
  speaker.Speak({}, *model, samples);
  int64_t replies = 0;
  for (int64_t i = 0; i < samples.texts.count(); ++i) {
    const auto ids = samples.texts.Of(std::span<const int32_t>(samples.ids), i);
    const auto turns = samples.TurnsOf(i);
    for (size_t turn = 1; turn < turns.size(); ++turn, ++replies) {
      const int64_t end = turns[turn - 1].second;
      EXPECT_EQ(speaker.tokenizer().Decode(ids.subspan(end, turns[turn].first - end)),
                "\n<|im_start|>user\n<tool_response>\ngo on " + std::to_string(turn) +
                    "\n</tool_response><|im_end|>\n<|im_start|>assistant\n");
    }
  }
  EXPECT_GT(replies, 4);
}

TEST(TaskEpisodes, AreWhatTheirRulesSay) {
  const Task product("product"), guess("guess");
  EXPECT_EQ(product.Answer("calc 37 * 85", "3145", true).text, "3145");
  EXPECT_FALSE(product.Answer(" calc 37 * 85 ", "3145", true).over);
  EXPECT_EQ(product.Answer("calc 2 - 85", "3145", true).text, "-83");
  EXPECT_EQ(product.Answer("calc 37 x 85", "3145", true).text, "error");
  EXPECT_EQ(product.Answer("calc 37", "3145", true).text, "error");
  EXPECT_EQ(product.Answer("calc 99999999999 * 2", "3145", true).text, "error");
  const TaskReply right = product.Answer("3145", "3145", true);
  EXPECT_TRUE(right.over);
  EXPECT_EQ(right.score, 1);
  EXPECT_EQ(product.Answer("3146", "3145", true).score, 0);
  EXPECT_EQ(product.Answer("3145", "3145", false).score, 0);
  EXPECT_TRUE(product.Answer("calc 37 * 85", "3145", false).over);
  EXPECT_EQ(guess.Answer("500", "774", true).text, "higher");
  EXPECT_EQ(guess.Answer("800", "774", true).text, "lower");
  EXPECT_DOUBLE_EQ(guess.Answer("500", "774", true).score, 0.5 * (1 - 274.0 / 900));
  EXPECT_EQ(guess.Answer("774", "774", true).score, 1);
  EXPECT_TRUE(guess.Answer("774", "774", true).over);
  EXPECT_TRUE(guess.Answer("seven", "774", true).over);
  EXPECT_TRUE(guess.Answer("99", "774", true).over);
  const auto words = [](const Task& task) {
    std::vector<std::string> all;
    for (const JsonValue& message : task.held_out()[0].messages.Items()) {
      all.push_back(message.Find("content")->AsString());
    }
    all.erase(all.begin());  // of the system
    all.pop_back();          // what is asked
    return all;
  };
  using testing::ElementsAre;
  EXPECT_THAT(words(product), ElementsAre("54 * 21", "calc 54 * 21", "1134", "1134", "30 * 86",
                                          "calc 30 * 86", "2580", "2580"));
  EXPECT_THAT(words(guess),
              ElementsAre("Begin.", "549", "higher", "774", "Begin.", "549", "lower", "324"));
}

}  // namespace
}  // namespace weft
