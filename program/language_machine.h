// What the commands of language models share: threads, and how weights are read.
#pragma once

#include <string>

#include "base/thread_pool.h"
#include "language/language_model.h"
#include "tensor/context.h"

namespace weft {

struct LanguageMachine {
  explicit LanguageMachine(int threads);  // 0: one for each core
  ThreadPool pool;
  Context context;
};

// auto, bf16 or f32. Throws Error(kConfig).
LoadOptions LoadOptionsOf(const std::string& precision);

}  // namespace weft
