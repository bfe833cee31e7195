// The compiled backward pass equals the interpreted one bit for bit, on random graphs and on losses
// as algorithms have them, and does what it promises: fuses, removes copies, tiles, reuses memory,
// allocates nothing.
#include "tensor/gradient_plan.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

#include "base/thread_pool.h"
#include "tests/tensor/gradient_check.h"

namespace weft {
namespace {

using Inputs = std::span<const Tensor>;

// Values [kRows, kColumns], combined at random; every value is used, many more than once.
constexpr int64_t kRows = 6, kColumns = 8;

Tensor RandomOp(Rng& rng, Inputs p, std::vector<Tensor>& values) {
  const auto pick = [&]() -> const Tensor& { return values[rng.Below(values.size())]; };
  const Tensor& x = pick();
  const auto activation = static_cast<Activation>(rng.Below(4));
  switch (rng.Below(16)) {
    case 0:
      return Tanh(x);
    case 1:
      return Sigmoid(x);
    case 2:
      return Add(x, pick());
    case 3:
      return Mul(x, pick());
    case 4:
      return Sub(pick(), x);
    case 5:
      return Minimum(x, pick());
    case 6:
      return Affine(x, 0.5f, 0.1f);
    case 7:
      return Shift(x, 0.3f);
    case 8:
      return Clamp(x, -0.5f, 0.5f);
    case 9:
      return Dense(x, p[rng.Below(2)], p[2], activation);
    case 10:
      return Dense(x, p[rng.Below(2)], Tensor(), activation);
    case 11:
      return LayerNorm(x, p[3], p[2]);
    case 12:
      return Softmax(x);
    case 13: {
      const Tensor parts[] = {SliceLast(x, 3, kColumns), SliceLast(pick(), 0, 3)};
      return ConcatLast(parts);
    }
    case 14:
      return Add(x, Reshape(SumLast(pick()), {kRows, 1}));
    default:
      return Reshape(Reshape(x, {kRows * kColumns}), {kRows, kColumns});
  }
}

TEST(GradientPlan, EqualsTheInterpreterOnRandomGraphs) {
  const Tensor x = Random({kRows, kColumns}, 1);
  const std::vector<Tensor> parameters = {
      RandomWeight(kColumns, kColumns, 2), RandomWeight(kColumns, kColumns, 3),
      Random({kColumns}, 4), Random({kColumns}, 5), Random({kRows, kColumns}, 6)};
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    ExpectPlanEqualsInterpreter(parameters, [&](Inputs p) {
      Rng rng(seed, Purpose::kTest, 7);
      std::vector<Tensor> values = {x, p[4], Dense(x, p[0], p[2], Activation::kTanh)};
      const uint64_t count = 2 + rng.Below(18);
      for (uint64_t i = 0; i < count; ++i) values.push_back(RandomOp(rng, p, values));
      Tensor loss = Mean(values.back());
      for (size_t i = 1; i + 1 < values.size(); ++i) loss = Add(loss, Mean(Square(values[i])));
      return loss;
    });
  }
}

TEST(GradientPlan, EqualsTheInterpreterOnLongElementwiseChainsAndThreads) {
  ThreadPool pool(2);
  const std::vector<Tensor> parameters = {Random({70001}, 1), Random({70001}, 2, 1, 2)};
  const Loss loss = [](Inputs p) {
    const Tensor ratio = Exp(Sub(p[0], Log(p[1])));
    return Mean(Minimum(Mul(ratio, p[0]), Mul(Clamp(ratio, 0.8f, 1.2f), p[0])));
  };
  const auto interpreted = GradientsOf(parameters, loss, false);
  const auto planned = GradientsOf(parameters, loss, true);
  const Context threads{.pool = &pool};
  std::vector<Tensor> p = {parameters[0].Clone(), parameters[1].Clone()};
  Tape tape(Handles(p));
  const ContextScope scope(threads);
  const Tape::Recording recording(tape);
  const auto threaded = tape.Gradient(loss(p), p);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(SameBits(planned[i], interpreted[i]));
    EXPECT_TRUE(SameBits(threaded[i], interpreted[i]));
  }
}

// More gradients at once than a tile has buffers, each used at the end again.
TEST(GradientPlan, EqualsTheInterpreterWhenTileBuffersRunOut) {
  ExpectPlanEqualsInterpreter({Random({20000}, 1)}, [](Inputs p) {
    std::vector<Tensor> branches;
    for (int i = 0; i < 12; ++i)
      branches.push_back(Apply(Unary::kSin, Scale(p[0], 1 + 0.1f * static_cast<float>(i))));
    Tensor sum = Square(branches[0]);
    for (const Tensor& branch : branches) sum = Add(Mul(sum, branch), Tanh(branch));
    for (const Tensor& branch : branches) sum = Mul(sum, branch);
    return Mean(sum);
  });
}

