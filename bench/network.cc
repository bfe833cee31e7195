#include "bench/network.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "nn/layers.h"
#include "nn/optimizer.h"
#include "tensor/context.h"
#include "tensor/ops.h"
#include "tensor/tape.h"

namespace weft {
namespace {

// The least mean time of a call over samples of about half a millisecond.
template <class F>
double BestSeconds(F call) {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < 200; ++i) call();
  int calls = 1;
  double best = 1e9;
  for (int sample = 0; sample < 400; ++sample) {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (seconds < 5e-4 && sample < 30) {
      calls *= 2;
    } else {
      best = std::min(best, seconds / calls);
    }
  }
  return best;
}

struct Network : Module {
  explicit Network(Rng& rng)
      : trunk(17, std::vector<int64_t>{64, 64}, Activation::kTanh, false,
              Initialisation::Orthogonal(1.41421356), rng),
        head(64, 6, Activation::kNone, Initialisation::Orthogonal(1), rng) {}
  Tensor Forward(const Tensor& x) const { return head.Forward(trunk.Forward(x)); }
  void Collect(std::string_view, std::vector<NamedParameter>& out) override {
    trunk.Collect("trunk.", out);
    head.Collect("head.", out);
  }
  Mlp trunk;
  Linear head;
};

Tensor Random(const Shape& shape, Rng& rng) {
  Tensor x = Tensor::Empty(shape);
  rng.FillNormal(x.data<float>());
  return x;
}

}  // namespace

double MeasureUpdate() {
  const Context context;
  const ContextScope scope(context);
  Rng rng(1, Purpose::kTest);
  Network network(rng);
  const auto parameters = network.Parameters();
  Optimizer optimizer({}, parameters);
  Tape tape(Pointers(parameters));
  const std::vector<Tensor> handles = Handles(parameters);
  const Tensor x = Random({64, 17}, rng), y = Random({64, 6}, rng);
  return BestSeconds([&] {
    const Tape::Recording recording(tape);
    const Tensor loss = Mean(Square(Sub(network.Forward(x), y)));
    optimizer.Step(tape.Gradient(loss, handles), 1e-4);
  });
}

double MeasureForward() {
  const Context context;
  const ContextScope scope(context);
  Rng rng(1, Purpose::kTest);
  const Network network(rng);
  const Tensor x = Random({1, 17}, rng);
  return BestSeconds([&] { network.Forward(x); });
}

}  // namespace weft
