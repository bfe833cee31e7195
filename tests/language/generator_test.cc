// Answers depend on their prompt, options and seed alone, and their log-probabilities are those
// that training sees.
#include "language/generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "language/language_head.h"
#include "tests/language/tiny_model.h"

namespace weft {
namespace {

using testing::HasSubstr;

GenerationRequest Ask(std::vector<int32_t> prompt, uint64_t seed) {
  return {.prompt = std::move(prompt), .max_new_tokens = 70, .seed = seed};
}

// A prompt of `length` tokens.
std::vector<int32_t> Prompt(int64_t length, int32_t first) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < length; ++i) ids.push_back(static_cast<int32_t>((first + 7 * i) % 60));
  return ids;
}

class Precisions : public testing::TestWithParam<Precision> {};
INSTANTIATE_TEST_SUITE_P(Precisions, Precisions,
                         testing::Values(Precision::kFloat32, Precision::kBFloat16));

TEST_P(Precisions, AnAnswerIsTheSameAloneAndInAnyBatch) {
  const auto model = MakeTiny(TinyConfig(), GetParam());
  std::vector<GenerationRequest> requests = {Ask(Prompt(3, 1), 1), Ask(Prompt(100, 5), 2),
                                             Ask(Prompt(64, 9), 3), Ask(Prompt(1, 2), 4)};
  requests[2].samples = 3;
  requests[3].sampling = {.temperature = 0.7, .top_k = 20, .top_p = 0.9, .repetition_penalty = 1.2};
  const Context context;
  const auto together = Generate(context, *model, requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto alone = Generate(context, *model, {&requests[i], 1});
    for (int64_t sample = 0; sample < requests[i].samples; ++sample) {
      EXPECT_EQ(alone[0][sample].ids, together[i][sample].ids);
      EXPECT_EQ(alone[0][sample].log_probabilities, together[i][sample].log_probabilities);
      EXPECT_EQ(alone[0][sample].finish, FinishReason::kLength);
    }
  }
  EXPECT_NE(together[2][0].ids, together[2][1].ids);
  ThreadPool pool(3);
  const Context threads{.pool = &pool};
  // Few rows at a time and prompts read in small pieces.
  const auto pieces = Generate(threads, *model, requests, {.max_rows = 2, .max_prompt_tokens = 17});
  for (size_t i = 0; i < requests.size(); ++i) {
    for (int64_t sample = 0; sample < requests[i].samples; ++sample) {
      EXPECT_EQ(pieces[i][sample].ids, together[i][sample].ids);
    }
  }
}

TEST_P(Precisions, LogProbabilitiesHaveTheBitsOfTheTrainingPath) {
  const auto model = MakeTiny(TinyConfig(), GetParam());
  const Context context;
  GenerationRequest request = Ask(Prompt(20, 3), 8);
  request.sampling.temperature = 0.7;
  const GeneratedAnswer answer = Generate(context, *model, {&request, 1})[0][0];
  std::vector<int32_t> ids = request.prompt, positions, targets;
  ids.insert(ids.end(), answer.ids.begin(), answer.ids.end());
  for (size_t i = 0; i < ids.size(); ++i) {
    positions.push_back(static_cast<int32_t>(i));
    const bool answered = i + 1 >= request.prompt.size() && i + 1 < ids.size();
    targets.push_back(answered ? ids[i + 1] : -1);
  }
  const kernels::AttentionSpan span{0, std::ssize(ids), 0, nullptr};
  const Tensor rows =
      model->Forward(context, {.ids = ids, .positions = positions, .spans = {&span, 1}}, nullptr);
  const TokenScores scores = ScoreTokens(context, *model, rows, targets, {.temperature = 0.7f});
  for (size_t i = 0; i < answer.ids.size(); ++i) {
    EXPECT_EQ(scores.log_probability.data<float>()[request.prompt.size() - 1 + i],
              answer.log_probabilities[i])
        << "token " << i;
  }
}

