#include "environments/environment_fragment.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "environments/row_activity.h"

namespace weft {
namespace {

constexpr int kAction = 0, kTimeStep = 0;  // ports

class BatchFragment final : public Fragment {
 public:
  BatchFragment(const EnvironmentConfig& config, BatchOptions options) {
    options.activity = &activity_;
    batch_ = MakeBatchEnvironment(config, options);
  }

  PortSet Needs() const override { return {kAction}; }
  std::string Activity() const override { return activity_.Text(); }

  void Start(Ports& ports) override {
    TimeStep& out = FreeTimeStep();
    batch_->Reset(out);
    Send(ports, out);
  }

  void Step(Ports& ports) override {
    const Message message = ports.Read(kAction);
    TimeStep& out = FreeTimeStep();
    batch_->Step(message.body.At("action"), out);
    Send(ports, out);
  }

  TensorMap Save() const override {
    TensorMap state;
    state.Merge("batch", batch_->Save());
    state.Set("steps", Tensor::Scalar(static_cast<double>(steps_), DType::kInt64));
    return state;
  }
  void Load(const TensorMap& state) override {
    batch_->Load(state.Extract("batch"));
    steps_ = state.At("steps").data<int64_t>()[0];
  }

 private:
  // One that no reader holds any more. As many are made as messages are ever alive at once.
  TimeStep& FreeTimeStep() {
    const auto free = [](const TimeStep& step) {
      return step.reward.unique() && step.discount.unique() && step.type.unique() &&
             step.episode_id.unique() &&
             std::all_of(step.observation.begin(), step.observation.end(),
                         [](const TensorMap::Entry& leaf) { return leaf.second.unique(); });
    };
    const auto found = std::find_if(pool_.begin(), pool_.end(), free);
    return found != pool_.end() ? *found : pool_.emplace_back(batch_->MakeTimeStep());
  }

  void Send(Ports& ports, const TimeStep& out) {
    ports.Write(kTimeStep, {.body = out.Leaves(), .version = steps_++});
  }

  RowActivity activity_;
  std::unique_ptr<BatchEnvironment> batch_;
  std::vector<TimeStep> pool_;
  int64_t steps_ = 0;  // time steps written
};

}  // namespace

FragmentFactory EnvironmentFragment(const EnvironmentConfig& config, uint64_t seed,
                                    Purpose purpose) {
  return {
      .ports = {.inputs = {{.name = "action"}}, .outputs = {{.name = "timestep", .primed = true}}},
      .make = [config, seed, purpose](const Replica& replica) -> std::unique_ptr<Fragment> {
        if (config.rows % replica.count != 0) {
          throw Error(ErrorCode::kConfig, "environment.rows: " + std::to_string(config.rows) +
                                              " rows do not divide over " +
                                              std::to_string(replica.count) + " replicas");
        }
        const int64_t rows = config.rows / replica.count;
        return std::make_unique<BatchFragment>(
            config, BatchOptions{.rows = rows,
                                 .first_row = replica.index * rows,
                                 .seed = SeedOf(seed, replica.incarnation),
                                 .purpose = purpose,
                                 .pool = replica.context.pool});
      }};
}

}  // namespace weft
