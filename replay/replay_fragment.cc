#include "replay/replay_fragment.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/check.h"

namespace weft {
namespace {

enum Input { kInsert, kUpdate };
enum Output { kBatch };

// Updates are counted in millionths, so a ratio written with up to six decimals adds up without
// error.
constexpr int64_t kUnit = 1'000'000;

TrajectoryOptions WriterOptions(const ReplayFragmentOptions& options) {
  return {.observation = options.observation,
          .carried = options.carried,
          .rows = options.rows,
          .n_step = options.config.n_step,
          .gamma = options.gamma};
}

class ReplayFragment final : public Fragment {
 public:
  explicit ReplayFragment(const ReplayFragmentOptions& options)
      : options_(options),
        table_(TableOptions(options)),
        writer_(WriterOptions(options), options.config.shared_frames ? &table_.frames() : nullptr) {
  }

  PortSet Needs() const override {
    if (due_ > 0) return answer_due_ ? PortSet{kUpdate} : PortSet{};
    return answer_due_ ? PortSet{kInsert, kUpdate} : PortSet{kInsert};
  }

  void Step(Ports& ports) override {
    if (answer_due_) {
      // Before the insertion, which may overwrite the rows that the answer is about.
      const Message answer = ports.Read(kUpdate);
      table_.UpdatePriorities(answer.body.At("index"), answer.body.At("key"),
                              answer.body.At("td_error"));
      answer_due_ = false;
    }
    if (due_ == 0) Insert(ports);
    Message message{.body = {}, .version = updates_};
    if (due_ > 0) {
      --due_;
      message.body = Sample();
      ++updates_;
      answer_due_ = options_.config.prioritised;
    }
    message.body.Set("env_steps", Tensor::From<int64_t>({1}, {writer_.steps()}));
    message.body.Set("last", Tensor::From<uint8_t>({1}, {static_cast<uint8_t>(due_ == 0)}));
    ports.Write(kBatch, std::move(message));
  }

  TensorMap Save() const override {
    TensorMap state;
    state.Merge("table", table_.Save());
    state.Merge("writer", writer_.Save());
    state.Set("counters",
              Tensor::From<int64_t>({4}, {due_, credit_, updates_, answer_due_ ? 1 : 0}));
    return state;
  }

  void Load(const TensorMap& state) override {
    const auto counters = SavedTensor(state, "counters", {4}, DType::kInt64).data<int64_t>();
    table_.Load(state.Extract("table"));
    writer_.Load(state.Extract("writer"));
    due_ = counters[0];
    credit_ = counters[1];
    updates_ = counters[2];
    answer_due_ = counters[3] != 0;
  }

 private:
  void Insert(Ports& ports) {
    const int64_t before = writer_.steps();
    table_.Insert(writer_.Append(ports.Read(kInsert).body));
    ports.Log("replay_size", static_cast<double>(table_.size()));
    if (table_.size() < options_.config.min_size) return;
    credit_ += (writer_.steps() - before) * std::llround(options_.config.updates_per_step * kUnit);
    due_ = credit_ / kUnit;
    credit_ %= kUnit;
  }

  TensorMap Sample() {
    Rng rng(options_.seed, Purpose::kReplay, static_cast<uint64_t>(updates_));
    const double progress =
        static_cast<double>(writer_.steps()) / static_cast<double>(options_.total_steps);
    const double beta = options_.config.beta + (1 - options_.config.beta) * std::min(1.0, progress);
    TensorMap& body = FreeBody();
    WEFT_CHECK(table_.Sample(options_.config.batch_size, beta, rng, body)) << "the table is empty";
    return body;
  }

  // A body whose tensors no reader holds any more. There are as many bodies as the edge and its
  // reader hold at a time.
  TensorMap& FreeBody() {
    for (TensorMap& body : bodies_) {
      if (std::all_of(body.begin(), body.end(),
                      [](const auto& entry) { return entry.second.unique(); }))
        return body;
    }
    return bodies_.emplace_back();
  }

  ReplayFragmentOptions options_;
  ReplayBuffer table_;
  TrajectoryWriter writer_;
  int64_t due_ = 0;      // batches still to be written for the last insert message
  int64_t credit_ = 0;   // parts of an update that the steps so far are due, in units of 1 / kUnit
  int64_t updates_ = 0;  // batches written
  bool answer_due_ = false;  // the priorities of the last batch are yet to be read
  std::vector<TensorMap> bodies_;
};

}  // namespace

void ReplayConfig::Fields(FieldVisitor& visitor) {
  visitor.Field("capacity", capacity, "transitions kept; the oldest leave first",
                Range::AtLeast(1));
  visitor.Field("batch_size", batch_size, "transitions of one update", Range::AtLeast(1));
  visitor.Field("min_size", min_size, "transitions in the table before the first update",
                Range::AtLeast(1));
  visitor.Field("updates_per_step", updates_per_step,
                "updates per environment step, to six decimals", {.low = 1e-6, .high = 1e6});
  visitor.Field("n_step", n_step, "rewards summed before the bootstrap", Range::Between(1, 1000));
  visitor.Field("shared_frames", shared_frames,
                "store each observation once: half the memory, for images and large vectors");
  visitor.Field("prioritised", prioritised, "draw in proportion to the last error");
  visitor.Field("alpha", alpha, "exponent of priorities; 0 is uniform", Range::Between(0, 10));
  visitor.Field("beta", beta, "exponent of the importance weights; rises to 1 over the run",
                Range::Between(0, 1));
  visitor.Field("epsilon", epsilon, "added to the error of a priority", Range::Positive());
}

void ReplayConfig::Check() const {
  if (batch_size > capacity) {
    throw ConfigProblem("batch_size", "a batch of " + std::to_string(batch_size) +
                                          " is larger than the capacity of " +
                                          std::to_string(capacity) + "; set at most that");
  }
  if (min_size > capacity) {
    throw ConfigProblem("min_size", "a table of capacity " + std::to_string(capacity) +
                                        " never holds " + std::to_string(min_size) +
                                        " transitions, so no update would be made");
  }
}

ReplayOptions TableOptions(const ReplayFragmentOptions& options) {
  const ReplayConfig& config = options.config;
  ReplayOptions table;
  table.leaves = TransitionLeaves(WriterOptions(options), config.shared_frames);
  if (config.shared_frames) table.frames = options.observation;
  table.capacity = config.capacity;
  table.sampler = config.prioritised ? SelectorKind::kPrioritised : SelectorKind::kUniform;
  table.limit.min_size = config.min_size;
  table.priority = {.alpha = config.alpha, .epsilon = config.epsilon};
  return table;
}

FragmentFactory MakeReplay(const ReplayFragmentOptions& options) {
  const Port update{.name = "update", .optional = !options.config.prioritised, .late = true};
  return {.ports = {.inputs = {{.name = "insert"}, update}, .outputs = {{.name = "batch"}}},
          .make = [options](const Replica&) { return std::make_unique<ReplayFragment>(options); }};
}

}  // namespace weft