struct Net {
  explicit Net(std::vector<int64_t> sizes, uint64_t seed) {
    for (size_t i = 0; i + 1 < sizes.size(); ++i) {
      parameters.push_back(RandomWeight(sizes[i], sizes[i + 1], seed + 2 * i));
      parameters.push_back(Random({sizes[i + 1]}, seed + 2 * i + 1));
    }
  }
  static Tensor Forward(Inputs p, Tensor x, Activation activation) {
    for (size_t i = 0; i < p.size(); i += 2) {
      x = Dense(x, p[i], p[i + 1], i + 2 < p.size() ? activation : Activation::kNone);
    }
    return x;
  }
  std::vector<Tensor> parameters;
};

// Clipped surrogate, clipped value loss and entropy over a shared trunk.
TEST(GradientPlan, EqualsTheInterpreterOnAPpoLoss) {
  const int64_t rows = 33;
  const Tensor observation = Random({rows, 17}, 1), advantage = Random({rows}, 2),
               old = Random({rows}, 3, -2, -1);
  const Tensor target = Random({rows}, 4), old_value = Random({rows}, 5);
  Tensor action = Tensor::Empty({rows}, DType::kInt64);
  for (int64_t i = 0; i < rows; ++i) action.data<int64_t>()[static_cast<size_t>(i)] = i % 6;
  const Net net({17, 64, 64}, 10), heads({64, 6}, 20), value_head({64, 1}, 30);
  std::vector<Tensor> parameters = net.parameters;
  parameters.insert(parameters.end(), heads.parameters.begin(), heads.parameters.end());
  parameters.insert(parameters.end(), value_head.parameters.begin(), value_head.parameters.end());
  ExpectPlanEqualsInterpreter(parameters, [&](Inputs p) {
    Tensor h = Dense(observation, p[0], p[1], Activation::kTanh);
    h = Dense(h, p[2], p[3], Activation::kTanh);
    const Tensor log_probabilities = LogSoftmax(Dense(h, p[4], p[5]));
    const Tensor value = Reshape(Dense(h, p[6], p[7]), {rows});
    const Tensor ratio = Exp(Sub(GatherLast(log_probabilities, action), old));
    const Tensor policy =
        Neg(Mean(Minimum(Mul(ratio, advantage), Mul(Clamp(ratio, 0.8f, 1.2f), advantage))));
    const Tensor clipped = Add(Clamp(Sub(value, old_value), -0.2f, 0.2f), old_value);
    const Tensor value_loss =
        Mean(Maximum(Square(Sub(value, target)), Square(Sub(clipped, target))));
    const Tensor entropy = Neg(Mean(SumLast(Mul(Exp(log_probabilities), log_probabilities))));
    return Sub(Add(policy, Scale(value_loss, 0.5f)), Scale(entropy, 0.01f));
  });
}

// Double, dueling.
TEST(GradientPlan, EqualsTheInterpreterOnADqnLoss) {
  const int64_t rows = 32;
  const Tensor observation = Random({rows, 4}, 1), target = Random({rows}, 2),
               weight = Random({rows}, 3, 0, 1);
  Tensor action = Tensor::Empty({rows}, DType::kInt64);
  for (int64_t i = 0; i < rows; ++i) action.data<int64_t>()[static_cast<size_t>(i)] = i % 2;
  const Net net({4, 32, 3}, 40);
  ExpectPlanEqualsInterpreter(net.parameters, [&](Inputs p) {
    const Tensor out = Net::Forward(p, observation, Activation::kRelu);
    const Tensor advantages = SliceLast(out, 1, 3);
    const Tensor mean = Scale(SumLast(advantages), 0.5f);
    const Tensor q = Add(Sub(advantages, Reshape(mean, {rows, 1})), SliceLast(out, 0, 1));
    const Tensor error = Abs(Sub(GatherLast(q, action), target));
    const Tensor quadratic = Minimum(error, Tensor::Scalar(1));
    const Tensor huber = Add(Scale(Square(quadratic), 0.5f), Sub(error, quadratic));
    return Mean(Mul(huber, weight));
  });
}

