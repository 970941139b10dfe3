/// Tools for tests that fork processes.
#pragma once

#include "support/sanitizers.h"

namespace heed::testing_support {

/// Returns why a process forked while threads compute may hang independently of heed, or null.
constexpr const char* why_forks_hang() {
#if defined(HEED_HAS_THREAD_SANITIZER)
  return "ThreadSanitizer knows no threads that start in a forked process";
#elif defined(HEED_HAS_ADDRESS_SANITIZER)
  return "AddressSanitizer's allocator may leave a lock of another thread's to a forked process";
#else
  return nullptr;
#endif
}

}  // namespace heed::testing_support