// Turns of a conversation: each prompt begins with what was said before.
TEST_P(Precisions, ATurnOverKeptKeysHasTheBitsOfOneReadWhole) {
  const auto model = MakeTiny(TinyConfig(), GetParam());
  const Context context;
  const auto run = [](Generator& generator, const GenerationRequest& request) {
    GeneratedAnswer answer;
    generator.Add(request);
    while (!generator.idle()) {
      generator.Step([&](const GenerationEvent& event) {
        answer.ids.push_back(event.id);
        answer.log_probabilities.push_back(event.log_probability);
      });
    }
    return answer;
  };
  Generator talk(context, *model, {.kept_tokens = 256});
  std::vector<int32_t> said = Prompt(30, 3);
  int64_t before = 0;
  for (int turn = 0; turn < 3; ++turn) {
    GenerationRequest request{.prompt = said, .max_new_tokens = 20, .seed = 7};
    request.first_sample = static_cast<uint64_t>(turn);
    const GeneratedAnswer got = run(talk, request);
    const GeneratedAnswer want = Generate(context, *model, {&request, 1})[0][0];
    EXPECT_EQ(got.ids, want.ids) << "turn " << turn;
    EXPECT_EQ(got.log_probabilities, want.log_probabilities) << "turn " << turn;
    // All but the last token of the answer, which was drawn and not read.
    EXPECT_EQ(talk.reused_tokens() - before, turn == 0 ? 0 : std::ssize(said) - 15 - 1);
    before = talk.reused_tokens();
    said.insert(said.end(), got.ids.begin(), got.ids.end());
    for (int32_t id = 0; id < 15; ++id) said.push_back((id + turn) % 60);
  }
  // A prompt that leaves the conversation in the middle of a page reads the rest.
  GenerationRequest other{.prompt = said, .max_new_tokens = 20, .seed = 9};
  other.prompt.resize(100);
  other.prompt[70] = (other.prompt[70] + 1) % 60;
  const GeneratedAnswer got = run(talk, other);
  EXPECT_EQ(got.log_probabilities, Generate(context, *model, {&other, 1})[0][0].log_probabilities);
  EXPECT_EQ(talk.reused_tokens() - before, 70);
  // The same prompt again: its last token is read.
  EXPECT_EQ(run(talk, other).ids, got.ids);
  EXPECT_EQ(talk.reused_tokens() - before, 70 + 99);
}

TEST_P(Precisions, PromptsThatBeginAlikeReadThatOnce) {
  const auto model = MakeTiny(TinyConfig(), GetParam());
  const Context context;
  for (const int64_t common : {15, 16, 40, 64, 100}) {
    Generator generator(context, *model, {.max_prompt_tokens = 33});
    std::vector<GenerationRequest> requests;
    for (int32_t i = 0; i < 3; ++i) {
      std::vector<int32_t> prompt = Prompt(common, 5);
      for (int32_t k = 0; k < 4 * i; ++k) prompt.push_back(10 + i);  // the first is no longer
      requests.push_back(Ask(prompt, static_cast<uint64_t>(i)));
      requests.back().max_new_tokens = 5;
      requests.back().samples = 2;
      generator.Add(requests.back());
    }
    generator.ReadCommonBeginning();
    std::vector<std::vector<float>> got(6);
    while (!generator.idle()) {
      generator.Step([&](const GenerationEvent& event) {
        got[2 * event.request + event.sample].push_back(event.log_probability);
      });
    }
    EXPECT_EQ(generator.reused_tokens(), common < 16 ? 0 : 3 * common - 1);
    for (size_t i = 0; i < 3; ++i) {
      const auto alone = Generate(context, *model, {&requests[i], 1});
      for (size_t sample = 0; sample < 2; ++sample) {
        EXPECT_EQ(got[2 * i + sample], alone[0][sample].log_probabilities) << common;
      }
    }
  }
}

TEST(Generator, KeepsNoMoreTokensThanItMay) {
  const auto model = MakeTiny(TinyConfig());
  const Context context;
  Generator generator(context, *model, {.kept_tokens = 128});
  const auto ignore = [](const GenerationEvent&) {};
  for (int32_t first = 0; first < 5; ++first) {
    generator.Add({.prompt = Prompt(50, first), .max_new_tokens = 10});
    while (!generator.idle()) generator.Step(ignore);
  }
  EXPECT_EQ(generator.cache_bytes(), 2 * model->page_bytes());  // two of 59 tokens
  generator.Add({.prompt = Prompt(150, 9), .max_new_tokens = 10});
  while (!generator.idle()) generator.Step(ignore);
  EXPECT_EQ(generator.cache_bytes(), 2 * model->page_bytes()) << "too long to be kept";
}

