// Under ThreadSanitizer the tests run their loops on plain threads: Debian's oneTBB is not
// instrumented, so every hand-over of a task inside it would be reported as a race.
#include <memory>

#include "core/thread_executor.h"

namespace heed {
namespace {

const bool kIsExecutorSet = [] {
  set_executor(std::make_shared<ThreadExecutor>(4));
  return true;
}();

}  // namespace
}  // namespace heed
