#include "environments/environment_fragment.h"

#include <deque>
#include <gtest/gtest.h>
#include <vector>

#include "allocation_count.h"

namespace weft {
namespace {

// Ports of one fragment, fed and read by the test.
class FakePorts final : public Ports {
 public:
  Message Read(int) override {
    Message message = std::move(inputs.front());
    inputs.pop_front();
    return message;
  }
  void Write(int, Message message) override { outputs.push_back(std::move(message)); }
  bool Connected(int) const override { return true; }
  void AllReduce(std::span<Tensor>) override {}
  void Log(std::string_view, double) override {}
  void RequestCheckpoint() override {}
  void Stop(std::string_view) override {}

  void Act(int64_t rows, int64_t action) {
    Message message;
    message.body.Set("action", Tensor::Full({rows}, static_cast<double>(action), DType::kInt64));
    inputs.push_back(std::move(message));
  }

  std::deque<Message> inputs, outputs;
};

EnvironmentConfig CartPole(int64_t rows) {
  EnvironmentConfig config;
  config.SetId("CartPole-v1");
  config.rows = rows;
  return config;
}

TEST(EnvironmentFragment, PrimesItsOutputAndAnswersEachActionWithATimeStep) {
  const FragmentFactory factory = EnvironmentFragment(CartPole(3), 1);
  ASSERT_TRUE(factory.ports.outputs.at(0).primed);
  const auto fragment = factory.make({});
  FakePorts ports;
  fragment->Start(ports);
  ports.Act(3, 1);
  fragment->Step(ports);
  ASSERT_EQ(ports.outputs.size(), 2u);
  for (const Message& message : ports.outputs) {
    EXPECT_EQ(message.body.At("observation").shape(), Shape({3, 4}));
    for (const char* name : {"reward", "discount", "type", "episode_id"}) {
      EXPECT_EQ(message.body.At(name).shape(), Shape({3})) << name;
    }
  }
  EXPECT_EQ(ports.outputs[0].body.At("type").data<uint8_t>()[0],
            static_cast<uint8_t>(StepType::kFirst));
  EXPECT_EQ(ports.outputs[1].body.At("type").data<uint8_t>()[0],
            static_cast<uint8_t>(StepType::kMid));
  EXPECT_EQ(ports.outputs[1].version, 1);
}

TEST(EnvironmentFragment, SplitsTheRowsOverItsReplicas) {
  const auto whole = EnvironmentFragment(CartPole(4), 1).make({});
  const auto second =
      EnvironmentFragment(CartPole(4), 1).make({.index = 1, .count = 2, .context = {}});
  FakePorts whole_ports, second_ports;
  whole->Start(whole_ports);
  second->Start(second_ports);
  const Tensor all = whole_ports.outputs.at(0).body.At("observation");
  const Tensor half = second_ports.outputs.at(0).body.At("observation");
  ASSERT_EQ(half.shape(), Shape({2, 4}));
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(half.data<float>()[i], all.data<float>()[8 + i]);
  EXPECT_THROW(EnvironmentFragment(CartPole(4), 1).make({.index = 0, .count = 3, .context = {}}),
               Error);
}

TEST(EnvironmentFragment, NeverWritesIntoAMessageThatIsHeldAndReusesThoseThatAreNot) {
  const auto fragment = EnvironmentFragment(CartPole(2), 1).make({});
  FakePorts ports;
  fragment->Start(ports);
  const Message held = ports.outputs.front();
  const Tensor copy = held.body.At("observation").Clone();
  ports.outputs.clear();
  std::vector<const std::byte*> buffers;
  for (int i = 0; i < 4; ++i) {
    ports.Act(2, 1);
    fragment->Step(ports);
    buffers.push_back(ports.outputs.front().body.At("observation").raw());
    ports.outputs.clear();
  }
  EXPECT_EQ(std::vector<float>(held.body.At("observation").data<float>().begin(),
                               held.body.At("observation").data<float>().end()),
            std::vector<float>(copy.data<float>().begin(), copy.data<float>().end()));
  for (const std::byte* buffer : buffers) EXPECT_EQ(buffer, buffers.front());
}

TEST(EnvironmentFragment, AllocatesOnlyTheListOfAMessage) {
  const auto fragment = EnvironmentFragment(CartPole(64), 1).make({});
  FakePorts ports;
  fragment->Start(ports);
  for (int i = 0; i < 4; ++i) {
    ports.Act(64, 1);
    ports.outputs.clear();
    const int64_t before = AllocationCount(), tensors = TensorAllocator().system_calls;
    fragment->Step(ports);
    if (i == 0) continue;  // the pool has grown
    EXPECT_LE(AllocationCount() - before, 1);
    EXPECT_EQ(TensorAllocator().system_calls, tensors);
  }
}

TEST(EnvironmentFragment, LoadContinuesBitForBit) {
  const FragmentFactory factory = EnvironmentFragment(CartPole(2), 1);
  const auto fragment = factory.make({});
  const auto other = factory.make({});
  FakePorts ports, other_ports;
  fragment->Start(ports);
  for (int i = 0; i < 30; ++i) {
    ports.Act(2, i % 2);
    fragment->Step(ports);
  }
  other->Load(fragment->Save());
  for (int i = 0; i < 50; ++i) {
    ports.Act(2, 1);
    other_ports.Act(2, 1);
    fragment->Step(ports);
    other->Step(other_ports);
    EXPECT_EQ(Hash(ports.outputs.back().body), Hash(other_ports.outputs.back().body));
    EXPECT_EQ(ports.outputs.back().version, other_ports.outputs.back().version);
  }
}

}  // namespace
}  // namespace weft
