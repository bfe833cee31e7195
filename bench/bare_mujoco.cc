#include <algorithm>
#include <iterator>
#include <span>

#include "base/thread_pool.h"
#include "bench/script.h"
#include "environments/mujoco_simulation.h"

namespace weft {
namespace {

struct Task {
  const char* id;
  const char* xml_file;
  int64_t frame_skip;
};
constexpr Task kTasks[] = {{"HalfCheetah-v5", "half_cheetah.xml", 5},
                           {"Hopper-v5", "hopper.xml", 4},
                           {"Walker2d-v5", "walker2d_v5.xml", 4},
                           {"InvertedPendulum-v5", "inverted_pendulum.xml", 2}};

// mj_step and nothing else, from the states and with the controls of the script; each thread plays
// its rows alone.
class BareMujoco final : public Player {
 public:
  BareMujoco(const Script& script, const std::string& xml_file, int64_t frame_skip,
             ThreadPool& pool)
      : script_(script), frame_skip_(frame_skip), pool_(pool) {
    for (size_t row = 0; row < script.rows.size(); ++row) simulations_.emplace_back(xml_file);
  }
  void Rewind() override {
    for (size_t row = 0; row < simulations_.size(); ++row) PlayEvent(row, 0);
  }
  void Play(const Script& script, int64_t begin, int64_t end) override {
    auto range = [&](int64_t first, int64_t last) {
      for (int64_t t = begin; t < end; ++t) {
        for (int64_t row = first; row < last; ++row) {
          PlayEvent(static_cast<size_t>(row), static_cast<size_t>(t) + 1);
        }
      }
    };
    pool_.ParallelFor(std::ssize(script.rows), 1, range);
  }

 private:
  void PlayEvent(size_t row, size_t event) {
    MujocoSimulation& simulation = simulations_[row];
    const auto& [first, numbers] = script_.rows[row][event];
    const auto nq = static_cast<size_t>(simulation.nq());
    if (first) {
      simulation.Reset(std::span(numbers).first(nq), std::span(numbers).subspan(nq));
    } else {
      simulation.Step(numbers, frame_skip_);
    }
  }

  const Script& script_;
  int64_t frame_skip_;
  ThreadPool& pool_;
  std::vector<MujocoSimulation> simulations_;
};

}  // namespace

bool HasBareMujoco(const std::string& id) {
  return std::any_of(std::begin(kTasks), std::end(kTasks),
                     [&](const Task& task) { return id == task.id; });
}

std::unique_ptr<Player> MakeBareMujoco(const std::string& id, const Script& script,
                                       ThreadPool& pool) {
  for (const Task& task : kTasks) {
    if (id == task.id)
      return std::make_unique<BareMujoco>(script, task.xml_file, task.frame_skip, pool);
  }
  return nullptr;
}

}  // namespace weft
