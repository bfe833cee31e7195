// Plays one episode in each of N environments of one agent with random actions, M at a time as they
// are ready, on T threads, and prints the mean return, which depends on neither M nor T:
//   send_receive Hopper-v5 64 16 2
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "environments/vector_environment.h"

int main(int argc, char** argv) try {
  const int64_t count = argc == 5 ? std::atoll(argv[2]) : 0;
  const int64_t at_once = argc == 5 ? std::atoll(argv[3]) : 0;
  if (at_once < 1 || at_once > count)
    return std::fprintf(stderr, "usage: send_receive ENVIRONMENT N M T, M from 1 to N\n"), 64;
  weft::EnvironmentConfig config;  // its members are the keys of a run's `environment`
  config.SetId(argv[1]);
  weft::VectorEnvironment vector(config, {.environments = count,
                                          .autoreset = weft::Autoreset::kSameStep,
                                          .threads = std::atoi(argv[4])});
  const weft::Space& space = vector.spec().action;

  std::vector<weft::Rng> policies;
  for (int64_t id = 0; id < count; ++id)
    policies.emplace_back(/*seed=*/0, weft::Purpose::kAction, id);
  std::vector<double> returns(policies.size());
  std::vector<bool> over(policies.size());

  weft::VectorStep step = vector.MakeStep(at_once);
  weft::Tensor action = weft::Tensor::Zeros(space.shape().Prepend(at_once), space.dtype());
  std::vector<int64_t> ids(static_cast<size_t>(at_once));
  const auto start = std::chrono::steady_clock::now();
  int64_t steps = 0;
  vector.Reset();
  for (int64_t left = count; left > 0; steps += at_once) {
    vector.Receive(ids, step);
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto id = static_cast<size_t>(ids[i]);
      const weft::TimeStep& earned = step.ended[i] ? step.last : step.now;
      if (!over[id]) returns[id] += earned.reward.data<float>()[i];
      if (step.ended[i] && !over[id]) over[id] = true, --left;
      space.Sample(policies[id], action.raw() + i * action.bytes() / ids.size());
    }
    vector.Send(ids, action);
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;

  double sum = 0;
  for (const double of_one : returns) sum += of_one;
  std::printf("%.6f\n", sum / double(count));
  std::fprintf(stderr, "%.0f steps/s\n", double(steps) / time.count());
} catch (const weft::Error& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