// Squashed Gaussian actor, twin critics, temperature: three Gradient calls on one recording.
TEST(GradientPlan, EqualsTheInterpreterOnSacLosses) {
  const int64_t rows = 20, actions = 3, inputs = 5;
  const Tensor observation = Random({rows, inputs}, 1), noise = Random({rows, actions}, 2),
               target = Random({rows, 1}, 3);
  const Tensor taken = Random({rows, actions}, 4);
  const Net actor({inputs, 32, 2 * actions}, 50), first({inputs + actions, 32, 1}, 60),
      second({inputs + actions, 32, 1}, 70);
  const auto run = [&](bool plan) {
    const Context context{.plan = plan};
    const ContextScope scope(context);
    std::vector<Tensor> all = actor.parameters;
    all.insert(all.end(), first.parameters.begin(), first.parameters.end());
    all.insert(all.end(), second.parameters.begin(), second.parameters.end());
    all.push_back(Tensor::From<float>({1}, {-0.5f}));
    Tape tape(Handles(all));
    std::vector<Tensor> result;
    for (int update = 0; update < 2; ++update) {
      const Tape::Recording recording(tape);
      const Inputs handles = all;
      const Inputs pi = handles.subspan(0, 4), q1 = handles.subspan(4, 4),
                   q2 = handles.subspan(8, 4), critics = handles.subspan(4, 8),
                   alpha = handles.subspan(12, 1);
      const auto q = [&](Inputs critic, const Tensor& action) {
        const Tensor parts[] = {observation, action};
        return Net::Forward(critic, ConcatLast(parts), Activation::kRelu);
      };
      const Tensor critic_loss =
          Add(Mean(Square(Sub(q(q1, taken), target))), Mean(Square(Sub(q(q2, taken), target))));
      const auto keep = [&](std::span<const Tensor> gradients) {
        for (const Tensor& gradient : gradients) result.push_back(gradient.Clone());
      };
      keep(tape.Gradient(critic_loss, critics));
      const Tensor out = Net::Forward(pi, observation, Activation::kRelu);
      const Tensor mean = SliceLast(out, 0, actions);
      const Tensor log_std = Clamp(SliceLast(out, actions, 2 * actions), -5, 2);
      const Tensor u = Add(mean, Mul(Exp(log_std), noise));
      const Tensor correction = Scale(Sub(Shift(Neg(u), 0.6931472f), Softplus(Scale(u, -2))), 2);
      const Tensor log_probability =
          SumLast(Sub(Sub(Affine(Square(noise), -0.5f, -0.9189385f), log_std), correction));
      const Tensor action = Tanh(u);
      const Tensor value = Reshape(Minimum(q(q1, action), q(q2, action)), {rows});
      const Tensor actor_loss = Mean(Sub(Mul(log_probability, Exp(alpha[0]).Detach()), value));
      keep(tape.Gradient(actor_loss, pi));
      const Tensor alpha_loss =
          Neg(Mean(Mul(Shift(log_probability, -3).Detach(), Tensor::Scalar(1))));
      keep(tape.Gradient(Sum(Mul(alpha[0], alpha_loss)), alpha));
    }
    return result;
  };
  const auto planned = run(true), interpreted = run(false);
  ASSERT_EQ(planned.size(), interpreted.size());
  for (size_t i = 0; i < planned.size(); ++i)
    EXPECT_TRUE(SameBits(planned[i], interpreted[i])) << i;
}

// A recurrent net over time: T uses of the same weights, states passed on.
TEST(GradientPlan, EqualsTheInterpreterThroughTime) {
  const int64_t steps = 5, rows = 4, hidden = 6;
  const Tensor observations = Random({steps, rows, 3}, 1);
  const std::vector<Tensor> parameters = {RandomWeight(3, 4 * hidden, 2),
                                          RandomWeight(hidden, 4 * hidden, 3),
                                          Random({4 * hidden}, 4), RandomWeight(hidden, 2, 5)};
  ExpectGradients(
      parameters,
      [&](Inputs p) {
        Tensor h = Tensor::Zeros({rows, hidden}), c = Tensor::Zeros({rows, hidden});
        std::vector<Tensor> outputs;
        for (int64_t t = 0; t < steps; ++t) {
          const Tensor gates =
              Add(Dense(observations.Row(t), p[0], p[2]), Dense(h, p[1], Tensor()));
          std::tie(h, c) = LstmCell(gates, c);
          outputs.push_back(h);
        }
        return Dense(StackRows(outputs), p[3], Tensor());
      },
      2e-3);
}

