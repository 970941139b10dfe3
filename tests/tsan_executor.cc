// Under ThreadSanitizer the tests, and the command that they run, begin with plain threads.
#include "support/executor.h"

namespace heed {
namespace {

const bool kIsExecutorSet = [] {
  testing_support::use_default_executor();
  return true;
}();

}  // namespace
}  // namespace heed
