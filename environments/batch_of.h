// A batch of N environments of one concrete, final class E, so that the loop over rows calls its
// Step directly. Every row has its own random stream, keyed by seed, purpose and global row and
// persistent over episodes: what a row does depends on neither the number of threads nor how rows
// are split over batches.
//
// E has a nested struct Arguments : Config, the constructor E(const Arguments&), and is movable.
#pragma once

#include <algorithm>
#include <exception>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "environments/batch_layout.h"
#include "environments/row_activity.h"

namespace weft {

template <class E>
class BatchOf final : public BatchEnvironment {
 public:
  BatchOf(const typename E::Arguments& arguments, const BatchOptions& options)
      : layout_(E(arguments).spec(), options),
        step_limit_(layout_.spec().time_limit > 0 ? layout_.spec().time_limit
                                                  : std::numeric_limits<int64_t>::max()),
        types_(static_cast<size_t>(options.rows), StepType::kLast),
        activity_(options.activity != nullptr ? *options.activity : own_activity_) {
    activity_.Watch(layout_.spec().id, options.first_row, options.rows, options.seed);
    rows_.reserve(static_cast<size_t>(options.rows));
    for (int64_t row = 0; row < options.rows; ++row) {
      const Rng rng(options.seed, options.purpose, static_cast<uint64_t>(options.first_row + row));
      rows_.push_back({.environment = E(arguments), .progress = {.rng = rng}});
    }
    // A claim on the pool should last so long; the pool is not worth waking for less than two.
    constexpr double kClaimNanoseconds = 20000;
    const double step = E::kStepNanoseconds * static_cast<double>(options.action_repeat);
    grain_ = std::max<int64_t>(1, static_cast<int64_t>(kClaimNanoseconds / step));
    inline_ = options.pool == nullptr || options.pool->threads() == 1 || options.rows < 2 * grain_;
  }

  const EnvironmentSpec& spec() const override { return layout_.spec(); }
  int64_t rows() const override { return layout_.options().rows; }
  TimeStep MakeTimeStep() const override { return weft::MakeTimeStep(layout_.spec(), rows()); }

  void Reset(TimeStep& out) override {
    std::fill(types_.begin(), types_.end(), StepType::kLast);
    Run(layout_.Open(out));
  }

  void Step(const Tensor& action, TimeStep& out) override {
    const BatchLayout::View view = layout_.Open(action, out);
    Run(view);
  }

  void Render(int64_t environment, Canvas& canvas) const override {
    rows_[static_cast<size_t>(environment)].environment.Render(canvas);
  }
  std::string Text(int64_t environment) const override {
    return rows_[static_cast<size_t>(environment)].environment.Text();
  }

  TensorMap Save() const override {
    return layout_.SaveRows(
        types_, [&](size_t row) -> const RowProgress& { return rows_[row].progress; },
        [&](size_t row, Writer& out) { rows_[row].environment.Save(out); });
  }

  void Load(const TensorMap& state) override {
    layout_.LoadRows(
        state, types_, [&](size_t row) -> RowProgress& { return rows_[row].progress; },
        [&](size_t row, Reader& in) { rows_[row].environment.Load(in); });
  }

 private:
  struct Row {
    E environment;
    RowProgress progress;
  };

  void Run(const BatchLayout::View& view) {
    auto range = [&](int64_t begin, int64_t end) { StepRange(view, begin, end); };
    if (inline_) return range(0, rows());
    layout_.options().pool->ParallelForDynamic(rows(), grain_, range);
  }

  void StepRange(const BatchLayout::View& shared_view, int64_t begin, int64_t end) {
    const BatchLayout::View view = shared_view;  // a copy that stores to the outputs cannot change
    if (view.action != nullptr) layout_.CheckActions(view, types_, begin, end);
    const auto steps = [this](int64_t row) {
      return rows_[static_cast<size_t>(row)].progress.steps;
    };
    int64_t row = begin;
    bool resets = false;
    const auto name = [&] { return layout_.StepName(row, resets ? 0 : steps(row) + 1); };
    try {
      for (; row < end; ++row) {
        resets = types_[static_cast<size_t>(row)] == StepType::kLast;
        AdvanceRow(view, row);
      }
    } catch (Error& error) {
      error.AddContext(name());
      throw;
    } catch (const std::exception& error) {
      throw Error(ErrorCode::kInternal, name() + ": " + error.what());
    }
    layout_.Finish(view, begin, end, steps);
    layout_.CheckBounds(view, begin, end, steps);
  }

  void AdvanceRow(const BatchLayout::View& view, int64_t index) {
    const RowActivity::Busy busy(activity_, index);
    Row& row = rows_[static_cast<size_t>(index)];
    StepType& type = types_[static_cast<size_t>(index)];
    const auto leaves = layout_.Leaves(view, index);
    double reward = 0, discount = 1;
    const StepRow out{ObservationRow(leaves.data()), reward, discount, type};
    if (type == StepType::kLast) {
      row.environment.Reset(row.progress.rng, out);
      if (type != StepType::kFirst || discount != 1) [[unlikely]]
        RefuseOutcome("Reset", type, discount);
      ++row.progress.episode;
      row.progress.steps = 0;
    } else {
      const ActionRow action = layout_.Action(view, index);
      const int64_t repeats = layout_.options().action_repeat;
      StepOnce(row, action, out);
      if (++row.progress.steps >= step_limit_) type = StepType::kLast;
      double sum = reward;
      for (int64_t repeat = 1; repeat < repeats && type != StepType::kLast; ++repeat) {
        StepOnce(row, action, out);
        if (++row.progress.steps >= step_limit_) type = StepType::kLast;
        sum += reward;
      }
      reward = sum;
    }
    view.reward[index] = static_cast<float>(reward);
    view.discount[index] = static_cast<float>(discount);
    view.type[index] = static_cast<uint8_t>(type);
    view.episode_id[index] = row.progress.episode;
  }

  // An environment that writes no outcome leaves kFirst, which no step may write.
  static void StepOnce(Row& row, ActionRow action, const StepRow& out) {
    out.type = StepType::kFirst;
    row.environment.Step(action, row.progress.rng, out);
    const bool ended = out.type == StepType::kLast;
    if ((!ended && out.type != StepType::kMid) ||
        (out.discount != 1 && (out.discount != 0 || !ended))) [[unlikely]]
      RefuseOutcome("Step", out.type, out.discount);
  }

  BatchLayout layout_;
  const int64_t step_limit_;
  std::vector<Row> rows_;
  std::vector<StepType> types_;  // of the last step of each row; kLast before the first
  RowActivity own_activity_;
  RowActivity& activity_;
  int64_t grain_;
  bool inline_;
};

}  // namespace weft