// What a plan did, seen through one record.
class Compiled {
 public:
  Compiled(std::vector<Tensor> parameters, const Loss& loss) : parameters_(std::move(parameters)) {
    for (Tensor& parameter : parameters_) {
      record_.AddParameter(parameter);
      set_.parameters.push_back(static_cast<int32_t>(set_.parameters.size()));
      set_.gradients.push_back(
          Tensor::Zeros(parameter.shape(), DType::kFloat32, parameter.layout()));
    }
    TapeRecord* previous = TapeRecord::Exchange(&record_);
    loss_ = record_.ValueOf(loss(parameters_));
    TapeRecord::Exchange(previous);
    plan_ = std::make_unique<GradientPlan>(record_, loss_, set_);
  }
  const GradientPlan& plan() const { return *plan_; }
  const TapeRecord& record() const { return record_; }
  int64_t emitted() const {
    GradientRules rules(record_, loss_, set_.parameters);
    for (int32_t node = rules.last_node(); node >= record_.parameters(); --node)
      rules.EmitNode(node);
    return static_cast<int64_t>(rules.steps().size());
  }

 private:
  std::vector<Tensor> parameters_;
  TapeRecord record_;
  GradientSet set_;
  int32_t loss_ = -1;
  std::unique_ptr<GradientPlan> plan_;
};

TEST(GradientPlan, FusesTheActivationsOfAnMlpAndComputesNoInputGradient) {
  const Tensor x = Random({64, 17}, 1);
  const Net net({17, 64, 64, 6}, 2);
  const Compiled compiled(net.parameters,
                          [&](Inputs p) { return Mean(Net::Forward(p, x, Activation::kTanh)); });
  // Fill; three weight gradients, two input gradients with the derivatives inside.
  EXPECT_EQ(compiled.emitted(), 8);
  EXPECT_EQ(compiled.plan().steps(), 6);
}

// The sum passes one gradient to both branches; the first branch must not see the derivative of the
// second.
TEST(GradientPlan, DoesNotFuseAnActivationWhoseGradientOthersRead) {
  const Tensor x = Random({4, 8}, 1);
  const std::vector<Tensor> parameters = {RandomWeight(8, 8, 2), RandomWeight(8, 8, 3),
                                          RandomWeight(8, 8, 4)};
  ExpectGradients(parameters, [&](Inputs p) {
    const Tensor a = Dense(x, p[0], Tensor(), Activation::kTanh),
                 b = Dense(x, p[1], Tensor(), Activation::kSigmoid);
    return Dense(Add(a, b), p[2], Tensor());
  });
}

TEST(GradientPlan, RemovesTheCopiesOfReshapesAndSums) {
  const Compiled compiled({Random({8}, 1)}, [](Inputs p) {
    return Sum(Reshape(Shift(Reshape(Square(p[0]), {2, 4}), 1), {8}));
  });
  EXPECT_EQ(compiled.emitted(), 5);
  EXPECT_EQ(compiled.plan().steps(), 2);  // fill, square
}

TEST(GradientPlan, ReusesTheArenaAlongAChain) {
  const int64_t size = 20000, depth = 20;
  const Compiled compiled({Random({size}, 1)}, [&](Inputs p) {
    Tensor y = p[0];
    // Reductions in between keep the chain from being one tiled moment.
    for (int64_t i = 0; i < depth; ++i) y = Mul(Tanh(y), Mean(y));
    return Mean(y);
  });
  EXPECT_LT(compiled.plan().arena_elements(), 4 * size + 1000);
}

TEST(GradientPlan, RunsLongElementwiseChainsByTiles) {
  const Loss loss = [](Inputs p) { return Mean(Tanh(Exp(Square(p[0])))); };
  EXPECT_EQ(Compiled({Random({20000}, 1)}, loss).plan().tiled_runs(), 1);
  EXPECT_LT(Compiled({Random({20000}, 1)}, loss).plan().arena_elements(), 20000 + 100)
      << "only the filled gradient";
  EXPECT_EQ(Compiled({Random({200}, 1)}, loss).plan().tiled_runs(), 0);
}

TEST(GradientPlan, NamesTheFirstDifferenceOfStructure) {
  const Compiled plan({Random({8}, 1)}, [](Inputs p) { return Sum(Square(p[0])); });
  const auto difference = [&](const Loss& loss) {
    return plan.plan().Difference(Compiled({Random({8}, 1)}, loss).record());
  };
  EXPECT_EQ(difference([](Inputs p) { return Sum(Tanh(p[0])); }), "node 0 Square became Tanh");
  EXPECT_EQ(difference([](Inputs p) { return Sum(Square(SliceLast(p[0], 0, 4))); }),
            "node 0 Square became Slice");
  EXPECT_EQ(difference([](Inputs p) { return Tanh(Sum(Square(p[0]))); }), "2 nodes became 3");
  const Compiled shorter({Random({7}, 1)}, [](Inputs p) { return Sum(Square(p[0])); });
  EXPECT_EQ(plan.plan().Difference(shorter.record()), "node 0 Square: [8] became [7]");
}

}  // namespace
}  // namespace weft
