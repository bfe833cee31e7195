#include "environments/python/python_environment.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "environments/batch_layout.h"
#include "environments/python/python_worker.h"

namespace weft {
namespace {

struct PythonArguments : Config {
  void Fields(FieldVisitor& v) override {
    v.Field("workers", workers, "Python processes that share the rows; 0: one per core",
            Range::Between(0, 1024));
    v.Field("timeout", timeout, "seconds after which a worker that does not answer counts as hung",
            Range::Positive());
    v.Choice("preset", preset, {"none", "atari"},
             "atari: no-op starts, frames in fours, grey pictures of 84 x 84");
  }
  int64_t workers = 0;
  double timeout = 60;
  std::string preset = "none";
};

class PythonBatch final : public BatchEnvironment {
 public:
  PythonBatch(const PythonTarget& target, const PythonArguments& arguments,
              const EnvironmentSpec& spec, const BatchOptions& options)
      : target_(target),
        arguments_(arguments),
        layout_(spec, options),
        step_limit_(options.time_limit > 0 ? options.time_limit
                                           : std::numeric_limits<int64_t>::max()),
        types_(static_cast<size_t>(options.rows), StepType::kLast),
        action_bytes_(static_cast<size_t>(spec.action.shape().elements()) *
                      SizeOf(spec.action.dtype())) {
    for (int64_t row = 0; row < options.rows; ++row) {
      const Rng rng(options.seed, options.purpose, static_cast<uint64_t>(options.first_row + row));
      rows_.push_back({.progress = {.rng = rng}});
    }
  }

  const EnvironmentSpec& spec() const override { return layout_.spec(); }
  int64_t rows() const override { return layout_.options().rows; }
  TimeStep MakeTimeStep() const override { return weft::MakeTimeStep(layout_.spec(), rows()); }

  void Reset(TimeStep& out) override {
    std::ranges::fill(types_, StepType::kLast);
    Run(layout_.Open(out));
  }

  void Step(const Tensor& action, TimeStep& out) override {
    const BatchLayout::View view = layout_.Open(action, out);
    layout_.CheckActions(view, types_, 0, rows());
    Run(view);
  }

  TensorMap Save() const override {
    return layout_.SaveRows(
        types_, [&](size_t row) -> const RowProgress& { return rows_[row].progress; },
        [&](size_t row, Writer& out) {
          out.Write(rows_[row].seed);
          out.Write(std::span<const std::byte>(rows_[row].actions));
        });
  }

  void Load(const TensorMap& state) override {
    layout_.LoadRows(
        state, types_, [&](size_t row) -> RowProgress& { return rows_[row].progress; },
        [&](size_t row, Reader& in) {
          rows_[row].seed = in.Read<uint64_t>();
          rows_[row].actions = in.ReadVector<std::byte>();
          if (rows_[row].actions.size() % action_bytes_ != 0) {
            throw Error(ErrorCode::kCorrupt, "the saved state of " +
                                                 layout_.RowName(static_cast<int64_t>(row)) +
                                                 " holds half an action");
          }
        });
    Replay();
  }

 private:
  struct Row {
    RowProgress progress;
    uint64_t seed = 0;               // the episode was reset with
    std::vector<std::byte> actions;  // all since
  };
  struct Worker {
    int64_t first;  // its first row
    std::unique_ptr<PythonWorker> worker;
  };

  // At the first step: many batches are made for their spec alone.
  void Start() {
    if (!workers_.empty()) return;
    const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
    const int64_t count =
        std::clamp<int64_t>(arguments_.workers ? arguments_.workers : cores, 1, rows());
    for (int64_t i = 0; i < count; ++i) {
      const int64_t begin = rows() * i / count, end = rows() * (i + 1) / count;
      workers_.push_back({begin, std::make_unique<PythonWorker>(target_, end - begin)});
    }
    for (Worker& worker : workers_)  // which have started side by side
      worker.worker->Attach(layout_.spec(), layout_.options().action_repeat);
  }

