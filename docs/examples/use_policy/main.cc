// Loads a trained policy and acts with it.   use_policy runs/NAME
#include <cstdio>

#include "program/policy.h"

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: use_policy RUN\n"), 64;
  try {
    weft::Policy policy = weft::Policy::Load(argv[1]);
    weft::Tensor observation = weft::Tensor::Zeros(policy.spec().leaf("observation").shape.Prepend(1));
    // Fill observation.data<float>() from your sensors; here it is all zeros.
    const weft::Tensor action = policy.Act(observation);
    if (action.dtype() == weft::DType::kInt64) {
      std::printf("action %ld\n", static_cast<long>(action.data<int64_t>()[0]));
    } else {
      for (const float value : action.data<float>()) std::printf("%g ", static_cast<double>(value));
      std::printf("\n");
    }
  } catch (const weft::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 70;
  }
}
