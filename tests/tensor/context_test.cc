#include "tensor/context.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/thread_pool.h"

namespace weft {
namespace {

TEST(Context, ScopesNestAndRestore) {
  ThreadPool pool(2);
  EXPECT_EQ(CurrentContext().pool, nullptr);
  EXPECT_EQ(CurrentContext().isa, BestIsa());
  const Context outer{.pool = &pool, .isa = Isa::kPortable};
  {
    const ContextScope scope(outer);
    EXPECT_EQ(CurrentContext().pool, &pool);
    const Context inner;
    {
      const ContextScope nested(inner);
      EXPECT_EQ(CurrentContext().pool, nullptr);
    }
    EXPECT_EQ(CurrentContext().isa, Isa::kPortable);
  }
  EXPECT_EQ(CurrentContext().pool, nullptr);
}

TEST(Context, RefusesAnInstructionSetThatIsNotThere) {
  if (BestIsa() == Isa::kAvx512) GTEST_SKIP() << "this machine has every level";
  const Context context{.isa = Isa::kAvx512};
  EXPECT_THROW(ContextScope scope(context), Error);
}

}  // namespace
}  // namespace weft