  void Run(const BatchLayout::View& view) {
    Start();
    for (Worker& worker : workers_) {
      for (int64_t i = 0; i < worker.worker->rows(); ++i) Command(view, worker, i);
      worker.worker->Begin();
    }
    for (Worker& worker : workers_) {
      Await(worker);
      for (int64_t i = 0; i < worker.worker->rows(); ++i) Collect(view, worker, i);
    }
    layout_.Finish(view, 0, rows(),
                   [&](int64_t row) { return rows_[static_cast<size_t>(row)].progress.steps; });
  }

  void Command(const BatchLayout::View& view, Worker& worker, int64_t i) {
    PythonRows& shared = worker.worker->shared();
    const auto index = static_cast<size_t>(i), row_index = static_cast<size_t>(worker.first + i);
    Row& row = rows_[row_index];
    if (types_[row_index] == StepType::kLast) {
      row.seed = row.progress.rng.NextU32() >> 1;
      ++row.progress.episode;
      row.progress.steps = 0;
      row.actions.clear();
      shared.command[index] = PythonCommand::kReset;
      shared.seed[index] = row.seed;
      return;
    }
    shared.command[index] = PythonCommand::kStep;
    std::byte* to = shared.action.data() + index * action_bytes_;
    const ActionRow action = BatchLayout::Action(view, worker.first + i);
    if (action.dtype() == DType::kFloat64) {
      for (size_t a = 0; a < action_bytes_ / sizeof(float); ++a) {
        const auto value = static_cast<float>(action.real(static_cast<int64_t>(a)));
        std::memcpy(to + a * sizeof(float), &value, sizeof(float));
      }
    } else {
      std::memcpy(to, view.action + (worker.first + i) * view.action_bytes, action_bytes_);
    }
    row.actions.insert(row.actions.end(), to, to + action_bytes_);
  }

  // Waits for a worker. One that was lost is started again: rows that it should have stepped are
  // truncated where they stood, rows that it should have reset are reset.
  void Await(Worker& worker) {
    constexpr int kMostLosses = 3;
    const auto name = [&](int64_t row) {
      const auto& of = rows_[static_cast<size_t>(worker.first + row)];
      return layout_.RowName(worker.first + row) + ", step " + std::to_string(of.progress.steps);
    };
    PythonRows& shared = worker.worker->shared();
    std::string lost;
    for (int losses = 1; !worker.worker->Finish(name, &lost); ++losses) {
      if (losses == kMostLosses) {
        throw Error(ErrorCode::kUnavailable, layout_.spec().id + ": its Python process was lost " +
                                                 std::to_string(losses) + " times in a row (" +
                                                 lost + ")");
      }
      LogWarn(layout_.spec().id + ": a Python process was lost (" + lost +
              ") and is started again; its open episodes are truncated");
      worker.worker->Restart();
      for (size_t i = 0; i < shared.command.size(); ++i) {
        if (shared.command[i] != PythonCommand::kStep) continue;
        shared.command[i] = PythonCommand::kSkip;
        shared.reward[i] = 0;
        shared.terminated[i] = 0;
        shared.truncated[i] = 1;
        shared.steps[i] = 0;
      }
      worker.worker->Begin();
    }
  }

  void Collect(const BatchLayout::View& view, Worker& worker, int64_t i) {
    const PythonRows& shared = worker.worker->shared();
    const auto index = static_cast<size_t>(i);
    const int64_t row_index = worker.first + i;
    Row& row = rows_[static_cast<size_t>(row_index)];
    StepType& type = types_[static_cast<size_t>(row_index)];
    const auto leaves = layout_.Leaves(view, row_index);
    for (size_t leaf = 0; leaf < shared.leaves.size(); ++leaf) {
      const size_t bytes = shared.leaves[leaf].size() / shared.command.size();
      std::memcpy(leaves[leaf], shared.leaves[leaf].data() + index * bytes, bytes);
    }
    if (shared.command[index] == PythonCommand::kReset) {
      type = StepType::kFirst;
    } else {
      row.progress.steps += static_cast<int64_t>(shared.steps[index]);
      const bool over = shared.terminated[index] || shared.truncated[index];
      type = over || row.progress.steps >= step_limit_ ? StepType::kLast : StepType::kMid;
    }
    view.reward[row_index] = static_cast<float>(shared.reward[index]);
    view.discount[row_index] = shared.terminated[index] ? 0.0f : 1.0f;
    view.type[row_index] = static_cast<uint8_t>(type);
    view.episode_id[row_index] = row.progress.episode;
  }

