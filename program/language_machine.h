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

// precision: auto, bf16, f32 or int8; throws Error(kConfig) for others. adapter: a folder, or "".
LoadOptions LoadOptionsOf(const std::string& precision, const std::string& adapter);

}  // namespace weft
