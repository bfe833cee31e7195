#include <algorithm>
#include <iterator>
#include <span>

#include "base/thread_pool.h"
#include "bench/script.h"
#include "environments/mujoco/mujoco_simulation.h"

namespace weft {
namespace {

struct Task {
  const char* id;
  const char* xml_file;
  int64_t frame_skip;
  bool contact_forces = false;  // reads what mj_rnePostConstraint computes
};
constexpr Task kTasks[] = {{"Ant-v5", "ant.xml", 5, true},
                           {"HalfCheetah-v5", "half_cheetah.xml", 5},
                           {"Hopper-v5", "hopper.xml", 4},
                           {"Humanoid-v5", "humanoid.xml", 5, true},
                           {"HumanoidStandup-v5", "humanoidstandup.xml", 5, true},
                           {"InvertedDoublePendulum-v5", "inverted_double_pendulum.xml", 5},
                           {"InvertedPendulum-v5", "inverted_pendulum.xml", 2},
                           {"Pusher-v5", "pusher_v5.xml", 5},
                           {"Reacher-v5", "reacher.xml", 2},
                           {"Swimmer-v5", "swimmer.xml", 4},
                           {"Walker2d-v5", "walker2d_v5.xml", 4}};

// MuJoCo's steps and nothing else, from the states and with the controls of the script; each thread
// plays its rows alone.
class BareMujoco final : public Player {
 public:
  BareMujoco(const Script& script, const Task& task, ThreadPool& pool)
      : script_(script), task_(task), pool_(pool) {
    for (size_t row = 0; row < script.rows.size(); ++row) simulations_.emplace_back(task.xml_file);
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
      simulation.Step(numbers, task_.frame_skip);
      if (task_.contact_forces) simulation.ComputeContactForces();
    }
  }

  const Script& script_;
  const Task& task_;
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
    if (id == task.id) return std::make_unique<BareMujoco>(script, task, pool);
  }
  return nullptr;
}

}  // namespace weft