  // Brings the environments to where the rows stand: each open episode from its seed and actions.
  void Replay() {
    Start();
    for (size_t step = 0;; ++step) {
      bool any = false;
      for (Worker& worker : workers_) {
        PythonRows& shared = worker.worker->shared();
        for (size_t i = 0; i < shared.command.size(); ++i) {
          const size_t index = static_cast<size_t>(worker.first) + i;
          const Row& row = rows_[index];
          const size_t actions = row.actions.size() / action_bytes_;
          const bool skip = types_[index] == StepType::kLast || step > actions;
          shared.command[i] = skip        ? PythonCommand::kSkip
                              : step == 0 ? PythonCommand::kReset
                                          : PythonCommand::kStep;
          any = any || !skip;
          if (skip) continue;
          shared.seed[i] = row.seed;
          if (step > 0) {
            std::memcpy(shared.action.data() + i * action_bytes_,
                        row.actions.data() + (step - 1) * action_bytes_, action_bytes_);
          }
        }
      }
      if (!any) return;
      for (Worker& worker : workers_) worker.worker->Begin();
      for (Worker& worker : workers_) Await(worker);
    }
  }

  const PythonTarget target_;
  const PythonArguments arguments_;
  BatchLayout layout_;
  const int64_t step_limit_;
  std::vector<Row> rows_;
  std::vector<StepType> types_;  // of the last step of each row; kLast before the first
  const size_t action_bytes_;    // of one row
  std::vector<Worker> workers_;
};

const EnvironmentSpec& SpecOf(const PythonTarget& target) {
  static auto& mutex = *new std::mutex;
  const std::scoped_lock lock(mutex);
  static auto& specs =
      *new std::map<std::tuple<std::string, std::string, int64_t>, EnvironmentSpec>;
  const auto key = std::tuple(target.name, target.preset, target.time_limit);
  const auto found = specs.find(key);
  if (found != specs.end()) return found->second;
  return specs.emplace(key, PythonWorker(target, 1).Open()).first->second;
}

const PythonArguments& Cast(const Config& config) {
  const auto* arguments = dynamic_cast<const PythonArguments*>(&config);
  WEFT_CHECK(arguments != nullptr) << "these are the arguments of another environment";
  return *arguments;
}

}  // namespace

EnvironmentEntry PythonEnvironment(const std::string& id) {
  const std::string target = id.substr(sizeof(kPythonPrefix) - 1);
  return {.summary = "an environment of Python",
          .make_arguments = [] { return std::make_unique<PythonArguments>(); },
          .copy_arguments =
              [](const Config& config) { return std::make_unique<PythonArguments>(Cast(config)); },
          .make = [id](const Config&) -> std::unique_ptr<Environment> {
            throw Error(ErrorCode::kInvalidArgument, id + " lives in Python, only in batches");
          },
          .make_batch =
              [target](const Config& config, const BatchOptions& options) {
                const PythonArguments& arguments = Cast(config);
                const PythonTarget python{.name = target,
                                          .preset = arguments.preset,
                                          .training = options.purpose != Purpose::kEvaluation,
                                          .time_limit = options.time_limit,
                                          .timeout = arguments.timeout};
                return std::make_unique<PythonBatch>(python, arguments, SpecOf(python), options);
              }};
}

namespace {
[[maybe_unused]] const bool kRegistered = EnvironmentSchemes().Add("python", PythonEnvironment);
}

}  // namespace weft
