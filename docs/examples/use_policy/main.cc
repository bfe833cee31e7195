// Loads the policy of a run and prints its action for one observation:
//   use_policy runs/ppo-CartPole-v1-1 0.01 0 -0.02 0
#include <cstdio>
#include <cstdlib>

#include "program/policy.h"

int main(int argc, char** argv) try {
  if (argc < 2) return std::fprintf(stderr, "usage: use_policy RUN NUMBER...\n"), 64;
  weft::Policy policy = weft::Policy::Load(argv[1]);
  weft::Tensor observation =
      weft::Tensor::Zeros(policy.spec().leaf("observation").shape.Prepend(1));
  const auto numbers = observation.data<float>();
  for (size_t i = 0; i < numbers.size() && argv[i + 2]; ++i)
    numbers[i] = std::strtof(argv[i + 2], nullptr);

  const weft::Tensor action = policy.Act(observation);
  const bool discrete = action.dtype() == weft::DType::kInt64;
  for (size_t i = 0; i < size_t(action.elements()); ++i)
    std::printf("%g\n", discrete ? double(action.data<int64_t>()[i]) : action.data<float>()[i]);
} catch (const weft::Error& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
