#include "program/bench_bridge.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>

#include "base/check.h"
#include "environments/environment_config.h"
#include "environments/python/python_worker.h"
#include "program/bench_peers.h"
#include "program/python_peers.h"
#include "program/subprocess.h"

namespace weft {
namespace {

// A sample of either side is the fastest of some short stretches, taken in turns: the one that
// other processes took least from.
constexpr int kSamples = 5, kStretches = 10;
constexpr double kSeconds = 0.1;

class Bridge {
 public:
  Bridge(const std::string& id, int workers)
      : batch_(Make(id, workers)), step_(batch_->MakeTimeStep()) {
    std::vector<Rng> rngs;
    for (int64_t row = 0; row < batch_->rows(); ++row) rngs.emplace_back(1, Purpose::kAction, row);
    const Space& space = batch_->spec().action;
    batch_->Reset(step_);
    for (int i = 0; i < 1000; ++i) {
      actions_.push_back(Tensor::Zeros(space.shape().Prepend(batch_->rows()), space.dtype()));
      SampleActions(space, step_, rngs, actions_.back());
    }
  }

  double StepsPerSecond() {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    std::chrono::duration<double> spent{};
    size_t steps = 0;
    for (; spent.count() < kSeconds; spent = Clock::now() - start) {
      batch_->Step(actions_[steps++ % actions_.size()], step_);
    }
    return static_cast<double>(batch_->rows()) * static_cast<double>(steps) / spent.count();
  }

 private:
  static std::unique_ptr<BatchEnvironment> Make(const std::string& id, int workers) {
    EnvironmentConfig config;
    ConfigSource::Text(fmt::format("python: \"gymnasium:{0}\"\nrows: {1}\narguments: "
                                   "{{workers: {1}}}\n",
                                   id, workers),
                       "bench")
        .Parse(config);
    return MakeBatchEnvironment(config, {.rows = workers, .seed = 1});
  }

  const std::unique_ptr<BatchEnvironment> batch_;
  TimeStep step_;
  std::vector<Tensor> actions_;
};

}  // namespace

BridgeFigure BenchBridge(const std::string& id, int workers) {
  FedProcess peer({PythonInterpreter(), "-c", kAsyncPeer, id, std::to_string(workers)},
                  /*answers=*/true);
  AwaitReady(peer);
  Bridge bridge(id, workers);
  BridgeFigure figure;
  for (int sample = -1; sample < kSamples; ++sample) {  // the first is a warm-up
    double ours = 0, theirs = 0;
    for (int stretch = 0; stretch < kStretches; ++stretch) {
      ours = std::max(ours, bridge.StepsPerSecond());
      peer.Write(fmt::format("{}\n", kSeconds));
      theirs = std::max(theirs, std::stod(peer.ReadLine()));
    }
    if (sample < 0) continue;
    figure.ours.push_back(ours);
    figure.theirs.push_back(theirs);
  }
  peer.Finish();
  return figure;
}

}  // namespace weft
