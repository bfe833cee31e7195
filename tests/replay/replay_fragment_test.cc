#include "replay/replay_fragment.h"

#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <vector>

#include "base/check.h"
#include "base/random.h"

namespace weft {
namespace {

enum Type : uint8_t { kFirst, kMid, kLast };

// Ports over plain queues, which insist that a step reads exactly what it said it needs.
class FakePorts final : public Ports {
 public:
  Message Read(int input) override {
    WEFT_CHECK(needs.Has(input) && !inputs[input].empty()) << "input " << input;
    Message message = std::move(inputs[input].front());
    inputs[input].pop_front();
    return message;
  }
  void Write(int, Message message) override { written.push_back(std::move(message)); }
  bool Connected(int) const override { return true; }
  void AllReduce(std::span<Tensor>) override {}
  void Log(std::string_view, double) override {}
  void RequestCheckpoint() override {}
  void Stop(std::string_view) override {}

  PortSet needs;
  std::deque<Message> inputs[2];
  std::vector<Message> written;
};

ReplayFragmentOptions Options() {
  ReplayFragmentOptions options;
  options.config.capacity = 50;
  options.config.batch_size = 4;
  options.config.min_size = 8;
  options.observation = {{"observation", {1}}};
  options.carried = {{"action", {}, DType::kInt64}};
  options.rows = 2;
  options.total_steps = 100;
  options.seed = 5;
  return options;
}

// Episodes of four transitions; observations count ticks.
TensorMap Steps(int64_t first_tick, int64_t ticks) {
  Tensor observation = Tensor::Empty({ticks, 2, 1}), reward = Tensor::Full({ticks, 2}, 1);
  Tensor discount = Tensor::Full({ticks, 2}, 1), type = Tensor::Empty({ticks, 2}, DType::kUInt8);
  for (int64_t t = 0; t < ticks; ++t) {
    for (int64_t row = 0; row < 2; ++row) {
      const auto i = static_cast<size_t>(t * 2 + row);
      const int64_t place = (first_tick + t) % 5;
      observation.data<float>()[i] = static_cast<float>((first_tick + t) * 2 + row);
      type.data<uint8_t>()[i] = place == 0 ? kFirst : place == 4 ? kLast : kMid;
    }
  }
  TensorMap steps;
  steps.Set("observation", observation);
  steps.Set("action", Tensor::Full({ticks, 2}, 3, DType::kInt64));
  steps.Set("reward", reward);
  steps.Set("discount", discount);
  steps.Set("type", type);
  return steps;
}

// Hands one chunk in and steps until it is answered; returns the answer. A prioritised fragment
// gets td errors that depend on the keys alone.
std::vector<Message> Feed(Fragment& fragment, FakePorts& ports, TensorMap steps) {
  ports.inputs[0].push_back({std::move(steps), 0});
  ports.written.clear();
  for (int i = 0; i < 100; ++i) {
    ports.needs = fragment.Needs();
    fragment.Step(ports);
    const Message& message = ports.written.back();
    if (HasBatch(message)) {
      TensorMap answer;
      answer.Set("index", message.body.At("index"));
      answer.Set("key", message.body.At("key"));
      Tensor error = Tensor::Empty({message.body.At("key").elements()});
      for (size_t k = 0; k < error.data<float>().size(); ++k) {
        error.data<float>()[k] = static_cast<float>(message.body.At("key").data<int64_t>()[k] % 7);
      }
      answer.Set("td_error", error);
      ports.inputs[1].push_back({answer, 0});
    }
    if (message.body.At("last").data<uint8_t>()[0] == 1) return ports.written;
  }
  ADD_FAILURE() << "no message was marked as the last";
  return {};
}

TEST(ReplayFragment, WritesExactlyTheBatchesThatTheStepsAreDue) {
  ReplayFragmentOptions options = Options();
  options.config.updates_per_step = 0.3;
  const auto fragment = MakeReplay(options).make({});
  FakePorts ports;
  int64_t updates = 0, steps = 0, counted = 0;
  for (int64_t tick = 0; tick < 40; ++tick) {
    const auto messages = Feed(*fragment, ports, Steps(tick, 1));
    if (tick % 5 != 0) steps += 2;
    // The table reaches 8 rows with the chunk that brings step 8: from it on, steps earn updates.
    if (steps >= 8 && tick % 5 != 0) counted += 2;
    int64_t batches = 0;
    for (const Message& message : messages) {
      EXPECT_EQ(message.body.At("env_steps").data<int64_t>()[0], steps);
      EXPECT_EQ(message.body.At("last").data<uint8_t>()[0], &message == &messages.back());
      EXPECT_EQ(message.version, updates + batches);
      if (!HasBatch(message)) {
        EXPECT_EQ(messages.size(), 1u)
            << "only a chunk without updates is answered without a batch";
        EXPECT_EQ(message.body.size(), 2u);
        continue;
      }
      ++batches;
      EXPECT_EQ(message.body.At("observation").shape(), Shape({4, 1}));
      EXPECT_EQ(message.body.At("next_observation").shape(), Shape({4, 1}));
    }
    updates += batches;
    EXPECT_EQ(updates, counted * 3 / 10) << "tick " << tick;
  }
  EXPECT_GT(updates, 10);
}

TEST(ReplayFragment, TransitionsComeInTheOrderOfRowAndStepWhateverTheChunks) {
  for (const bool shared : {false, true}) {
    ReplayFragmentOptions options = Options();
    options.config.shared_frames = shared;
    options.config.min_size = 40;  // one update after all data is in
    options.config.n_step = 2;
    options.config.updates_per_step = 0.0209;
    const auto fragment = MakeReplay(options).make({});
    FakePorts ports;
    const auto messages = Feed(*fragment, ports, Steps(0, 30));
    ASSERT_EQ(messages.size(), 1u);
    ASSERT_TRUE(HasBatch(messages[0])) << "48 steps at 0.0209 updates each";
    for (const Message& message : messages) {
      const auto keys = message.body.At("key").data<int64_t>();
      const auto first = message.body.At("observation").data<float>();
      const auto next = message.body.At("next_observation").data<float>();
      for (size_t i = 0; i < keys.size(); ++i) {
        const int64_t row = keys[i] / 24, step = keys[i] % 24;
        const int64_t tick = step / 4 * 5 + step % 4;
        EXPECT_EQ(first[i], static_cast<float>(tick * 2 + row));
        EXPECT_EQ(next[i], static_cast<float>((tick + (step % 4 == 3 ? 1 : 2)) * 2 + row));
      }
    }
  }
}

TEST(ReplayFragment, PrioritisedSamplingWaitsForTheAnswerToTheLastBatch) {
  ReplayFragmentOptions options = Options();
  options.config.prioritised = true;
  const auto fragment = MakeReplay(options).make({});
  FakePorts ports;
  EXPECT_EQ(fragment->Needs(), PortSet({0}));
  Feed(*fragment, ports, Steps(0, 6));
  EXPECT_EQ(fragment->Needs(), PortSet({0, 1})) << "the answer to the last batch, before new data";
  ports.inputs[0].push_back({Steps(6, 2), 0});
  ports.needs = fragment->Needs();
  fragment->Step(ports);
  EXPECT_EQ(fragment->Needs(), PortSet({1}));
}

TEST(ReplayFragment, UniformSamplingNeverReadsPriorities) {
  const auto fragment = MakeReplay(Options()).make({});
  FakePorts ports;
  ports.inputs[0].push_back({Steps(0, 6), 0});
  ports.needs = fragment->Needs();
  fragment->Step(ports);
  EXPECT_EQ(fragment->Needs(), PortSet{}) << "more batches are due";
}

TEST(ReplayFragment, DrawsDependOnTheNumberOfTheUpdateAlone) {
  // The same data in other chunks, with the ratio such that update 0 falls after all of it.
  std::vector<uint64_t> hashes;
  for (const int64_t chunk : {5, 10, 30}) {
    ReplayFragmentOptions options = Options();
    options.config.min_size = 48;
    options.config.updates_per_step = chunk == 5 ? 0.125 : chunk == 10 ? 0.0625 : 0.020834;
    const auto fragment = MakeReplay(options).make({});
    FakePorts ports;
    std::vector<Message> messages;
    for (int64_t tick = 0; tick < 30; tick += chunk)
      messages = Feed(*fragment, ports, Steps(tick, chunk));
    ASSERT_TRUE(HasBatch(messages.front()));
    // The slots drawn; which rows lie there depends on the chunks.
    TensorMap drawn;
    drawn.Set("index", messages.front().body.At("index"));
    hashes.push_back(Hash(drawn));
  }
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_EQ(hashes[0], hashes[2]);
}

TEST(ReplayFragment, ALoadedFragmentGoesOnAsTheOriginal) {
  for (const bool prioritised : {false, true}) {
    for (const bool shared : {false, true}) {
      ReplayFragmentOptions options = Options();
      options.config.prioritised = prioritised;
      options.config.shared_frames = shared;
      options.config.n_step = 3;
      options.config.updates_per_step = 0.7;
      const auto factory = MakeReplay(options);
      auto original = factory.make({}), loaded = factory.make({});
      FakePorts ports, other;
      for (int64_t tick = 0; tick < 21; tick += 3) Feed(*original, ports, Steps(tick, 3));
      loaded->Load(original->Save());
      other.inputs[1] = ports.inputs[1];
      for (int64_t tick = 21; tick < 90; tick += 3) {
        const auto a = Feed(*original, ports, Steps(tick, 3)),
                   b = Feed(*loaded, other, Steps(tick, 3));
        ASSERT_EQ(a.size(), b.size());
        for (size_t i = 0; i < a.size(); ++i) {
          ASSERT_EQ(Hash(a[i].body), Hash(b[i].body)) << "tick " << tick << ", message " << i;
          ASSERT_EQ(a[i].version, b[i].version);
        }
      }
      EXPECT_EQ(Hash(original->Save()), Hash(loaded->Save()));
    }
  }
}

TEST(ReplayFragment, BodiesAreUsedAgainOnceTheReaderDroppedThem) {
  const auto fragment = MakeReplay(Options()).make({});
  FakePorts ports;
  std::set<const std::byte*> memory;
  for (int64_t tick = 0; tick < 50; ++tick) {
    for (const Message& message : Feed(*fragment, ports, Steps(tick, 1))) {
      if (HasBatch(message)) memory.insert(message.body.At("observation").raw());
    }
    ports.inputs[1].clear();
  }
  EXPECT_LE(memory.size(), 3u);
}

TEST(ReplayConfig, ImpossibleCombinationsNameTheKey) {
  const auto problem = [](const char* yaml) -> std::string {
    ReplayConfig config;
    try {
      ConfigSource::Text(yaml, "test.yaml").Parse(config);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
      return error.message();
    }
    return "no error";
  };
  EXPECT_NE(problem("capacity: 100\nbatch_size: 101\nmin_size: 1").find("batch_size"),
            std::string::npos);
  EXPECT_NE(problem("capacity: 100\nbatch_size: 10\nmin_size: 101").find("min_size"),
            std::string::npos);
  EXPECT_NE(problem("alpha: -1").find("alpha"), std::string::npos);
  EXPECT_NE(problem("n_step: 0").find("n_step"), std::string::npos);
  EXPECT_EQ(problem("capacity: 100\nbatch_size: 10\nmin_size: 100"), "no error");
}

}  // namespace
}  // namespace weft