TEST(Generator, StopsAtAStopIdAndWhenCancelled) {
  const auto model = MakeTiny(TinyConfig());
  const Context context;
  GenerationRequest request = Ask(Prompt(4, 3), 8);
  const GeneratedAnswer free = Generate(context, *model, {&request, 1})[0][0];
  request.stop_ids = {free.ids[5]};
  const GeneratedAnswer stopped = Generate(context, *model, {&request, 1})[0][0];
  EXPECT_EQ(stopped.finish, FinishReason::kStop);
  EXPECT_LE(stopped.ids.size(), 6u);
  EXPECT_EQ(stopped.ids.back(), free.ids[5]);

  Generator generator(context, *model);
  const int64_t number = generator.Add(Ask(Prompt(4, 3), 8));
  int tokens = 0;
  FinishReason last = FinishReason::kNone;
  while (!generator.idle()) {
    generator.Step([&](const GenerationEvent& event) {
      last = event.finish;
      if (event.id >= 0 && ++tokens == 3) generator.Cancel(number);
    });
  }
  EXPECT_EQ(tokens, 3);
  EXPECT_EQ(last, FinishReason::kCancelled);
  EXPECT_EQ(generator.cache_bytes(), 0);
}

TEST(Generator, EndsOneOfSeveralAnswersAndLeavesTheOthers) {
  const auto model = MakeTiny(TinyConfig());
  const Context context;
  GenerationRequest request = Ask(Prompt(4, 3), 8);
  request.samples = 3;
  const auto free = Generate(context, *model, {&request, 1})[0];
  Generator generator(context, *model);
  const int64_t number = generator.Add(request);
  std::vector<std::vector<int32_t>> ids(3);
  std::vector<FinishReason> finish(3);
  while (!generator.idle()) {
    generator.Step([&](const GenerationEvent& event) {
      finish[event.sample] = event.finish;
      if (event.id >= 0) ids[event.sample].push_back(event.id);
    });
    if (ids[1].size() == 5) generator.Cancel(number, 1);
  }
  EXPECT_EQ(ids[1].size(), 5u);
  EXPECT_EQ(finish[1], FinishReason::kCancelled);
  for (const int i : {0, 2}) {
    EXPECT_EQ(ids[i], free[i].ids);
    EXPECT_EQ(finish[i], FinishReason::kLength);
  }
}

TEST(Generator, ReportsTheLikeliestTokensOfEachDraw) {
  const auto model = MakeTiny(TinyConfig());
  const Context context;
  for (const double top_p : {1.0, 0.5}) {
    GenerationRequest request = Ask(Prompt(4, 3), 8);
    request.sampling = {.temperature = 0.7, .top_p = top_p};
    const GeneratedAnswer plain = Generate(context, *model, {&request, 1})[0][0];
    request.likeliest = 60;  // all
    Generator generator(context, *model);
    generator.Add(request);
    std::vector<int32_t> ids;
    while (!generator.idle()) {
      generator.Step([&](const GenerationEvent& event) {
        ids.push_back(event.id);
        double mass = 0;
        bool found = false;
        for (size_t i = 0; i < event.likeliest.size(); ++i) {
          const SampledToken& token = event.likeliest[i];
          mass += std::exp(token.log_probability);
          EXPECT_LE(token.log_probability, event.likeliest[i > 0 ? i - 1 : 0].log_probability);
          if (token.id != event.id) continue;
          found = true;
          EXPECT_EQ(token.log_probability, event.log_probability);
        }
        EXPECT_TRUE(found);
        EXPECT_NEAR(mass, 1, 1e-5);
        EXPECT_EQ(event.likeliest.size() < 60, top_p < 1);
      });
    }
    EXPECT_EQ(ids, plain.ids);
  }
}

TEST(Generator, NamesBothLengthsOfWhatDoesNotFit) {
  const auto model = MakeTiny(TinyConfig());
  const Context context;
  Generator generator(context, *model);
  try {
    generator.Add(Ask(Prompt(200, 1), 1));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("200 tokens"));
    EXPECT_THAT(error.what(), HasSubstr("256"));
  }
  EXPECT_THROW(generator.Add(Ask({}, 1)), Error);
  EXPECT_THROW(generator.Add(Ask({60}, 1)), Error);
}

}  // namespace
}  // namespace weft
