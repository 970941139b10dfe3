// What runs the loops of tests that ask for no executor of their own.
#pragma once

#include <memory>

#include "core/thread_executor.h"
#include "heed/parallel.h"

namespace heed::testing_support {

// Under ThreadSanitizer these are plain threads: Debian's oneTBB is not instrumented, so every
// hand-over of a task inside it would be reported as a race.
inline void use_default_executor() {
#if defined(__SANITIZE_THREAD__)
  set_executor(std::make_shared<ThreadExecutor>(4));
#else
  set_executor(nullptr);
#endif
}

}  // namespace heed::testing_support
